/* kernels.h - what a kernel of the CPU backend takes: one table of them for each instruction set,
 * indexed by the rows of algos.def. */
#ifndef LARGO_CPU_KERNELS_H
#define LARGO_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include "../core/canon.h"
#include "../core/elem.h"
#include "../optim/rows.h"

/* Whole chunks of a segment; the last may be shorter. */
typedef struct largo__span {
    float *p, *m, *v, *u;
    const float *g;
    int64_t n;
    double *sum;     /* out, SUMSQ: [chunks][2], one for each term */
    uint32_t max[2]; /* in/out, MAX: bits of the largest magnitude */
} largo__span;

/* At most SUPER_ROWS whole rows of a matrix, beginning at a super tile. A statistic is a pair, one double
 * for each term: its sum of squares or its largest magnitude. */
typedef struct largo__tile {
    float *p, *m, *v, *u;
    const float *g;
    int64_t rows, cols;
    const float *row, *col;  /* factors, where the pass reads them */
    double (*row_stat)[2];   /* out, scope ROW_COL: [rows] */
    double (*col_stat)[2];   /* out, scope ROW_COL: [cols] of this super tile */
    double (*strip_stat)[2]; /* out, scope SEGMENT: one for each TILE_ROWS rows */
} largo__tile;

typedef void largo__span_kernel(largo__span *span, const largo__k *k);
typedef void largo__tile_kernel(const largo__tile *tile, const largo__k *k);

typedef struct largo__kernel {
    largo__span_kernel *span; /* of a FLAT family */
    largo__tile_kernel *tile; /* of a MATRIX family */
} largo__kernel;

#define ISA(name, test) extern const largo__kernel largo__kernels_##name[LARGO__ROWS];
#include "isa.def"
#undef ISA

#endif
