/* labels: oracle short every-isa
 *
 * The numeric traps of the specification, each with the figure that a naive implementation gives.
 * T4 is also in optim_seams_test.c, T1 and T2 concern every norm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support_probe.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static largo_hyper hyper(largo_algo algo, double lr)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algo));
    h.lr = lr;
    h.weight_decay = 0.0;
    if (algo == LARGO_LARS) h.trust_coefficient = 1.0;
    return h;
}

static void check_near(const char *what, double got, double want, double relative)
{
    if (fabs(got - want) <= relative * fabs(want)) return;
    fail_msg("%s: %.17g, wanted %.17g; off by %.3g of it, allowed %.3g", what, got, want,
             fabs(got - want) / fabs(want), relative);
}

static double norm(const float *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* ---- T1, T2: |w' - w| = lr |w| ---- */

/* Length of the first step of LAMB or LARS over lr |w|: 1, up to rounding. */
static double step_length(largo_algo algo, const float *w0, const float *g, size_t n, double lr)
{
    largo_ctx *ctx = test_ctx(2);
    const largo_hyper h = hyper(algo, lr);
    float *w = test_floats(n), *m = test_floats(n), *v = test_floats(n);
    memcpy(w, w0, n * sizeof *w);
    largo_param p = largo_param_f32(w, g, (int64_t)n, 1);
    p.state[0] = m;
    p.state[1] = v;
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)w[i] - (double)w0[i];
        sum += d * d;
    }
    free(w);
    free(m);
    free(v);
    largo_ctx_destroy(ctx);
    return sqrt(sum) / (lr * norm(w0, n));
}

/* The bound, 1e-6, is 16 roundings: lr ratio, u, and half the error of two sums in lanes of 32,
 * which is far smaller than its worst case. A float sum in one go is off by 1e-4 and more here. */
static void t1_norm_of_many(void **state)
{
    (void)state;
    const size_t n = (size_t)1 << 24;
    float *w = test_floats(n), *g = test_floats(n), naive = 0.0f;
    test_fill(w, n, 3, 0, 1);
    test_fill(g, n, 4, -3, 2);
    for (size_t i = 0; i < n; i++) naive += w[i] * w[i];
    const double off = sqrt((double)naive) / norm(w, n) - 1.0;
    for (int lars = 0; lars < 2; lars++) {
        const double length = step_length(lars ? LARGO_LARS : LARGO_LAMB, w, g, n, 0.5);
        print_message("T1: step length off by %.2g; a naive float norm by %.2g\n", length - 1.0,
                      off);
        check_near("step length over lr |w|, 2^24 elements", length, 1.0, 1e-6);
    }
    assert_true(fabs(off) > 1e-4);
    free(w);
    free(g);
}

/* Gradients of size g against weights of size w. */
static double tiny_step_length(largo_algo algo, double g_size, double w_size)
{
    enum { N = 10000 };
    float *w = test_floats(N), *g = test_floats(N);
    test_fill(w, N, 3, 0, 1);
    test_fill(g, N, 4, 0, 1);
    for (int i = 0; i < N; i++) {
        w[i] *= (float)w_size;
        g[i] *= (float)g_size;
    }
    const double length = step_length(algo, w, g, N, 0.5);
    free(w);
    free(g);
    return length;
}

static void t2_squares_out_of_range(void **state)
{
    (void)state;
    static const double size[][2] = {{1e-28, 1.0},  {1e-30, 1.0},  {1e-30, 1e-30}, {1e-28, 1e-30},
                                     {1e-28, 1e15}, {1e-30, 1e13}, {1e-2, 1e-30},  {1e-2, 1e30},
                                     {1e18, 1e-30}, {1e18, 1e30}};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
        char what[80];
        snprintf(what, sizeof what, "step length over lr |w|, g %g, w %g", size[k][0], size[k][1]);
        check_near(what, tiny_step_length(LARGO_LAMB, size[k][0], size[k][1]), 1.0, 1e-6);
        check_near(what, tiny_step_length(LARGO_LARS, size[k][0], size[k][1]), 1.0, 1e-6);
    }
}

/* What float norms made a step of 0: from 1e20 on. LARS has no limit at 2^64. */
static void t2_large_gradients_of_lars(void **state)
{
    (void)state;
    static const double size[] = {1e19, 1e20, 1e25, 1e30, 1e38};
    for (size_t k = 0; k < sizeof size / sizeof *size; k++)
        check_near("step length over lr |w|", tiny_step_length(LARGO_LARS, size[k], 1.0), 1.0,
                   1e-6);
}

/* lr ratio is no float: 1e51, 1e76, and 1e-30. The step is lr |w| all the same. */
static void t2_ratio_past_float(void **state)
{
    (void)state;
    static const double gw[3][2] = {{1e-28, 1e30}, {1e-40, 1e30}, {1e18, 1e-30}};
    for (int i = 0; i < 3; i++) {
        const double length = tiny_step_length(LARGO_LAMB, gw[i][0], gw[i][1]);
        if (fabs(length - 1.0) > (gw[i][0] < 1e-38 ? 1e-4 : 1e-6))
            fail_msg("g %g, w %g: step length %.9g of lr |w|", gw[i][0], gw[i][1], length);
    }
}

/* The factors of a matrix of equal rows are both near 2^63; their product with m is no float. */
static void t4_small_eps2(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    largo_hyper h = hyper(LARGO_CAME, 2e-4);
    h.beta1 = 0.0;
    h.eps2 = 0x1p-126;
    float w[4] = {1, 1, 1, 1}, g[4] = {1, 2, 3, 4}, m[4] = {0}, line[4][2] = {{0}};
    largo_param p = largo_param_f32(w, g, 2, 2);
    p.state[0] = m;
    for (int i = 0; i < 4; i++) p.state[i + 1] = line[i];
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    for (int i = 0; i < 4; i++)
        if (!(w[i] < -1e17f && w[i] > -1e18f)) fail_msg("w[%d] is %g", i, (double)w[i]);
    largo_ctx_destroy(ctx);
}

/* The limit is that of the gradient as it enters the moments: after the clip. */
static void t8_clip_tames(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    largo_hyper h = hyper(LARGO_LAMB, 0.5);
    h.max_grad_norm = 1.0;
    float w = 1.0f, g = 0x1p100f, m = 0.0f, v = 0.0f;
    largo_param p = largo_param_f32(&w, &g, 1, 1);
    p.state[0] = &m;
    p.state[1] = &v;
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    assert_true(fabsf(m - 0.1f) < 1e-7f);
    g = INFINITY;
    assert_status(LARGO_SKIPPED, largo_step(ctx, &h, 2, 1, &p));
    largo_ctx_destroy(ctx);
}

/* A clip to just below 2^64 in double is 2^64 in float, whose square is not. */
static void t8_clip_rounds_up(void **state)
{
    (void)state;
    static const largo_algo algo[] = {LARGO_ADAMW, LARGO_LAMB, LARGO_CAME, LARGO_MERIT};
    /* the largest double that rounds to a float below 2^64, and the smallest that does not */
    const double bound[2] = {nextafter(0x1.ffffffp63, 0.0), 0x1.ffffffp63};
    largo_ctx *ctx = test_ctx(1);
    for (int k = 0; k < 8; k++) {
        largo_hyper h = hyper(algo[k / 2], 0x1p-4);
        h.max_grad_norm = bound[k % 2];
        float w = 1.0f, g = 0x1p100f, m = 0.0f, v = 0.0f;
        largo_param p = largo_param_f32(&w, &g, 1, 1);
        p.state[0] = &m;
        p.state[1] = &v;
        assert_status(k % 2 ? LARGO_SKIPPED : LARGO_OK, largo_step(ctx, &h, 1, 1, &p));
        assert_true(isfinite(v) && (k % 2 ? v == 0.0f : v > 0.0f));
    }
    largo_ctx_destroy(ctx);
}

/* ---- T3: 1 - beta is formed in double ---- */

static void first_step(const largo_hyper *h, float *w, float g, float state[5])
{
    largo_ctx *ctx = test_ctx(1);
    largo_param p = largo_param_f32(w, &g, 1, 1);
    if (h->algo == LARGO_CAME) p.value.ndim = p.grad.ndim = 2;
    for (int s = 0; s < 5; s++) p.state[s] = &state[s];
    assert_ok(largo_step(ctx, h, 1, 1, &p));
    largo_ctx_destroy(ctx);
}

/* 1 - 0.9999f is off by 1.7e-4: the second moment would be, and half of it the step. */
static void t3_one_minus_beta(void **state)
{
    (void)state;
    static const double beta2[] = {0.999, 0.9999, 0.99999, 0.98};
    static const largo_algo algo[] = {LARGO_ADAMW, LARGO_LAMB};
    for (int k = 0; k < 16; k++) {
        largo_hyper h = hyper(algo[k & 1], 1.0);
        h.beta2 = beta2[k >> 2];
        h.beta1 = 0.9;
        if (k & 2) h.bias_correction = LARGO_OFF;
        if (k & 1) h.adapt = LARGO_ADAPT_NEVER;
        float w = 0.0f, s[5] = {0};
        first_step(&h, &w, 0.5f, s);
        const double m = (1.0 - 0.9) * 0.5, v = (1.0 - h.beta2) * 0.25;
        const double u = k & 2 ? m / (sqrt(v) + h.eps) : 0.5 / (0.5 + h.eps);
        check_near("first moment", (double)s[0], m, 0x1p-23);
        check_near("second moment", (double)s[1], v, 0x1p-22);
        check_near("first step", (double)w, -u, 5e-7);
    }
    largo_hyper h = hyper(LARGO_CAME, 1.0);
    h.beta2 = 0.9999;
    h.beta3 = 0.99999;
    float w = 0.0f, s[5] = {0};
    first_step(&h, &w, 0.5f, s); /* u = 0.5 / sqrt(v) = 100, clipped to 1; m = 0.1, u - m = 0.9 */
    check_near("CAME m", (double)s[0], 1.0 - 0.9, 1e-6);
    for (int i = 1; i < 3; i++)
        check_near("CAME r, c", (double)s[i], (1.0 - 0.9999) * 0.25, 0x1p-23);
    for (int i = 3; i < 5; i++) check_near("CAME R, C", (double)s[i], (1.0 - 0.99999) * 0.81, 1e-6);
}

/* ---- T4: a row without gradient ---- */

/* Rows of up to 2^63, whose squares overflow in float, beside a row of zeros; c and r of 1e-33 make
 * the product of their factors overflow. The zero row must stand still and the others must move as
 * the reference does. */
static void t4_zero_row(void **state)
{
    (void)state;
    const int64_t shape[2] = {40, 300};
    const largo_hyper h = hyper(LARGO_CAME, 0x1p-4);
    for (int exponent = 0; exponent <= 63; exponent += 9) {
        probe q;
        probe_open(&q, &h, 2, shape, 0, 0);
        probe_fill(&q, ZERO_LINES_BIG, 5);
        for (size_t i = 0; i < q.n; i++) q.g0[i] *= (float)ldexp(1.0, exponent - 30);
        probe_reset(&q);
        largo_ctx *ctx = test_ctx(1);
        const largo_param p = probe_param(&q, 0);
        assert_ok(largo_step(ctx, &h, 1, 1, &p));
        probe_check(&q, &h, 1.0);
        for (size_t j = 0; j < 300; j++) assert_true(q.p[300 + j] == q.p0[300 + j]);
        largo_ctx_destroy(ctx);
        probe_close(&q);
    }
}

/* ---- T8: gradients whose squares overflow ---- */

static void t8_limit(void **state)
{
    (void)state;
    static const largo_algo algo[] = {LARGO_ADAMW, LARGO_LAMB, LARGO_CAME, LARGO_MERIT};
    const float below = nextafterf(0x1p64f, 0.0f);
    largo_ctx *ctx = test_ctx(1);
    for (int k = 0; k < 24; k++) {
        largo_hyper h = hyper(algo[k % 4], 0x1p-4);
        const int sign = k / 4 % 2 ? -1 : 1;
        h.grad_scale = k < 8 ? 1.0 : k < 16 ? 0x1p-40 : 0x1p40;
        float w[3] = {1, 2, 3}, g[3] = {0.5f, 0, 0.25f}, s[5][3] = {{0}};
        largo_param p = largo_param_f32(w, g, 3, 1);
        for (int i = 0; i < 5; i++) p.state[i] = s[i];
        g[1] = (float)(0x1p64 / h.grad_scale * sign);
        assert_status(LARGO_SKIPPED, largo_step(ctx, &h, 1, 1, &p));
        largo_outcome o = {sizeof o, 0, 0, 0, 0, 0.0, 0.0};
        assert_ok(largo_last_outcome(ctx, &o));
        assert_true(o.skipped && o.bad_param == 0 && o.bad_element == 1);
        h.non_finite = LARGO_NON_FINITE_ERROR;
        assert_status(LARGO_ERR_NON_FINITE, largo_step(ctx, &h, 1, 1, &p));
        assert_true(w[0] == 1.0f && w[1] == 2.0f && w[2] == 3.0f && s[0][1] == 0.0f);
        g[1] = (float)((double)below / h.grad_scale * sign);
        assert_ok(largo_step(ctx, &h, 1, 1, &p));
        for (int i = 0; i < 3; i++)
            assert_true(isfinite(w[i]) && isfinite(s[0][i]) && isfinite(s[1][i]));
    }
    largo_ctx_destroy(ctx);
}

/* Algorithms that keep no square have no limit but float's own, after the scale. */
static void t8_no_limit(void **state)
{
    (void)state;
    static const largo_algo algo[] = {LARGO_SGD, LARGO_LARS};
    largo_ctx *ctx = test_ctx(1);
    for (int k = 0; k < 4; k++) {
        largo_hyper h = hyper(algo[k % 2], algo[k % 2] == LARGO_SGD ? 1e-30 : 0.5);
        h.momentum = k < 2 ? 0.9 : 0.0;
        float w[2] = {3, 4}, g[2] = {6e29f, 8e29f}, m[2] = {0};
        const double want[2] = {k % 2 ? 1.5 : 2.4, k % 2 ? 2.0 : 3.2};
        largo_param p = largo_param_f32(w, g, 2, 1);
        p.state[0] = m;
        assert_ok(largo_step(ctx, &h, 1, 1, &p));
        for (int i = 0; i < 2; i++) check_near("w after 1e30", (double)w[i], want[i], 1e-6);
        h.grad_scale = 1e10; /* no float any more */
        assert_status(LARGO_SKIPPED, largo_step(ctx, &h, 2, 1, &p));
        for (int i = 0; i < 2; i++) check_near("w after a skip", (double)w[i], want[i], 1e-6);
    }
    largo_ctx_destroy(ctx);
}

/* After 2^63 an element stands still while v decays; beta2 = 0.5 lets it recover soon. m, v, w in
 * double, with a running bound on what rounding may have made of each. */
typedef struct follower {
    double m, v, w, m_err, v_err, w_err;
} follower;

static void follow(follower *f, const largo_hyper *h, double g, int t)
{
    const double u = 0x1p-24, b = h->beta1, c = h->beta2;
    f->m_err = b * f->m_err + 2.0 * u * (b * fabs(f->m) + (1.0 - b) * fabs(g));
    f->v_err = c * f->v_err + 4.0 * u * (c * f->v + (1.0 - c) * g * g);
    f->m = b * f->m + (1.0 - b) * g;
    f->v = c * f->v + (1.0 - c) * g * g;
    const double root = sqrt(f->v / (1.0 - pow(c, t))) + h->eps, bias = 1.0 - pow(b, t);
    const double step = f->m / bias / root;
    f->w_err += h->lr * (f->m_err / bias / root + fabs(step) * (f->v_err / f->v + 7.0 * u));
    f->w -= h->lr * step;
    f->w_err += u * fabs(f->w);
}

static void follow_check(const char *what, int t, float got, double want, double tol)
{
    if (fabs((double)got - want) > tol)
        fail_msg("%s, step %d after 2^63: %.9g, wanted %.17g within %.3g", what, t, (double)got,
                 want, tol);
}

static void t8_recovers(void **state)
{
    (void)state;
    largo_hyper h = hyper(LARGO_ADAMW, 0x1p-4);
    h.beta2 = 0.5;
    h.beta1 = 0.25;
    largo_ctx *ctx = test_ctx(1);
    float w = 1.0f, before = 0.0f, sm = 0.0f, sv = 0.0f;
    follower f = {0.0, 0.0, 1.0, 0.0, 0.0, 0.0};
    for (int t = 1; t <= 160; t++) {
        float g = t == 1 ? -0x1p63f : 0.25f;
        largo_param p = largo_param_f32(&w, &g, 1, 1);
        p.state[0] = &sm;
        p.state[1] = &sv;
        before = w;
        assert_ok(largo_step(ctx, &h, t, 1, &p));
        follow(&f, &h, (double)g, t);
        follow_check("m", t, sm, f.m, f.m_err);
        follow_check("v", t, sv, f.v, f.v_err);
        follow_check("w", t, w, f.w, f.w_err);
        if (t == 60) assert_true(w == before); /* stands still */
    }
    check_near("the last step is lr again", (double)before - (double)w, h.lr, 1e-5);
    largo_ctx_destroy(ctx);
}

/* ---- T9: what the caller has done to its floating-point control ---- */

#if defined(__x86_64__)
enum { N = 40000, CONTROLS = 5 };

/* Even elements: g and m about 1e-40. Odd ones: g^2 about 1e-42. v about 1e-41. */
static void fill_tiny(probe *q)
{
    for (size_t i = 0; i < q->n; i++) {
        q->g0[i] *= i % 2 ? 0x1p-66f : 0x1p-128f;
        q->state0[0][i] *= 0x1p-128f;
    }
    for (size_t s = 1; s < q->slots; s++)
        for (size_t i = 0; i < q->slot_n[s]; i++) q->state0[s][i] *= 0x1p-122f;
}

static size_t subnormals(const probe *q, size_t slot)
{
    size_t n = 0;
    for (size_t i = 0; i < q->slot_n[slot]; i++) {
        assert_true(isfinite(q->state[slot][i]));
        n += fpclassify(q->state[slot][i]) == FP_SUBNORMAL;
    }
    return n;
}

/* Hash of a step under a control word; it must be found as it was left. */
static uint64_t hash_under(unsigned control, const largo_hyper *h, probe *q, int threads)
{
    probe_reset(q);
    largo_ctx *ctx = test_ctx(threads);
    const largo_param p = probe_param(q, 0);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(control);
    const largo_status status = largo_step(ctx, h, 1, 1, &p);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    assert_ok(status);
    if (after != control) fail_msg("MXCSR was %04x and came back as %04x", control, after);
    largo_ctx_destroy(ctx);
    return probe_hash(0, q);
}

static void t9_control_word(void **state)
{
    (void)state;
    /* as the ABI has it; FTZ and DAZ; with rounding up; to zero; DAZ alone */
    static const unsigned control[CONTROLS] = {0x1f80, 0x9fc0, 0xdfc0, 0x7f80, 0x1fc0};
    enum { ALGOS = 5 };
    static const largo_algo algo[ALGOS] = {LARGO_SGD, LARGO_ADAMW, LARGO_LARS, LARGO_LAMB,
                                           LARGO_CAME};
    const int64_t shape[2] = {N / 100, 100};
    for (int k = 0; k < 2 * ALGOS; k++) {
        largo_hyper h = hyper(algo[k % ALGOS], 0.1);
        if (h.algo == LARGO_SGD) h.momentum = 0.9;
        if (h.algo == LARGO_LARS) h.velocity = LARGO_VELOCITY_GRAD;
        if (h.algo == LARGO_CAME) h.eps = 0x1p-126;
        probe q;
        probe_open(&q, &h, k < ALGOS ? 1 : 2, k < ALGOS ? (const int64_t[]){N} : shape, 0, 0);
        probe_fill(&q, NORMAL, 9);
        fill_tiny(&q);
        const uint64_t want = hash_under(control[0], &h, &q, 1);
        const size_t found = subnormals(&q, 0), second = q.slots > 1 ? subnormals(&q, 1) : 0;
        if (h.algo != LARGO_CAME && found < N / 10) fail_msg("m: %zu subnormals", found);
        if (q.slots > 1 && second < q.slot_n[1] / 10) fail_msg("v: %zu subnormals", second);
        for (int c = 1; c < CONTROLS; c++)
            for (int threads = 1; threads <= 3; threads++)
                if (hash_under(control[c], &h, &q, threads) != want)
                    fail_msg("algorithm %d: other bits under MXCSR %04x, %d threads", (int)h.algo,
                             control[c], threads);
        probe_close(&q);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(t1_norm_of_many),
        cmocka_unit_test(t2_squares_out_of_range),
        cmocka_unit_test(t2_large_gradients_of_lars),
        cmocka_unit_test(t2_ratio_past_float),
        cmocka_unit_test(t3_one_minus_beta),
        cmocka_unit_test(t4_zero_row),
        cmocka_unit_test(t4_small_eps2),
        cmocka_unit_test(t8_limit),
        cmocka_unit_test(t8_no_limit),
        cmocka_unit_test(t8_clip_tames),
        cmocka_unit_test(t8_clip_rounds_up),
        cmocka_unit_test(t8_recovers),
#if defined(__x86_64__)
        cmocka_unit_test(t9_control_word),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
