/* context.h - the context, and memory from it. */
#ifndef LARGO_CORE_CONTEXT_H
#define LARGO_CORE_CONTEXT_H

#include "backend.h"

struct largo_ctx {
    const largo__backend *backend;
    void *device; /* the backend's */
    char name[64];
    largo_ctx_options options; /* callbacks and thread count */
    size_t references;         /* the creator, and one for each object */

    /* The functional step: its last plan, owned by optim/step.c; freed by drop_functional. */
    void *functional;
    void (*drop_functional)(largo_ctx *ctx);

    largo_outcome outcome;
    int has_outcome;
};

void largo__ctx_hold(largo_ctx *ctx);

/* Memory of the device, 256-byte aligned; NULL if there is none. 0 bytes give memory too. */
void *largo__alloc(largo_ctx *ctx, size_t bytes);
void largo__free(largo_ctx *ctx, void *memory, size_t bytes);

/* Memory of the host for plans and objects; the same functions where the device is the host. */
void *largo__host_alloc(largo_ctx *ctx, size_t bytes);
void largo__host_free(largo_ctx *ctx, void *memory, size_t bytes);

/* Boundary i of `parts` equal parts of n, without overflow of n * i. */
static inline int64_t largo__share(int64_t n, int64_t i, int64_t parts)
{
    return n / parts * i + n % parts * i / parts;
}

/* a * b + c with saturation: a size that cannot be allocated stays one. */
static inline size_t largo__size(size_t a, size_t b, size_t c)
{
    size_t product, sum;
    if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(product, c, &sum))
        return SIZE_MAX;
    return sum;
}

#endif
