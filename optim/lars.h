/* lars.h - LARS: layer-wise adaptive rate scaling. You, Gitman & Ginsburg, 2017, and its variants.
 *
 *   pass 0   statistics |p|^2 and a^2 of the segment; nothing is written
 *   finish   ratio = trust_coefficient |p| / (a + extra), bounded; 1 where a norm is zero
 *   pass 1   d  = clamp(g + weight_decay p, +- clip_threshold)
 *            m <- momentum m + in d
 *            p <- p - out m               Nesterov: p - out (momentum m + in d)
 *
 * denominator   a                                   extra
 *   PAPER       |g|                                 weight_decay |p| + eps
 *   DECAYED     |g + weight_decay p|                eps
 *   UPDATE      |m| of this step, or its Nesterov   eps
 *
 * velocity      in          out
 *   LR_RATIO    lr ratio    1          a later change of lr leaves the old velocity as it is
 *   RATIO       ratio       lr
 *   GRAD        1           lr ratio
 *
 * lars, lars_decayed, lars_update   by denominator
 * lars_plain                        ratio 1 everywhere (NO_TRUST, adapt never): one pass
 * lars0 ...                         the same without momentum: no state
 */
#ifndef LARGO_OPTIM_LARS_H
#define LARGO_OPTIM_LARS_H

#include "sgd.h"

/* Comparisons, so that a NaN stays one. */
LARGO_FN float lars_clamped(const largo__elem *x, const largo__k *k)
{
    const float d = sgd_decayed(x, k);
    const float below = d > k->clip ? k->clip : d;
    return below < -k->clip ? -k->clip : below;
}

/* What is taken from p, given the addition to the velocity, which x already holds. */
LARGO_FN float lars_taken(const largo__elem *x, float added, const largo__k *k)
{
    return k->nesterov ? fmaf(k->momentum, x->m, added) : x->m;
}

/* A factor is a pair: the second is 1, or a power of two that keeps the first in the range of
 * float; multiplying by it first is exact. */
LARGO_FN void lars_move(largo__elem *x, const float in[2], const float out[2], const largo__k *k)
{
    const float added = in[0] * (in[1] * lars_clamped(x, k));
    x->m = fmaf(k->momentum, x->m, added);
    x->p = fmaf(-out[0], out[1] * lars_taken(x, added, k), x->p);
}

LARGO_FN void lars0_move(largo__elem *x, const float in[2], const float out[2], const largo__k *k)
{
    const float added = in[0] * (in[1] * lars_clamped(x, k));
    x->p = fmaf(-out[0], out[1] * added, x->p);
}

LARGO_FN void lars_update1(largo__elem *x, const largo__k *k)
{
    lars_move(x, &k->seg[0], &k->seg[2], k);
}

LARGO_FN void lars0_update1(largo__elem *x, const largo__k *k)
{
    lars0_move(x, &k->seg[0], &k->seg[2], k);
}

LARGO_FN void lars_plain_update0(largo__elem *x, const largo__k *k)
{
    lars_move(x, k->lr_in, k->lr_out, k);
}

LARGO_FN void lars0_plain_update0(largo__elem *x, const largo__k *k)
{
    lars0_move(x, k->lr_in, k->lr_out, k);
}

/* The update that pass 1 is going to make; velocity GRAD. */
LARGO_FN float lars_update_term0(const largo__elem *x, const largo__k *k)
{
    largo__elem y = *x;
    const float added = lars_clamped(x, k);
    y.m = fmaf(k->momentum, x->m, added);
    return lars_taken(&y, added, k);
}

LARGO_FN double lars_finish(double weight, double other, double extra, const largo__d *d,
                            float *seg)
{
    double ratio = largo__trust_ratio(weight, other, extra, d);
    if (d->larc) ratio = ratio >= d->lr ? 1.0 : ratio / d->lr; /* NaN stays */
    const int moving = d->ratio_out ? 2 : 0;
    largo__split((d->ratio_out ? d->lr_out : d->lr_in) * ratio, &seg[moving]);
    seg[2 - moving] = d->still[0];
    seg[3 - moving] = d->still[1];
    return ratio;
}

/* sum[0] = |p|^2, sum[1] = |g|^2. */
LARGO_FN double lars_finish_paper(const double sum[2], double count, const largo__d *d, float *seg)
{
    (void)count;
    const double weight = sqrt(sum[0]);
    return lars_finish(weight, sqrt(sum[1]), d->weight_decay * weight + d->eps, d, seg);
}

/* sum[0] = |p|^2, sum[1] = |g + weight_decay p|^2 or that of the update. */
LARGO_FN double lars_finish_whole(const double sum[2], double count, const largo__d *d, float *seg)
{
    (void)count;
    return lars_finish(sqrt(sum[0]), sqrt(sum[1]), d->eps, d, seg);
}

#endif
