/* interrupt.h - Ctrl-C ends a run between two steps. */
#ifndef TRAIN_INTERRUPT_H
#define TRAIN_INTERRUPT_H

#include <stdbool.h>

/* Catch the first SIGINT; a second one ends the program at once. */
void interrupt_catch(void);

bool interrupted(void);

#endif
