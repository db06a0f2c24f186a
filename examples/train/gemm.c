#include "gemm.h"

#include <blis.h> /* declares cblas_sgemm too */

void gemm_set_threads(int threads)
{
    bli_thread_set_num_threads(threads);
}

void gemm(const struct gemm *shape, const float *a, const float *b, float *c)
{
    const int row_a = shape->transpose_a ? shape->m : shape->k;
    const int row_b = shape->transpose_b ? shape->k : shape->n;
    cblas_sgemm(CblasRowMajor, shape->transpose_a ? CblasTrans : CblasNoTrans,
                shape->transpose_b ? CblasTrans : CblasNoTrans, shape->m, shape->n, shape->k, 1.0f,
                a, row_a, b, row_b, shape->add ? 1.0f : 0.0f, c, shape->n);
}
