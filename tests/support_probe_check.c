/* support_probe_check.c - the reference of support_probe.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support_probe.h"

#define U 0x1p-24

/* One segment of it, as the reference sees it. */
typedef struct slice {
    const largo_hyper *h;
    const probe *whole;
    size_t n, matrices, rows, cols, segment;
    const float *p0, *p, *g, *state0[LARGO_MAX_SLOTS], *state[LARGO_MAX_SLOTS];
    double wd, bias1, bias2;
    const largo_param_stats *stats;
    double scale, g_err; /* of the gradient, and how far off it may be, relative */
} slice;

static double grad(const slice *s, size_t i)
{
    return (double)s->g[i] * s->scale;
}

static void expect(const slice *s, const char *what, size_t i, float got, double want, double tol)
{
    if (fabs((double)got - want) <= tol * 1.001 + 0x1p-148) return;
    fail_msg(
        "algorithm %d, content %d, n %zu (%zu x %zu x %zu), segment %zu, %s[%zu]: %.9g, wanted "
        "%.17g within %.3g; off by %.3g",
        (int)s->h->algo, (int)s->whole->content, s->n, s->matrices, s->rows, s->cols, s->segment,
        what, i, (double)got, want, tol, fabs((double)got - want));
}

static void expect_stat(const slice *s, const char *what, double got, double want, double relative)
{
    if (isnan(want) ? isnan(got) : fabs(got - want) <= relative * want * 1.001) return;
    fail_msg("algorithm %d, content %d, n %zu, segment %zu, %s: %.17g, wanted %.17g within %.3g",
             (int)s->h->algo, (int)s->whole->content, s->n, s->segment, what, got, want, relative);
}

static void expect_stats(const slice *s, double weight, double update, double ratio,
                         double relative)
{
    expect_stat(s, "weight_norm", s->stats->weight_norm, weight, relative);
    expect_stat(s, "update_norm", s->stats->update_norm, update, relative);
    expect_stat(s, "trust_ratio", s->stats->trust_ratio, ratio, relative);
    assert_true(s->stats->reserved == 0.0);
}

/* Squares that one float lane adds up before it is widened. */
static double lane_terms(size_t n)
{
    const size_t terms = (n + 127) / 128;
    return (double)(terms > 32 ? 32 : terms);
}

/* Has it a trust ratio of its own? */
static int adapts(const slice *s)
{
    if (s->h->adapt == LARGO_ADAPT_NEVER || s->whole->flags & LARGO_PARAM_NO_TRUST) return 0;
    return s->h->adapt == LARGO_ADAPT_ALWAYS || s->wd > 0.0;
}

/* A number, and how far off the library's may be. */
typedef struct bounded {
    double x, err;
} bounded;

/* ---- SGD, LARS ---- */

static bounded decayed(const slice *s, size_t i)
{
    const double g = grad(s, i), decay = s->wd * (double)s->p0[i], d = g + decay;
    return (bounded){d, U * (fabs(decay) + fabs(d)) + s->g_err * fabs(g)};
}

static void check_sgd(const slice *s)
{
    const largo_hyper *h = s->h;
    const double mu = h->momentum, in = 1.0 - h->dampening;
    for (size_t i = 0; i < s->n; i++) {
        const double p0 = (double)s->p0[i], d = decayed(s, i).x, d_err = decayed(s, i).err;
        double step = d, err = d_err;
        if (mu > 0.0) {
            const double m0 = (double)s->state0[0][i], m = mu * m0 + in * d;
            expect(s, "momentum", i, s->state[0][i], m,
                   U * (fabs(mu * m0) + 2.0 * in * fabs(d) + fabs(m)) + in * d_err);
            step = (double)s->state[0][i];
            err = 0.0;
        }
        if (h->nesterov == LARGO_ON) {
            err = d_err + U * fabs(mu * step);
            step = d + mu * step;
            err += U * fabs(step);
        }
        const double p = p0 - h->lr * step;
        expect(s, "p", i, s->p[i], p, h->lr * (err + U * fabs(step)) + U * fabs(p));
    }
    expect_stats(s, NAN, NAN, 1.0, 0.0);
}

static bounded lars_d(const slice *s, size_t i)
{
    const double clip = s->h->clip_threshold;
    bounded d = decayed(s, i);
    d.x = fmin(fmax(d.x, -clip), clip);
    if (fabs(d.x) == clip) d.err += U * clip;
    return d;
}

/* The velocity after an addition, and what is taken from p. */
static bounded lars_velocity(const slice *s, size_t i, bounded added)
{
    const double kept = s->whole->slots ? s->h->momentum * (double)s->state0[0][i] : 0.0;
    const double m = kept + added.x;
    return (bounded){m, U * (fabs(kept) + fabs(m)) + added.err};
}

static bounded lars_taken(const slice *s, bounded m, bounded added)
{
    if (s->h->nesterov == LARGO_OFF) return m;
    const double ahead = s->h->momentum * m.x, taken = ahead + added.x;
    return (bounded){taken, U * (fabs(ahead) + fabs(taken)) + s->h->momentum * m.err + added.err};
}

/* What the denominator takes the norm of. */
static bounded lars_base(const slice *s, size_t i)
{
    if (s->h->denominator == LARGO_DENOMINATOR_PAPER)
        return (bounded){grad(s, i), s->g_err * fabs(grad(s, i))};
    if (s->h->denominator == LARGO_DENOMINATOR_DECAYED) return decayed(s, i);
    return lars_taken(s, lars_velocity(s, i, lars_d(s, i)), lars_d(s, i));
}

/* With its relative error. Bounds and the minimum of LARC bring nothing further apart. */
static bounded lars_ratio(const slice *s)
{
    const largo_hyper *h = s->h;
    double p2 = 0.0, base2 = 0.0, err = 0.0;
    for (size_t i = 0; i < s->n; i++) {
        const bounded base = lars_base(s, i);
        p2 += (double)s->p0[i] * (double)s->p0[i];
        base2 += base.x * base.x;
        err += fabs(base.x) * base.err;
    }
    if (!adapts(s)) return (bounded){1.0, 0.0};
    bounded ratio = {1.0, 0.0};
    if (p2 > 0.0 && base2 > 0.0) {
        const double weight = fmin(fmax(sqrt(p2), h->weight_norm_min), h->weight_norm_max);
        double below = sqrt(base2) + h->eps;
        if (h->denominator == LARGO_DENOMINATOR_PAPER) below += s->wd * sqrt(p2);
        ratio.x = h->trust_coefficient * weight / below;
        ratio.x = fmin(fmax(ratio.x, h->trust_ratio_min), h->trust_ratio_max);
        ratio.err = lane_terms(s->n > 4096 ? 4096 : s->n) * U + err / base2;
    }
    if (h->larc == LARGO_ON) ratio.x = fmin(ratio.x / h->lr, 1.0);
    return ratio;
}

static void check_lars(const slice *s)
{
    const largo_hyper *h = s->h;
    const bounded ratio = lars_ratio(s);
    const double lr = h->lr, off = ratio.err + U;
    const double in = h->velocity == LARGO_VELOCITY_LR_RATIO ? lr * ratio.x
                      : h->velocity == LARGO_VELOCITY_RATIO  ? ratio.x
                                                             : 1.0;
    const double out = h->velocity == LARGO_VELOCITY_LR_RATIO ? 1.0
                       : h->velocity == LARGO_VELOCITY_RATIO  ? lr
                                                              : lr * ratio.x;
    for (size_t i = 0; i < s->n; i++) {
        const bounded d = lars_d(s, i);
        const bounded added = {in * d.x, in * (d.err + fabs(d.x) * (off + U))};
        bounded m = lars_velocity(s, i, added);
        if (s->whole->slots) {
            expect(s, "velocity", i, s->state[0][i], m.x, m.err);
            m = (bounded){(double)s->state[0][i], 0.0};
        }
        const bounded taken = lars_taken(s, m, added);
        const double p = (double)s->p0[i] - out * taken.x;
        expect(s, "p", i, s->p[i], p, out * (taken.err + fabs(taken.x) * off) + U * fabs(p));
    }
}

/* ---- AdamW, LAMB ---- */

static void check_moments(const slice *s)
{
    const largo_hyper *h = s->h;
    const double in = h->grad_averaging == LARGO_OFF ? 1.0 : 1.0 - h->beta1, v_in = 1.0 - h->beta2;
    for (size_t i = 0; i < s->n; i++) {
        const double m0 = (double)s->state0[0][i], v0 = (double)s->state0[1][i];
        double g = grad(s, i), err = s->g_err * fabs(g);
        if (h->l2 == LARGO_ON) {
            g += s->wd * (double)s->p0[i];
            err += U * (s->wd * fabs((double)s->p0[i]) + fabs(g));
        }
        const double m = h->beta1 * m0 + in * g, v = h->beta2 * v0 + v_in * g * g;
        expect(s, "m", i, s->state[0][i], m,
               U * (h->beta1 * fabs(m0) + 2.0 * in * fabs(g) + fabs(m)) + in * err);
        expect(s, "v", i, s->state[1][i], v,
               U * (h->beta2 * v0 + 3.0 * v_in * g * g + v) + 2.0 * v_in * fabs(g) * err);
    }
}

/* Six roundings: correction and product, root, correction, eps and fma, division; the last two of
 * the denominator share one. */
static double direction(const slice *s, size_t i)
{
    const double m = (double)s->state[0][i] / s->bias1;
    return m / (sqrt((double)s->state[1][i] / s->bias2) + s->h->eps);
}

static void check_decayed(const slice *s, size_t i, double d, double d_err)
{
    const double p0 = (double)s->p0[i], lr = s->h->lr, p = p0 * (1.0 - lr * s->wd) - lr * d;
    expect(s, "p", i, s->p[i], p, U * (2.0 * fabs(p0) + lr * fabs(d) + fabs(p)) + lr * d_err);
}

static void check_adamw(const slice *s)
{
    check_moments(s);
    for (size_t i = 0; i < s->n; i++) {
        const double d = direction(s, i);
        check_decayed(s, i, d, 6.0 * U * fabs(d));
    }
    expect_stats(s, NAN, NAN, 1.0, 0.0);
}

static double lamb_direction(const slice *s, size_t i, double *err)
{
    const double d = direction(s, i);
    *err = 6.0 * U * fabs(d);
    if (s->h->l2 == LARGO_ON) return d;
    const double decay = s->wd * (double)s->p0[i], u = d + decay;
    *err += U * (fabs(decay) + fabs(u));
    return u;
}

static void check_lamb(const slice *s)
{
    const largo_hyper *h = s->h;
    double p2 = 0.0, u2 = 0.0, uerr = 0.0, err, a = h->lr, a_err = U;
    check_moments(s);
    for (size_t i = 0; i < s->n; i++) {
        const double u = lamb_direction(s, i, &err), p0 = (double)s->p0[i];
        p2 += p0 * p0;
        u2 += u * u;
        uerr += fabs(u) * err;
    }
    const int adapted = adapts(s);
    if (adapted && p2 > 0.0 && u2 > 0.0) {
        /* half for each norm */
        const double relative = lane_terms(s->n > 4096 ? 4096 : s->n) * U + uerr / u2;
        expect_stats(s, sqrt(p2), sqrt(u2), sqrt(p2 / u2), relative);
        a *= sqrt(p2 / u2);
        a_err += relative;
    } else {
        expect_stats(s, adapted ? sqrt(p2) : NAN, adapted ? sqrt(u2) : NAN, 1.0, 64.0 * U);
    }
    for (size_t i = 0; i < s->n; i++) {
        const double u = lamb_direction(s, i, &err), p = (double)s->p0[i] - a * u;
        expect(s, "p", i, s->p[i], p, a * err + fabs(a * u) * a_err + U * fabs(p));
    }
}

/* ---- CAME ---- */

/* Averages of rows and columns of one matrix; square[] and its error are rows x cols. */
static void check_lines(const slice *s, size_t matrix, int slot, double beta, double eps,
                        const double *square, const double *error)
{
    for (int is_col = 0; is_col < 2; is_col++) {
        const size_t lines = is_col ? s->cols : s->rows, n = is_col ? s->rows : s->cols;
        const double terms = is_col ? (n < 32 ? (double)n : 32.0) : lane_terms(n);
        const float *before = s->state0[slot + is_col] + matrix * lines;
        const float *after = s->state[slot + is_col] + matrix * lines;
        for (size_t l = 0; l < lines; l++) {
            double sum = 0.0, err = 0.0;
            for (size_t k = 0; k < n; k++) {
                const size_t at = is_col ? k * s->cols + l : l * s->cols + k;
                sum += square[at];
                err += error[at];
            }
            const double mean = sum / (double)n, in = 1.0 - beta;
            const double want = beta * (double)before[l] + in * (mean + eps);
            expect(s, is_col ? "col" : "row", matrix * lines + l, after[l], want,
                   in * (err / (double)n + terms * U * mean) + U * want);
        }
    }
}

/* x / sqrt(row / mean(row) col) for a matrix, from the averages written: six roundings. */
static void scaled(const slice *s, size_t matrix, int slot, const float *x, double factor,
                   double *out)
{
    const float *row = s->state[slot] + matrix * s->rows,
                *col = s->state[slot + 1] + matrix * s->cols;
    double mean = 0.0;
    for (size_t i = 0; i < s->rows; i++) mean += (double)row[i];
    mean = factor * sqrt(mean / (double)s->rows);
    for (size_t i = 0; i < s->rows; i++)
        for (size_t j = 0; j < s->cols; j++) {
            const size_t at = i * s->cols + j;
            out[at] = (double)x[at] * mean / sqrt((double)row[i]) / sqrt((double)col[j]);
        }
}

/* The factor that bounds the RMS of u, and how far u clipped may be off, relative. */
static double clip_factor(const slice *s, const double *u, double u_err, double *err)
{
    double sum = 0.0;
    for (size_t i = 0; i < s->n; i++) sum += u[i] * u[i];
    const double rms = sqrt(sum / (double)s->n) / s->h->clip_threshold;
    *err = 2.0 * u_err + (16.0 + 2.0) * U;
    const double factor = rms > 1.0 ? 1.0 / rms : 1.0;
    expect_stats(s, NAN, sqrt(sum), factor, *err);
    return factor;
}

static void check_came_m(const slice *s, size_t i, double u, double u_err)
{
    const double b = s->h->beta1, m0 = (double)s->state0[0][i], m = b * m0 + (1.0 - b) * u;
    expect(s, "m", i, s->state[0][i], m,
           U * (b * fabs(m0) + fabs(m)) + (1.0 - b) * fabs(u) * (u_err + 2.0 * U));
}

static void check_came2d(const slice *s)
{
    const largo_hyper *h = s->h;
    const size_t one = s->rows * s->cols;
    double *u = calloc(3 * s->n, sizeof *u), *square = u + s->n, *error = square + s->n, err;
    assert_non_null(u);
    for (size_t i = 0; i < s->n; i++) {
        square[i] = grad(s, i) * grad(s, i);
        error[i] = 2.0 * s->g_err * square[i];
    }
    for (size_t k = 0; k < s->matrices; k++) {
        check_lines(s, k, 1, h->beta2, h->eps, square + k * one, error + k * one);
        scaled(s, k, 1, s->g + k * one, s->scale, u + k * one);
    }
    const double f = clip_factor(s, u, 6.0 * U + s->g_err, &err);
    for (size_t i = 0; i < s->n; i++) {
        check_came_m(s, i, u[i] * f, err);
        const double e = u[i] * f - (double)s->state[0][i];
        square[i] = e * e;
        error[i] = 2.0 * fabs(e) * (err * fabs(u[i] * f) + U * fabs(e));
    }
    for (size_t k = 0; k < s->matrices; k++) {
        check_lines(s, k, 3, h->beta3, h->eps2, square + k * one, error + k * one);
        scaled(s, k, 3, s->state[0] + k * one, 1.0, u + k * one);
    }
    for (size_t i = 0; i < s->n; i++) check_decayed(s, i, u[i], 6.0 * U * fabs(u[i]));
    free(u);
}

static void check_came1d(const slice *s)
{
    const largo_hyper *h = s->h;
    const double in = 1.0 - h->beta2;
    double *u = calloc(s->n, sizeof *u), err;
    assert_non_null(u);
    for (size_t i = 0; i < s->n; i++) {
        const double g = grad(s, i), v0 = (double)s->state0[1][i], q = g * g + h->eps;
        const double v = h->beta2 * v0 + in * q;
        expect(s, "v", i, s->state[1][i], v,
               U * (h->beta2 * v0 + 4.0 * in * q + v) + 2.0 * in * s->g_err * g * g);
        u[i] = g / sqrt((double)s->state[1][i]);
    }
    const double f = clip_factor(s, u, 2.0 * U + s->g_err, &err);
    for (size_t i = 0; i < s->n; i++) {
        check_came_m(s, i, u[i] * f, err);
        check_decayed(s, i, (double)s->state[0][i], 0.0);
    }
    free(u);
}

static void check_slice(const slice *s)
{
    switch ((int)s->h->algo) {
    case LARGO_SGD:
        check_sgd(s);
        break;
    case LARGO_ADAMW:
        check_adamw(s);
        break;
    case LARGO_LARS:
        check_lars(s);
        break;
    case LARGO_LAMB:
        check_lamb(s);
        break;
    default:
        s->whole->shape.ndim >= 2 ? check_came2d(s) : check_came1d(s);
    }
}

static void set_view(slice *s, const largo_tensor *shape, size_t segments)
{
    const int32_t ndim = shape->ndim;
    if (ndim < 2) return;
    s->cols = (size_t)shape->shape[ndim - 1];
    s->rows = (size_t)shape->shape[ndim - 2] / (ndim == 2 ? segments : 1);
    s->matrices = s->n / s->rows / s->cols;
}

void probe_check(const probe *q, const largo_hyper *h, double scale)
{
    const size_t segments = q->segments > 1 ? (size_t)q->segments : 1, n = q->n / segments;
    for (size_t i = 0; i < segments; i++) {
        slice s;
        memset(&s, 0, sizeof s);
        s.h = h;
        s.whole = q;
        s.n = n;
        s.segment = i;
        set_view(&s, &q->shape, segments);
        s.p0 = q->p0 + i * n;
        s.p = q->p + i * n;
        s.g = q->g0 + i * n;
        for (size_t k = 0; k < q->slots; k++) {
            s.state0[k] = q->state0[k] + q->slot_n[k] / segments * i;
            s.state[k] = q->state[k] + q->slot_n[k] / segments * i;
        }
        s.wd = q->flags & LARGO_PARAM_NO_DECAY ? 0.0 : h->weight_decay;
        s.bias1 = 1.0 - pow(h->beta1, PROBE_STEP);
        s.bias2 = 1.0 - pow(h->beta2, PROBE_STEP);
        s.stats = &q->stats[i];
        s.scale = scale;
        s.g_err = scale == 1.0 ? 0.0 : 17.0 * U;
        check_slice(&s);
    }
}
