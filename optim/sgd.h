/* sgd.h - stochastic gradient descent with momentum, dampening and Nesterov, as torch.optim.SGD.
 *
 *   d  = g + weight_decay p
 *   m <- d                                   at the first step
 *   m <- momentum m + (1 - dampening) d      later
 *   p <- p - lr d                            without momentum
 *   p <- p - lr m                            with momentum
 *   p <- p - lr (d + momentum m)             Nesterov
 */
#ifndef LARGO_OPTIM_SGD_H
#define LARGO_OPTIM_SGD_H

#include "../core/elem.h"

LARGO_FN float sgd_decayed(const largo__elem *x, const largo__k *k)
{
    return fmaf(k->weight_decay, x->p, x->g);
}

LARGO_FN void sgd_update0(largo__elem *x, const largo__k *k)
{
    x->p = fmaf(-k->lr, sgd_decayed(x, k), x->p);
}

LARGO_FN void sgd_momentum_update0(largo__elem *x, const largo__k *k)
{
    x->m = fmaf(k->momentum, x->m, k->momentum_in * sgd_decayed(x, k));
    x->p = fmaf(-k->lr, x->m, x->p);
}

LARGO_FN void sgd_nesterov_update0(largo__elem *x, const largo__k *k)
{
    const float d = sgd_decayed(x, k);
    x->m = fmaf(k->momentum, x->m, k->momentum_in * d);
    x->p = fmaf(-k->lr, fmaf(k->momentum, x->m, d), x->p);
}

#endif
