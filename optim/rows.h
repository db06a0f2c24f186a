/* rows.h - names of the rows of algos.def: LARGO__ROW_lamb_0, LARGO__FAMILY_lamb ... A backend's
 * table of kernels is indexed by the first. */
#ifndef LARGO_OPTIM_ROWS_H
#define LARGO_OPTIM_ROWS_H

enum {
#define PASS(family, n, ...) LARGO__ROW_##family##_##n,
#include "algos.def"
    LARGO__ROWS
};

enum {
#define FAMILY(name, ...) LARGO__FAMILY_##name,
#include "algos.def"
    LARGO__FAMILIES
};

#endif
