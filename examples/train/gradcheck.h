/* gradcheck.h - the gradients of model.c against finite differences. */
#ifndef TRAIN_GRADCHECK_H
#define TRAIN_GRADCHECK_H

#include <stdbool.h>

/* Compare loss and gradients of a small batch, in two slices, with central differences of a loss
 * computed in double by plain loops. Prints one line per array; false if one is off. */
bool gradients_agree(void);

#endif
