/* work.h - carrying out the items of a layout. */
#ifndef LARGO_CPU_WORK_H
#define LARGO_CPU_WORK_H

#include "layout.h"

/* One step, as all its threads share it. */
typedef struct largo__run {
    largo__plan *plan;
    const largo__layout *layout;
    const largo__kernel *kernels;
    largo__result *result;
    size_t end; /* phase before which this round ends */
    int stop;   /* set by DECIDE: nothing may be written */
} largo__run;

/* The list of one phase and thread. */
void largo__work_list(largo__run *run, size_t phase, size_t thread);

#endif
