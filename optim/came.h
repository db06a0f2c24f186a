/* came.h - CAME: confidence-guided memory-efficient optimization. Luo et al., ACL 2023, algorithm 2;
 * means instead of sums, as the authors' code (equal to the paper's r c / sum(r)).
 *
 * came2d: the last two dimensions [R, C] are factored, leading ones count matrices.
 *   pass 0   statistics g^2 per row and column
 *   finish   r <- beta2 r + (1 - beta2) (mean over the row of g^2 + eps),  the same for c
 *            row = 1 / sqrt(r), col = 1 / sqrt(c), seg[0] = sqrt(mean of r) of the matrix
 *   pass 1   u = g / sqrt(r / mean(r) c) = g row seg[0] col;  statistic u^2 of the segment
 *   finish   seg[1] = 1 / max(1, RMS(u) / clip_threshold)
 *   pass 2   u^ = u seg[1];  m <- beta1 m + (1 - beta1) u^;  statistics (u^ - m)^2 per row and column
 *   finish   R, C, row, col, seg[0] as after pass 0, with beta3, eps2 and (u^ - m)^2
 *   pass 3   p <- p (1 - lr weight_decay) - lr m / sqrt(R / mean(R) C)
 *
 * The factors are multiplied from left to right, ((g row) seg[0]) col: row col alone overflows beside
 * a row without gradient, and would turn the whole tensor into NaN. seg[0] stands between them since
 * row and col may both be near 2^63.
 *
 * came1d: at most one dimension, no confidence.
 *   pass 0   v <- beta2 v + (1 - beta2) (g^2 + eps);  u = g / sqrt(v);  statistic u^2
 *   pass 1   m <- beta1 m + (1 - beta1) u seg[1];  p <- p (1 - lr weight_decay) - lr m
 */
#ifndef LARGO_OPTIM_CAME_H
#define LARGO_OPTIM_CAME_H

#include "../core/elem.h"

/* Of g with the first factors; of m with the second. */
LARGO_FN float came_scaled(float x, const largo__elem *e, const largo__k *k)
{
    return x * e->row * k->seg[0] * e->col;
}

LARGO_FN float came2d_term1(const largo__elem *x, const largo__k *k)
{
    return came_scaled(x->g, x, k);
}

LARGO_FN float came2d_clipped(const largo__elem *x, const largo__k *k)
{
    return came_scaled(x->g, x, k) * k->seg[1];
}

LARGO_FN void came2d_update2(largo__elem *x, const largo__k *k)
{
    x->m = fmaf(k->beta1, x->m, k->beta1_in * came2d_clipped(x, k));
}

LARGO_FN float came2d_term2(const largo__elem *x, const largo__k *k)
{
    return came2d_clipped(x, k) - x->m;
}

LARGO_FN void came2d_update3(largo__elem *x, const largo__k *k)
{
    x->p = fmaf(-k->lr, came_scaled(x->m, x, k), x->p * k->keep);
}

LARGO_FN void came1d_update0(largo__elem *x, const largo__k *k)
{
    x->v = fmaf(k->beta2, x->v, k->one_minus_beta2 * fmaf(x->g, x->g, k->eps));
}

LARGO_FN float came1d_term0(const largo__elem *x, const largo__k *k)
{
    (void)k;
    return x->g / sqrtf(x->v);
}

LARGO_FN void came1d_update1(largo__elem *x, const largo__k *k)
{
    x->m = fmaf(k->beta1, x->m, k->beta1_in * (x->g / sqrtf(x->v) * k->seg[1]));
    x->p = fmaf(-k->lr, x->m, x->p * k->keep);
}

/* One row or column: its sum of squares over `count` elements enters the average *state; returns
 * the factor. Which betas and eps: pass 0 has beta2 and eps, pass 2 has beta3 and eps2. */
LARGO_FN float came_finish_line(double sum, double count, double beta, double eps, float *state)
{
    *state = (float)(beta * (double)*state + (1.0 - beta) * (sum / count + eps));
    return (float)(1.0 / sqrt((double)*state));
}

LARGO_FN float came2d_finish_line0(const double stat[2], double count, const largo__d *d,
                                   float *state)
{
    return came_finish_line(stat[0], count, d->beta2, d->eps, state);
}

LARGO_FN float came2d_finish_line2(const double stat[2], double count, const largo__d *d,
                                   float *state)
{
    return came_finish_line(stat[0], count, d->beta3, d->eps2, state);
}

LARGO_FN void came_finish_matrix(double mean, float *seg)
{
    seg[0] = (float)sqrt(mean);
}

LARGO_FN double came_finish_segment(const double sum[2], double count, const largo__d *d,
                                    float *seg)
{
    const double rms = sqrt(sum[0] / count) / d->clip_threshold;
    const double ratio = 1.0 / (rms > 1.0 ? rms : 1.0);
    seg[1] = (float)ratio;
    return ratio;
}

#endif
