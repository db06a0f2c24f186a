/* labels: short
 *
 * Choice of the instruction set (H67), number of threads, and the floating-point control of the
 * host's thread: it neither changes bits nor is changed. */
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static char given[32]; /* LARGO_ISA as the test found it */

static void restore(void)
{
    if (*given)
        setenv("LARGO_ISA", given, 1);
    else
        unsetenv("LARGO_ISA");
}

/* Every instruction set that largo knows. */
static size_t all_isas(largo_capability isas[16])
{
    largo_capability list[32];
    size_t n, found = 0;
    assert_ok(largo_capabilities(32, list, &n));
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].kind, "isa") == 0) isas[found++] = list[i];
    return found;
}

static largo_status create(const char *isa, int threads, largo_ctx **ctx)
{
    largo_ctx_options o = LARGO_CTX_OPTIONS;
    o.threads = threads;
    if (isa)
        setenv("LARGO_ISA", isa, 1);
    else
        unsetenv("LARGO_ISA");
    const largo_status status = largo_ctx_create(&o, ctx);
    restore();
    return status;
}

static void h67_isa_by_name(void **state)
{
    (void)state;
    largo_capability isas[16] = {{0}};
    const size_t n = all_isas(isas);
    const char *best = "";
    for (size_t i = 0; i < n; i++)
        if (isas[i].available) best = isas[i].name;
    char want[64];
    largo_ctx *ctx;
    for (size_t i = 0; i < n; i++) {
        const largo_status status = create(isas[i].name, 2, &ctx);
        if (isas[i].available) {
            assert_ok(status);
            snprintf(want, sizeof want, "cpu %s, 2 threads", isas[i].name);
            assert_string_equal(largo_ctx_name(ctx), want);
            largo_ctx_destroy(ctx);
        } else {
            assert_status(LARGO_ERR_UNSUPPORTED, status);
            assert_null(ctx);
            const char *const parts[3] = {isas[i].name, isas[i].reason, best};
            for (int p = 0; p < 3; p++)
                test_assert_contains(largo_last_error(), parts[p], __FILE__, __LINE__);
        }
    }
    const char *const unset[2] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        assert_ok(create(unset[i], 1, &ctx));
        snprintf(want, sizeof want, "cpu %s, 1 thread", best);
        assert_string_equal(largo_ctx_name(ctx), want);
        largo_ctx_destroy(ctx);
    }
}

static void h67_unknown_isa_is_refused(void **state)
{
    (void)state;
    const char *const names[6] = {"AVX2", "avx", "avx2 ", "avx5122", "none", "\xff\xfe"};
    for (int i = 0; i < 6; i++) {
        largo_ctx *ctx = (largo_ctx *)1;
        assert_refused(LARGO_ERR_ARGUMENT, "LARGO_ISA", create(names[i], 1, &ctx));
        test_assert_contains(largo_last_error(), names[i], __FILE__, __LINE__);
        assert_null(ctx);
    }
    char endless[5000];
    memset(endless, 'a', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    largo_ctx *ctx;
    assert_refused(LARGO_ERR_ARGUMENT, "the best here is", create(endless, 1, &ctx));
}

/* The order is that of ability: whatever is below an instruction set that is here is here too. */
static void isas_are_listed_from_the_lowest(void **state)
{
    (void)state;
    largo_capability isas[16] = {{0}};
    const size_t n = all_isas(isas);
    assert_true(n >= 1);
    assert_string_equal(isas[0].name, "scalar");
    assert_true(isas[0].available);
    for (size_t i = 1; i < n; i++) assert_true(isas[i - 1].available >= isas[i].available);
#if defined(__x86_64__)
    assert_int_equal(n, 4);
    assert_string_equal(isas[3].name, "neon");
    assert_int_equal(isas[3].available, 0);
    assert_string_equal(isas[3].reason, "this build is for x86-64");
    assert_string_equal(isas[1].name, "avx2");
    assert_string_equal(isas[2].name, "avx512");
    __builtin_cpu_init();
    assert_int_equal(isas[1].available,
                     __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    assert_int_equal(isas[2].available,
                     __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
#elif defined(__aarch64__)
    assert_int_equal(n, 4);
    assert_string_equal(isas[1].name, "neon");
    assert_int_equal(isas[1].available, 1);
    assert_string_equal(isas[2].reason, "this build is for AArch64");
#endif
}

static void serial(void *user, size_t n, void (*body)(void *arg, size_t i), void *arg)
{
    (void)user;
    for (size_t i = 0; i < n; i++) body(arg, i);
}

static void numbers_of_threads(void **state)
{
    (void)state;
    const int threads[3] = {1, 5, 1024};
    char want[32];
    for (int i = 0; i < 3; i++) {
        largo_ctx *ctx;
        assert_ok(create("scalar", threads[i], &ctx));
        snprintf(want, sizeof want, "cpu scalar, %d thread%s", threads[i], i ? "s" : "");
        assert_string_equal(largo_ctx_name(ctx), want);
        largo_ctx_destroy(ctx);
    }
    largo_ctx_options o = LARGO_CTX_OPTIONS;
    o.parallel = serial;
    largo_ctx *ctx;
    assert_ok(largo_ctx_create(&o, &ctx));
    test_assert_contains(largo_ctx_name(ctx), ", 1 thread", __FILE__, __LINE__);
    assert_null(strstr(largo_ctx_name(ctx), "threads"));
    largo_ctx_destroy(ctx);
}

/* ---- the host's floating-point control ---- */

enum { N = 70000 };

/* Made under the default control: some are subnormal. */
static float inputs[2 * N];

typedef struct result {
    uint64_t hash;
    double lr, object_lr; /* as largo_schedule_lr says, as the object used it */
} result;

/* LAMB with subnormals in all places, as an object with a schedule, so that every part computes. */
static result run(largo_parallel_fn *parallel, int threads)
{
    float *x = test_floats(2 * N);
    memcpy(x, inputs, sizeof inputs);
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = threads;
    options.parallel = parallel;
    largo_ctx *ctx;
    assert_ok(largo_ctx_create(&options, &ctx));
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_LAMB));
    h.max_grad_norm = 0x1p-60;
    h.eps = 1e-30;
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    const largo_param p = largo_param_f32(x, x + N, N, 1);
    assert_ok(largo_optim_add_group(o, &h, 1, &p, NULL));
    largo_schedule schedule = LARGO_SCHEDULE;
    schedule.decay = LARGO_DECAY_COSINE;
    schedule.lr = 0.1;
    schedule.total = 7;
    assert_ok(largo_optim_set_schedule(o, 0, &schedule));
    for (int t = 0; t < 3; t++) assert_ok(largo_optim_step(o));
    largo_tensor v;
    assert_ok(largo_optim_slot(o, 0, 0, "exp_avg_sq", &v));
    result r = {test_hash(test_hash(0, x, N), v.data, N), 0.0, largo_optim_hyper(o, 0)->lr};
    assert_ok(largo_schedule_lr(&schedule, 3, &r.lr));
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
    free(x);
    return r;
}

#if defined(__x86_64__)
/* Flags of exceptions are the host's to read, and a step may raise them. */
enum { CONTROL = 0xffc0 };

static result run_with(unsigned control, largo_parallel_fn *parallel, int threads)
{
    const unsigned before = _mm_getcsr();
    _mm_setcsr(control);
    const result r = run(parallel, threads);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    assert_int_equal(after & CONTROL, control & CONTROL);
    return r;
}

static void control_of_the_host(void **state)
{
    (void)state;
    const unsigned controls[8] = {0x9f80 | 0x40,      0x1f80 | 0x8000,     0x1f80 | 0x40,
                                  0x1900 /* traps */, 0x0100 /* but DE */, 0x1f80 | 0x2000,
                                  0x1f80 | 0x4000,    0x1f80 | 0x6000};
    const result want = run_with(0x1f80, NULL, 2);
    for (int i = 0; i < 8; i++)
        for (int threads = 1; threads <= 2; threads++) {
            const result plain = run_with(controls[i], NULL, threads);
            const result host = run_with(controls[i], serial, 3);
            if (plain.hash != want.hash || host.hash != want.hash)
                fail_msg("MXCSR %x changes bits", controls[i]);
        }
}

static void schedule_under_another_rounding(void **state)
{
    (void)state;
    const unsigned controls[3] = {0x1f80 | 0x2000, 0x1f80 | 0x4000, 0x1f80 | 0x6000};
    const result want = run_with(0x1f80, NULL, 1);
    for (int i = 0; i < 3; i++) {
        const result got = run_with(controls[i], NULL, 1);
        assert_true(got.object_lr == want.object_lr);
        assert_true(got.lr == want.lr);
    }
}
#endif

static void rounding_of_the_host(void **state)
{
    (void)state;
    const int modes[4] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    uint64_t want = 0;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        const result r = run(NULL, 2);
        const int after = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(after, modes[i]);
        if (i == 0) want = r.hash;
        assert_true(r.hash == want);
    }
}

int main(void)
{
    if (getenv("LARGO_ISA")) strncpy(given, getenv("LARGO_ISA"), sizeof given - 1);
    test_fill(inputs, N, 1, -100, 40);
    test_fill(inputs + N, N, 2, -60, 50);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h67_isa_by_name),
        cmocka_unit_test(h67_unknown_isa_is_refused),
        cmocka_unit_test(isas_are_listed_from_the_lowest),
        cmocka_unit_test(numbers_of_threads),
#if defined(__x86_64__)
        cmocka_unit_test(control_of_the_host),
        cmocka_unit_test(schedule_under_another_rounding),
#endif
        cmocka_unit_test(rounding_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
