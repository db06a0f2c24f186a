/* detect.h - which instruction sets this processor and operating system offer. */
#ifndef LARGO_CPU_DETECT_H
#define LARGO_CPU_DETECT_H

#include <stddef.h>
#include "largo.h"

/* Name of instruction set i, from the lowest, and why it is missing ("": it is here). NULL past the
 * last. */
const char *largo__cpu_isa(size_t i, const char **missing);

/* The best one that is here, or the one in LARGO_ISA, which may only be lower. */
largo_status largo__cpu_isa_choose(size_t *isa);

#endif
