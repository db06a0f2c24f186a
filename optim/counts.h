/* counts.h - how many steps each parameter has made. */
#ifndef LARGO_OPTIM_COUNTS_H
#define LARGO_OPTIM_COUNTS_H

#include "stepper.h"

/* Number every parameter's step, and say which constants its units take. Counts are checked first. */
largo_status largo__number_steps(largo__stepper *stepper, const largo__group groups[],
                                 int64_t step);

/* The step was applied. */
void largo__count_steps(largo__stepper *stepper);

#endif
