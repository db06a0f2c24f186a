/* adamw.h - AdamW: decoupled weight decay. Loshchilov & Hutter, ICLR 2019, algorithm 2.
 *
 *   m <- beta1 m + (1 - beta1) g          v <- beta2 v + (1 - beta2) g^2
 *   u  = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 *   p <- p (1 - lr weight_decay) - lr u
 */
#ifndef LARGO_OPTIM_ADAMW_H
#define LARGO_OPTIM_ADAMW_H

#include "../core/elem.h"

LARGO_FN void adamw_moments(largo__elem *x, const largo__k *k)
{
    x->m = fmaf(k->beta1, x->m, k->beta1_in * x->g);
    x->v = fmaf(k->beta2, x->v, k->one_minus_beta2 * (x->g * x->g));
}

LARGO_FN float adamw_direction(const largo__elem *x, const largo__k *k)
{
    return (x->m * k->inv_bias1) / fmaf(sqrtf(x->v), k->rsqrt_bias2, k->eps);
}

LARGO_FN void adamw_update0(largo__elem *x, const largo__k *k)
{
    adamw_moments(x, k);
    x->p = fmaf(-k->lr, adamw_direction(x, k), x->p * k->keep);
}

#endif
