/* message.h - exit codes of largo-train, and its one-line complaints. */
#ifndef TRAIN_MESSAGE_H
#define TRAIN_MESSAGE_H

#include <stdbool.h>

#define PROGRAM "largo-train"

enum exit_code {
    EXIT_TRAINED = 0,
    EXIT_TROUBLE = 1,   /* a run diverged, or something failed while running */
    EXIT_BAD_INPUT = 2, /* an option or a data file is not as it has to be */
    EXIT_INTERRUPTED = 130
};

/* Print "largo-train: ..." as one line on stderr. Returns false, so that a check can end with
 * return complain(...). */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
bool complain(const char *format, ...);

#endif
