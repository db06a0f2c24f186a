/* lamb.h - LAMB: layer-wise adaptive moments. You et al., ICLR 2020, algorithm 2.
 *
 *   pass 0   m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2
 *            u  = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p
 *            statistics |p|^2, |u|^2 of the segment
 *   finish   ratio = |p| / |u|, bounded; 1 where a norm is zero
 *   pass 1   p <- p - lr ratio u
 *
 * lamb       makes u again in pass 1, from m and v: no memory of the size of the parameters
 * lamb_kept  keeps u between the passes, where there is a place for it
 * lamb_l2    weight decay joins the gradient instead: g + weight_decay p (apex adam_w_mode = 0)
 * lamb_plain ratio 1 everywhere (NO_TRUST, adapt never): one pass
 *
 * Without grad_averaging the factor of g in m is 1 (beta3 of apex).
 */
#ifndef LARGO_OPTIM_LAMB_H
#define LARGO_OPTIM_LAMB_H

#include "adamw.h"

LARGO_FN float lamb_direction(const largo__elem *x, const largo__k *k)
{
    return fmaf(k->weight_decay, x->p, adamw_direction(x, k));
}

LARGO_FN void lamb_l2_moments(largo__elem *x, const largo__k *k)
{
    largo__elem y = *x;
    y.g = fmaf(k->weight_decay, x->p, x->g);
    adamw_moments(&y, k);
    x->m = y.m;
    x->v = y.v;
}

LARGO_FN void lamb_kept_update0(largo__elem *x, const largo__k *k)
{
    adamw_moments(x, k);
    x->u = lamb_direction(x, k);
}

LARGO_FN void lamb_l2_kept_update0(largo__elem *x, const largo__k *k)
{
    lamb_l2_moments(x, k);
    x->u = adamw_direction(x, k);
}

/* seg[0] seg[1] = lr ratio, split. */
LARGO_FN float lamb_stepped(float p, float u, const largo__k *k)
{
    return fmaf(-k->seg[0], u * k->seg[1], p);
}

LARGO_FN void lamb_update1(largo__elem *x, const largo__k *k)
{
    x->p = lamb_stepped(x->p, lamb_direction(x, k), k);
}

LARGO_FN void lamb_l2_update1(largo__elem *x, const largo__k *k)
{
    x->p = lamb_stepped(x->p, adamw_direction(x, k), k);
}

LARGO_FN void lamb_kept_update1(largo__elem *x, const largo__k *k)
{
    x->p = lamb_stepped(x->p, x->u, k);
}

LARGO_FN void lamb_plain_update0(largo__elem *x, const largo__k *k)
{
    adamw_moments(x, k);
    x->p = fmaf(-k->lr, lamb_direction(x, k), x->p);
}

LARGO_FN void lamb_l2_plain_update0(largo__elem *x, const largo__k *k)
{
    lamb_l2_moments(x, k);
    x->p = fmaf(-k->lr, adamw_direction(x, k), x->p);
}

/* sum[0] = |p|^2, sum[1] = |u|^2. */
LARGO_FN double lamb_finish_segment(const double sum[2], double count, const largo__d *d,
                                    float *seg)
{
    (void)count;
    const double ratio = largo__trust_ratio(sqrt(sum[0]), sqrt(sum[1]), 0.0, d);
    largo__split(d->lr * ratio, seg);
    return ratio;
}

#endif
