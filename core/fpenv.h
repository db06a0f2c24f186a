/* fpenv.h - the floating-point control that largo's bits need: round to nearest, subnormals kept,
 * no traps. A host built with -ffast-math, or one that merely loads such a library, runs with
 * subnormals flushed; each thread sets the control before it computes and gives the host's back.
 *
 * Functions on purpose: arithmetic must not be moved across them, and an opaque call is a fence
 * that every compiler respects.
 */
#ifndef LARGO_CORE_FPENV_H
#define LARGO_CORE_FPENV_H

#include <stdint.h>

typedef struct largo__fpenv {
    uint64_t control;
} largo__fpenv;

largo__fpenv largo__fpenv_enter(void);
void largo__fpenv_leave(largo__fpenv previous);

#endif
