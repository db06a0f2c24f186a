/* elem.h - the one vocabulary every optimizer is written in (C17 and CUDA).
 *
 * An optimizer is a short list of passes; a pass is two functions of one element. `update` may write
 * value and state. `term` is pure and returns, from the values after the update, the base value of a
 * statistic (g, u, p, u - m ...); the driver squares and adds it, or takes its largest magnitude.
 * Because a term is pure, the driver may look twice at the same elements.
 *
 * Neither ever sees an index, a thread or a vector. That is why one text runs on every instruction
 * set and device with the same bits. Allowed: + - * / sqrtf fabsf fmaf and selects; every fused
 * operation is written as fmaf.
 */
#ifndef LARGO_CORE_ELEM_H
#define LARGO_CORE_ELEM_H

#include <math.h>
#include <stdint.h>
#include "lang.h"

typedef struct largo__elem {
    float p;        /* parameter */
    float g;        /* gradient, already scaled and clipped */
    float m, v;     /* state slots 0 and 1 */
    float u;        /* direction, where a pass keeps it for the next one */
    float row, col; /* finished statistics of this element's row and column */
} largo__elem;

/* Constants of a step, rounded once from double. */
typedef struct largo__k {
    float lr, beta1, beta2;
    float beta1_in;        /* factor of g in m: 1 - beta1, or 1 without averaging */
    float one_minus_beta2; /* formed in double */
    float inv_bias1;       /* 1 / (1 - beta1^t), or 1 */
    float rsqrt_bias2;     /* 1 / sqrt(1 - beta2^t), or 1 */
    float eps, weight_decay;
    float keep;                /* 1 - lr weight_decay */
    float momentum;            /* SGD */
    float momentum_in;         /* SGD: 1 - dampening, 1 at the first step */
    float clip;                /* clip_threshold */
    int nesterov;              /* LARS */
    float lr_in[2], lr_out[2]; /* LARS: factors of the velocity where the ratio is 1 */
    float seg[4]; /* what finish hooks made of the statistics of this segment or matrix */
    double grad_scale;
} largo__k;

/* The same in double, for finish hooks. */
typedef struct largo__d {
    double lr, beta2, beta3, eps, eps2, clip_threshold;
    double weight_decay, trust_coefficient; /* the latter 1 where it is not used */
    double weight_norm_min, weight_norm_max, trust_ratio_min, trust_ratio_max;
    double lr_in, lr_out; /* LARS: lr as a factor into the velocity, and out of it */
    float still[2];       /* LARS: the one of them that the ratio does not touch, split */
    int ratio_out;        /* LARS: the ratio is a factor out of the velocity */
    int larc;
} largo__d;

/* Streams that a pass reads and writes. */
enum {
    LARGO__P = 1,
    LARGO__G = 2,
    LARGO__M = 4,
    LARGO__V = 8,
    LARGO__U = 16,
    LARGO__RC = 32 /* row and column factors */
};

/* Operators and scopes of a pass's statistics. */
enum { LARGO__NO_OP = 0, LARGO__SUMSQ = 1, LARGO__MAX = 2, LARGO__SUMSQ_MAX = 3 };
enum { LARGO__NO_SCOPE = 0, LARGO__SEGMENT = 1, LARGO__ROW_COL = 2 };

typedef void largo__update_fn(largo__elem *x, const largo__k *k);
typedef float largo__term_fn(const largo__elem *x, const largo__k *k);

/* Updates and terms that several passes share. */
LARGO_FN void elem_no_update(largo__elem *x, const largo__k *k)
{
    (void)x;
    (void)k;
}

LARGO_FN float elem_no_term(const largo__elem *x, const largo__k *k)
{
    (void)x;
    (void)k;
    return 0.0f;
}

LARGO_FN float elem_value(const largo__elem *x, const largo__k *k)
{
    (void)k;
    return x->p;
}

LARGO_FN float elem_grad(const largo__elem *x, const largo__k *k)
{
    (void)k;
    return x->g;
}

LARGO_FN float elem_kept(const largo__elem *x, const largo__k *k)
{
    (void)k;
    return x->u;
}

/* The zero rule and the bounds of every trust ratio, in one place:
 *
 *   ratio = 1                                                        if weight = 0 or update = 0
 *         = clamp(coefficient clamp(weight, norm_min, norm_max) / (update + extra),
 *                 ratio_min, ratio_max)                              otherwise
 */
LARGO_FN double largo__trust_ratio(double weight, double update, double extra, const largo__d *d)
{
    if (weight == 0.0 || update == 0.0) return 1.0;
    double w = weight < d->weight_norm_min ? d->weight_norm_min : weight;
    w = w > d->weight_norm_max ? d->weight_norm_max : w;
    double r = d->trust_coefficient * w / (update + extra);
    r = r < d->trust_ratio_min ? d->trust_ratio_min : r;
    return r > d->trust_ratio_max ? d->trust_ratio_max : r;
}

/* As float; what is larger stays at the largest: inf times a zero would be NaN. */
LARGO_FN float largo__saturated(double x)
{
    return x > 0x1.fffffep127 ? 0x1.fffffep127f : (float)x;
}

/* A factor of a step as two floats: their product is the factor, the second is 1 or a power of two
 * where the factor would leave the range of float. Multiplying by it first is exact. A factor past
 * 2^254 stays at what float holds. */
LARGO_FN void largo__split(double factor, float pair[2])
{
    double wide = 1.0, inverse = 1.0;
    if (factor > 0x1p64) {
        wide = factor > 0x1p128 ? 0x1p126 : 0x1p64;
        inverse = factor > 0x1p128 ? 0x1p-126 : 0x1p-64;
    }
    if (factor < 0x1p-64) {
        wide = factor < 0x1p-128 ? 0x1p-126 : 0x1p-64;
        inverse = factor < 0x1p-128 ? 0x1p126 : 0x1p64;
    }
    pair[0] = largo__saturated(factor * inverse);
    pair[1] = (float)wide;
}

#endif
