/* labels: oracle short every-isa
 *
 * MERIT against golden/merit.json: maxima of rows, columns and segment, two terms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support_golden.h"

static const golden_state states[] = {{"m", "exp_avg", 1e-5}, {"v", "exp_avg_sq", 1e-5}};
enum { STATES = sizeof states / sizeof *states };

static const char *nd(const cJSON *test)
{
    return golden_is_nd(test) ? "more than two dimensions are not built" : NULL;
}

static void vectors(void **state)
{
    (void)state;
    golden_check_file(&(golden_file){.name = "merit.json",
                                     .algo = LARGO_MERIT,
                                     .n_states = STATES,
                                     .states = states,
                                     .why_not = nd,
                                     .ok = 78,
                                     .rejected = 2,
                                     .skipped = 7});
}

/* Maxima over the seams of tiles and super tiles, a zero row and a zero column, against plain loops in
 * double over the values that float arithmetic gives. */
static double largest(const float *x, int64_t n, int64_t stride)
{
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i * stride]));
    return most;
}

enum { ROWS = 0, COLS = 1 };
static const double LR = 0.5, CLIP = 0.25, DECAY = 0.125, EPS = 0x1p-12;

/* max|w| / max|u| of a line; -1 where one of them is zero. */
static double ratio(const float *w, const float *u, int64_t n, int64_t stride)
{
    const double a = largest(w, n, stride), b = largest(u, n, stride);
    return a == 0.0 || b == 0.0 ? -1.0 : a / b;
}

/* w after a step from `old` in direction u. */
static void check_seam(const int64_t shape[2], const float *old, const float *u, const float *w)
{
    const int64_t rows = shape[ROWS], cols = shape[COLS];
    const double all = ratio(old, u, rows * cols, 1);
    double *row = malloc((size_t)rows * sizeof *row);
    assert_non_null(row);
    for (int64_t i = 0; i < rows; i++) row[i] = ratio(old + i * cols, u + i * cols, cols, 1);
    for (int64_t j = 0; j < cols; j++) {
        const double col = ratio(old + j, u + j, rows, cols);
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = i * cols + j;
            const double s = col < 0.0 || row[i] < 0.0 ? 1.0 : fmax(fmax(row[i], col), all);
            const double d = fmin(fmax(s * (double)u[at], -CLIP), CLIP);
            const double want = (double)old[at] - LR * d;
            if (fabs((double)w[at] - want) > 1e-6 * LR + 0x1p-23 * fabs(want))
                fail_msg("%lld x %lld, [%lld, %lld]: %g, want %g", (long long)rows, (long long)cols,
                         (long long)i, (long long)j, (double)w[at], want);
        }
    }
    free(row);
}

/* One step from m = v = 0 with betas 0: u = g / (|g| + eps) + weight_decay w. */
static void seam(const int64_t shape[2], int threads)
{
    const int64_t rows = shape[ROWS], cols = shape[COLS];
    const size_t n = (size_t)(rows * cols);
    float *w = test_floats(n), *g = test_floats(n), *u = test_floats(n), *old = test_floats(n);
    float *m = test_floats(n), *v = test_floats(n);
    test_fill(w, n, 1, -4, 3);
    test_fill(g, n, 2, -11, 3);
    for (int64_t i = 0; i < rows * cols; i++) {
        if (i / cols % 3 == 1 || i % cols % 4 == 1) g[i] *= 0x1p-8f; /* lines whose ratio decides */
        if (i / cols == rows / 2) w[i] = 0.0f;
        if (i % cols == cols / 3) g[i] = w[i] = 0.0f;
    }
    w[n - 1] = 0.375f; /* the largest of all, in the last tile */
    memcpy(old, w, n * sizeof *w);
    for (size_t i = 0; i < n; i++)
        u[i] = (float)((double)g[i] / (fabs((double)g[i]) + EPS) + DECAY * (double)old[i]);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_MERIT));
    h.beta1 = h.beta2 = 0.0;
    h.weight_decay = DECAY;
    h.eps = EPS;
    h.lr = LR;
    h.clip_threshold = CLIP;
    largo_param p = {0};
    p.value = (largo_tensor){w, LARGO_F32, 2, {rows, cols}};
    p.grad = (largo_tensor){g, LARGO_F32, 2, {rows, cols}};
    p.state[0] = m;
    p.state[1] = v;
    largo_ctx *ctx = test_ctx(threads);
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    check_seam(shape, old, u, w);
    largo_ctx_destroy(ctx);
    free(w), free(g), free(u), free(old), free(m), free(v);
}

static void seams(void **state)
{
    (void)state;
    static const int64_t shape[][2] = {{257, 4097}, {513, 130}, {33, 4096}, {32, 4097},
                                       {1, 70000},  {70000, 1}, {256, 128}, {7, 5}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int threads = 1; threads <= 3; threads++) seam(shape[i], threads);
}

/* NaN is larger than any number: a NaN weight spoils the tensor, as in the authors' code. */
static void nan_weight(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    for (int32_t ndim = 1; ndim <= 2; ndim++) {
        float w[12], g[12], m[12] = {0}, v[12] = {0};
        for (int i = 0; i < 12; i++) w[i] = 1.0f, g[i] = 0.5f;
        w[5] = NAN;
        largo_hyper h;
        assert_ok(largo_hyper_init(&h, LARGO_MERIT));
        largo_param p = {0};
        p.value = (largo_tensor){w, LARGO_F32, ndim, {ndim == 2 ? 3 : 12, 4}};
        p.grad = p.value;
        p.grad.data = g;
        p.state[0] = m;
        p.state[1] = v;
        assert_ok(largo_step(ctx, &h, 1, 1, &p));
        for (int i = 0; i < 12; i++) assert_true(isnan(w[i]));
    }
    largo_ctx_destroy(ctx);
}

static void more_dimensions_are_refused(void **state)
{
    (void)state;
    float x[8] = {0};
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_MERIT));
    largo_param p = {0};
    p.value = (largo_tensor){x, LARGO_F32, 3, {2, 2, 2}};
    largo_slot slots[LARGO_MAX_SLOTS];
    size_t n;
    assert_int_equal(largo_slots(&h, &p, slots, &n), LARGO_ERR_SHAPE);
    assert_non_null(strstr(largo_last_error(), "ndim is 3; LARGO_MERIT takes at most 2"));
}

static void policies(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    assert_int_equal(golden_check_policies(ctx, "merit", LARGO_MERIT), 6);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors), cmocka_unit_test(seams), cmocka_unit_test(nan_weight),
        cmocka_unit_test(more_dimensions_are_refused), cmocka_unit_test(policies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
