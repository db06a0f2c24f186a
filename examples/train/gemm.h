/* gemm.h - the one BLAS call of largo-train. Only gemm.c sees the headers of BLIS. */
#ifndef TRAIN_GEMM_H
#define TRAIN_GEMM_H

#include <stdbool.h>

/* BLIS takes its thread count for the whole process, and one thread if it is told nothing. */
void gemm_set_threads(int threads);

/* All matrices are dense and row-major; op(x) is x or its transpose.
 *
 *   c = op(a) op(b)   or, with `add`,   c = c + op(a) op(b)
 *
 * c is m x n, op(a) is m x k, op(b) is k x n. */
struct gemm {
    int m, n, k;
    bool transpose_a, transpose_b, add;
};

void gemm(const struct gemm *shape, const float *a, const float *b, float *c);

#endif
