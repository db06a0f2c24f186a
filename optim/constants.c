/* constants.c - formed in double, rounded once to float: 1 - (float)0.999 would be off by 1.3e-5. */
#include <math.h>
#include "constants.h"
#include "power.h"

/* Everything a gradient is multiplied by before it is clipped. */
static double whole_scale(const largo_hyper *h)
{
    return h->grad_factor ? h->grad_scale * (double)*h->grad_factor : h->grad_scale;
}

void largo__constants_fill(const largo_hyper *h, int no_decay, int64_t t, largo__constants *c)
{
    const double decay = no_decay ? 0.0 : h->weight_decay;
    double bias1 = 1.0, bias2 = 1.0;
    if (h->bias_correction == LARGO_ON) {
        bias1 = 1.0 - largo__power(h->beta1, t);
        bias2 = 1.0 - largo__power(h->beta2, t);
    }
    largo__k *k = &c->k;
    k->lr = (float)h->lr;
    k->beta1 = (float)h->beta1;
    k->beta2 = (float)h->beta2;
    k->beta1_in = h->grad_averaging == LARGO_OFF ? 1.0f : (float)(1.0 - h->beta1);
    k->one_minus_beta2 = (float)(1.0 - h->beta2);
    k->inv_bias1 = (float)(1.0 / bias1);
    k->rsqrt_bias2 = (float)(1.0 / sqrt(bias2));
    k->eps = (float)h->eps;
    k->weight_decay = (float)decay;
    k->keep = (float)(1.0 - h->lr * decay);
    k->momentum = (float)h->momentum;
    k->momentum_in = t == 1 ? 1.0f : (float)(1.0 - h->dampening);
    k->clip = (float)h->clip_threshold;
    k->nesterov = h->nesterov == LARGO_ON;
    for (int i = 0; i < 4; i++) k->seg[i] = 0.0f;
    k->grad_scale = h->maximize == LARGO_ON ? -whole_scale(h) : whole_scale(h);

    largo__d *d = &c->d;
    d->lr = h->lr;
    d->lr_in = h->velocity == LARGO_VELOCITY_LR_RATIO ? h->lr : 1.0;
    d->lr_out = h->velocity == LARGO_VELOCITY_LR_RATIO ? 1.0 : h->lr;
    d->ratio_out = h->velocity == LARGO_VELOCITY_GRAD;
    d->larc = h->larc == LARGO_ON;
    d->weight_decay = decay;
    d->trust_coefficient = isnan(h->trust_coefficient) ? 1.0 : h->trust_coefficient;
    d->beta2 = h->beta2;
    d->beta3 = h->beta3;
    d->eps = h->eps;
    d->eps2 = h->eps2;
    d->clip_threshold = h->clip_threshold;
    d->weight_norm_min = h->weight_norm_min;
    d->weight_norm_max = h->weight_norm_max;
    d->trust_ratio_min = h->trust_ratio_min;
    d->trust_ratio_max = h->trust_ratio_max;
    largo__split(d->lr_in, k->lr_in);
    largo__split(d->lr_out, k->lr_out);
    for (int i = 0; i < 2; i++) d->still[i] = d->ratio_out ? k->lr_in[i] : k->lr_out[i];
}

void largo__group_scan_fill(const largo_hyper *h, largo__group_scan *scan)
{
    scan->non_finite = h->non_finite;
    scan->grad_scale = whole_scale(h);
    scan->max_grad_norm = h->max_grad_norm;
    scan->clip = 1.0;
    /* SGD and LARS keep no square: only what becomes inf is too large. */
    scan->limit = h->algo == LARGO_SGD || h->algo == LARGO_LARS ? (double)INFINITY : 0x1p64;
}
