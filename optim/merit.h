/* merit.h - MERIT: maximum-normalized element-wise ratio. Luo et al., ICML 2025; the zero rule and the
 * path for vectors are the authors' code.
 *
 *   m, v as AdamW, no bias correction by default;  u = m / (sqrt(v) + eps) + weight_decay p
 *   pass 0   statistics max |p| and max |u| per row, per column and of the segment
 *   finish   row = max |p| / max |u| of the row, col of the column, seg[0] of the segment
 *   pass 1   s = max(row, col, seg[0]), or 1 where a maximum of the row or column is zero
 *            p <- p - lr clip(s u, -clip_threshold, clip_threshold)
 *
 * merit2d: matrices. merit1d: at most one dimension; s = seg[0].
 */
#ifndef LARGO_OPTIM_MERIT_H
#define LARGO_OPTIM_MERIT_H

#include "lamb.h"

LARGO_FN float merit_stepped(float p, float d, const largo__k *k)
{
    d = d > k->clip ? k->clip : d;
    d = d < -k->clip ? -k->clip : d;
    return fmaf(-k->lr, d, p);
}

/* A negative factor stands for a zero maximum. A NaN in p reaches seg[0], and so every element, as in the
 * authors' code. */
LARGO_FN float merit2d_scale(const largo__elem *x, const largo__k *k)
{
    const float line = x->row > x->col ? x->row : x->col;
    const float s = line > k->seg[0] ? line : k->seg[0];
    return x->row < 0.0f || x->col < 0.0f ? 1.0f : s;
}

LARGO_FN void merit2d_update1(largo__elem *x, const largo__k *k)
{
    x->p = merit_stepped(x->p, merit2d_scale(x, k) * lamb_direction(x, k), k);
}

LARGO_FN void merit1d_update1(largo__elem *x, const largo__k *k)
{
    x->p = merit_stepped(x->p, k->seg[0] * lamb_direction(x, k), k);
}

/* stat[0] = max |p|, stat[1] = max |u|. */
LARGO_FN float merit_ratio(const double stat[2], float at_zero)
{
    if (stat[0] == 0.0 || stat[1] == 0.0) return at_zero;
    return largo__saturated(stat[0] / stat[1]);
}

LARGO_FN float merit2d_finish_line0(const double stat[2], double count, const largo__d *d,
                                    float *state)
{
    (void)count;
    (void)d;
    (void)state;
    return merit_ratio(stat, -1.0f);
}

LARGO_FN double merit_finish_segment(const double stat[2], double count, const largo__d *d,
                                     float *seg)
{
    (void)count;
    (void)d;
    seg[0] = merit_ratio(stat, 1.0f);
    return (double)seg[0];
}

#endif
