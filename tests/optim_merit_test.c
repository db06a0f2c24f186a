/* labels: oracle short every-isa
 *
 * MERIT against golden/merit.json: maxima of rows, columns and segment, two terms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support_golden.h"

static const golden_state states[] = {{"m", "exp_avg", 1e-5}, {"v", "exp_avg_sq", 1e-5}};
enum { STATES = sizeof states / sizeof *states };

/* Views of more than two dimensions are not built. */
static int is_nd(const cJSON *test)
{
    const cJSON *tensor;
    cJSON_ArrayForEach(tensor, golden_get(test, "tensors"))
    {
        if (cJSON_GetArraySize(golden_get(tensor, "shape")) > 2) return 1;
    }
    return 0;
}

static void vectors(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    cJSON *file = golden_load("merit.json");
    const cJSON *test;
    int ok = 0, rejected = 0, skipped = 0;
    cJSON_ArrayForEach(test, golden_get(file, "cases"))
    {
        if (is_nd(test)) {
            print_message("skipped, more than two dimensions are not built: %s\n",
                          golden_get(test, "name")->valuestring);
            skipped++;
        } else if (strcmp(golden_get(test, "fp32")->valuestring, "ok") != 0) {
            golden_check_rejected(ctx, test, LARGO_MERIT);
            rejected++;
        } else {
            golden_check_case(ctx, GOLDEN_STEP, test, LARGO_MERIT, STATES, states);
            golden_check_case(ctx, GOLDEN_OBJECT, test, LARGO_MERIT, STATES, states);
            ok++;
        }
    }
    print_message("merit: %d cases, %d refused, %d skipped\n", ok, rejected, skipped);
    assert_int_equal(ok, 78);
    assert_int_equal(rejected, 2);
    assert_int_equal(skipped, 7);
    cJSON_Delete(file);
    largo_ctx_destroy(ctx);
}

/* Maxima over the seams of tiles and super tiles, a zero row and a zero column, against plain loops in
 * double over the values that float arithmetic gives. */
static double largest(const float *x, int64_t n, int64_t stride)
{
    double most = 0.0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i * stride]));
    return most;
}

/* One step from m = v = 0 with betas 0: u = g / (|g| + eps) + weight_decay w. */
static void seam(int64_t rows, int64_t cols, int threads, double lr)
{
    const size_t n = (size_t)(rows * cols);
    float *w = test_floats(n), *g = test_floats(n), *u = test_floats(n), *old = test_floats(n);
    float *m = test_floats(n), *v = test_floats(n);
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        w[i] = (float)((double)(x >> 40) * 0x1p-24 - 0.5);
        g[i] = (float)((double)(x >> 20 & 0xfffff) * 0x1p-30 - 0x1p-11);
        if ((int64_t)i / cols == rows / 2) w[i] = 0.0f;
        if ((int64_t)i % cols == cols / 3) g[i] = w[i] = 0.0f;
    }
    w[n - 1] = 3.0f; /* the largest of all, in the last tile */
    memcpy(old, w, n * sizeof *w);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_MERIT));
    h.beta1 = h.beta2 = 0.0;
    h.weight_decay = 0.125;
    h.eps = 0x1p-12;
    h.lr = lr;
    h.clip_threshold = 0.75;
    largo_param p = {0};
    p.value = (largo_tensor){w, LARGO_F32, 2, {rows, cols}};
    p.grad = (largo_tensor){g, LARGO_F32, 2, {rows, cols}};
    p.state[0] = m;
    p.state[1] = v;
    largo_ctx *ctx = test_ctx(threads);
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    for (size_t i = 0; i < n; i++)
        u[i] = (float)((double)g[i] / (fabs((double)g[i]) + 0x1p-12) + 0.125 * (double)old[i]);
    const double all = largest(old, (int64_t)n, 1) / largest(u, (int64_t)n, 1);
    double *r = malloc((size_t)rows * sizeof *r);
    for (int64_t i = 0; i < rows; i++) {
        const double a = largest(old + i * cols, cols, 1), b = largest(u + i * cols, cols, 1);
        r[i] = a == 0.0 || b == 0.0 ? -1.0 : a / b;
    }
    for (int64_t j = 0; j < cols; j++) {
        const double a = largest(old + j, rows, cols), b = largest(u + j, rows, cols);
        const double c = a == 0.0 || b == 0.0 ? -1.0 : a / b;
        for (int64_t i = 0; i < rows; i++) {
            const size_t at = (size_t)(i * cols + j);
            const double s = c < 0.0 || r[i] < 0.0 ? 1.0 : fmax(fmax(r[i], c), all);
            const double d = fmin(fmax(s * (double)u[at], -0.75), 0.75);
            const double want = (double)old[at] - lr * d;
            if (fabs((double)w[at] - want) > 1e-6 * lr + 0x1p-23 * fabs(want))
                fail_msg("%lld x %lld, [%lld, %lld]: %g, want %g", (long long)rows, (long long)cols,
                         (long long)i, (long long)j, (double)w[at], want);
        }
    }
    largo_ctx_destroy(ctx);
    free(r), free(w), free(g), free(u), free(old), free(m), free(v);
}

static void seams(void **state)
{
    (void)state;
    static const int64_t shape[][2] = {{257, 4097}, {513, 130}, {33, 4096}, {32, 4097},
                                       {1, 70000},  {70000, 1}, {256, 128}, {7, 5}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int threads = 1; threads <= 3; threads++) seam(shape[i][0], shape[i][1], threads, 0.5);
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
