/* numbers.h - numbers from a command line, read strictly. */
#ifndef TRAIN_NUMBERS_H
#define TRAIN_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

/* The whole text has to be one number in the range, or there is a complaint that names the option,
 * the text and the range, and *value is untouched. */
bool read_integer(const char *option, const char *text, int64_t least, int64_t most,
                  int64_t *value);
bool read_real(const char *option, const char *text, double least, double most, double *value);

#endif
