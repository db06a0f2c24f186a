/* families.h - algorithms and kernel families as the table algos.def has them. */
#ifndef LARGO_OPTIM_FAMILIES_H
#define LARGO_OPTIM_FAMILIES_H

#include "../core/plan.h"
#include "rows.h"

extern const largo__family largo__families[LARGO__FAMILIES];

/* The family that carries out a parameter's step: by algorithm, options, flags and rank. The
 * hyper-parameters must have been checked. */
const largo__family *largo__family_of(const largo_hyper *hyper, uint32_t flags, int32_t ndim);

#endif
