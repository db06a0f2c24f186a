/* constants.h - hyper-parameters and a step number as the constants of a pass. */
#ifndef LARGO_OPTIM_CONSTANTS_H
#define LARGO_OPTIM_CONSTANTS_H

#include "../core/plan.h"

void largo__constants_fill(const largo_hyper *hyper, int no_decay, int64_t t, largo__constants *c);
void largo__group_scan_fill(const largo_hyper *hyper, largo__group_scan *scan);

#endif
