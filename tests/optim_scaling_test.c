/* labels: oracle short no-valgrind
 *
 * Rates and warm-up at another batch against golden/schedule.json (1 ulp), by hand, in bits, under
 * the host's floating-point control, and every error. */
#include <fenv.h>
#include <math.h>
#include <string.h>
#include "support_golden.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static double scaled(largo_scaling rule, double lr0, int64_t base_batch, int64_t batch)
{
    double lr = -1.0;
    assert_ok(largo_lr_scale(rule, lr0, base_batch, batch, &lr));
    return lr;
}

static largo_legw legw(double lr0, double epochs0, int64_t samples, int64_t base, int64_t batch)
{
    largo_legw made;
    assert_ok(largo_legw_scale(lr0, epochs0, samples, base, batch, &made));
    return made;
}

static void scale_vectors(void **state)
{
    (void)state;
    static const char *const names[] = {"none", "linear", "sqrt"};
    cJSON *file = golden_load("schedule.json");
    const cJSON *test;
    int ran[3] = {0};
    cJSON_ArrayForEach(test, golden_get(file, "scale"))
    {
        int rule = 0;
        while (strcmp(golden_get(test, "rule")->valuestring, names[rule]) != 0)
            assert_true(++rule < 3);
        const double got =
            scaled((largo_scaling)(rule + 1), golden_number(test, "lr0"),
                   (int64_t)golden_number(test, "b0"), (int64_t)golden_number(test, "b"));
        assert_true(golden_ulps(got, golden_number(test, "lr")) <= 1);
        ran[rule]++;
    }
    for (int rule = 0; rule < 3; rule++) assert_int_equal(ran[rule], 5);
    cJSON_Delete(file);
}

static void legw_vectors(void **state)
{
    (void)state;
    cJSON *file = golden_load("schedule.json");
    const cJSON *test;
    int ran = 0;
    cJSON_ArrayForEach(test, golden_get(file, "legw"))
    {
        const largo_legw got =
            legw(golden_number(test, "lr0"), golden_number(test, "warm_epochs0"),
                 (int64_t)golden_number(test, "n"), (int64_t)golden_number(test, "b0"),
                 (int64_t)golden_number(test, "b"));
        assert_true(golden_ulps(got.lr, golden_number(test, "peak")) <= 1);
        assert_true(golden_ulps(got.warmup_epochs, golden_number(test, "warm_epochs")) <= 1);
        assert_int_equal(got.warmup, (int64_t)golden_number(test, "warm_steps"));
        ran++;
    }
    assert_int_equal(ran, 5);
    cJSON_Delete(file);
}

/* Batches up and down, to the ends of int64. */
static void by_hand(void **state)
{
    (void)state;
    assert_true(scaled(LARGO_SCALING_LINEAR, 0.5, 256, 1024) == 2.0);
    assert_true(scaled(LARGO_SCALING_SQRT, 0.5, 256, 1024) == 1.0);
    assert_true(scaled(LARGO_SCALING_NONE, 0.5, 256, 1024) == 0.5);
    assert_true(scaled(LARGO_SCALING_LINEAR, 0.5, 1024, 256) == 0.125);
    assert_true(scaled(LARGO_SCALING_SQRT, 0.5, 1024, 256) == 0.25);
    assert_true(scaled(LARGO_SCALING_SQRT, 0.0, 1, INT64_MAX) == 0.0);
    assert_true(scaled(LARGO_SCALING_LINEAR, 1.0, 1, INT64_MAX) == 0x1p63);
    assert_true(scaled(LARGO_SCALING_SQRT, 0x1p-1070, 1, 256) == 0x1p-1066);
    assert_true(scaled(LARGO_SCALING_LINEAR, 0x1.fffffep127, 8, 8) == 0x1.fffffep127);
}

/* The same number of steps at every batch that divides the samples. */
static void legw_steps_are_constant(void **state)
{
    (void)state;
    for (int64_t batch = 64; batch <= 65536; batch *= 2) {
        const largo_legw l = legw(0.1, 0.25, 1 << 20, 256, batch);
        assert_int_equal(l.warmup, 1024);
        assert_true(l.lr == scaled(LARGO_SCALING_SQRT, 0.1, 256, batch));
        assert_true(l.warmup_epochs == 0.25 * (double)batch / 256.0);
    }
}

/* To the nearest, halves up, like llround; 0.5 - 2^-54 is not a half. */
static void legw_rounding(void **state)
{
    (void)state;
    const double epochs[] = {0.0,           0.5 - 0x1p-54, 0.5,    0.5 + 0x1p-53, 1.5,
                             2.5 - 0x1p-51, 2.5,           1e-320, 0x1p52 + 0.5,  0x1p53 + 2.0};
    for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++)
        assert_true(legw(0.1, epochs[i], 7, 7, 7).warmup == llround(epochs[i]));
    for (int64_t samples = 1; samples <= 4000; samples++) {
        const double steps = 0.3 * (100.0 / 7.0) * ((double)samples / 100.0);
        assert_int_equal(legw(0.1, 0.3, samples, 7, 100).warmup, llround(steps));
    }
    assert_true(legw(0.1, 0x1.fffffffffffffp62, 1, 1, 1).warmup == INT64_MAX - 1023);
}

/* ---- bits ---- */

static uint64_t hash_of_rates(void)
{
    enum { MOST = 500 };
    static double made[MOST][4];
    for (int i = 0; i < MOST; i++) {
        const int64_t batch = 37 * i + 1;
        const largo_legw l = legw(0.1 + i, 0.3, 1281167, 256, batch);
        made[i][0] = scaled(LARGO_SCALING_LINEAR, 0.1 / (i + 1), 256, batch);
        made[i][1] = scaled(LARGO_SCALING_SQRT, 0x1.23456789abcdep-1060, 256, batch);
        made[i][2] = l.lr;
        made[i][3] = (double)l.warmup;
    }
    return test_hash_doubles(made[0], sizeof made / sizeof made[0][0]);
}

/* The same for every machine, compiler and level of optimization. */
static const uint64_t hash_of_all = 0x2b2c6bebff44ab8a;

static void bits(void **state)
{
    (void)state;
    const uint64_t got = hash_of_rates();
    if (got != hash_of_all) fail_msg("the hash is 0x%016llx", (unsigned long long)got);
}

static void bits_under_other_control(void **state)
{
    (void)state;
    double lr = -1.0;
    largo_legw l;
    const int modes[3] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        const largo_status status = largo_lr_scale(LARGO_SCALING_SQRT, 0.1, 3, 7, &lr);
        const largo_status other = largo_legw_scale(0.1, 0.1, 37, 3, 7, &l);
        const int after = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(after, modes[i]);
        assert_ok(status);
        assert_ok(other);
        const largo_legw want = legw(0.1, 0.1, 37, 3, 7);
        assert_true(lr == scaled(LARGO_SCALING_SQRT, 0.1, 3, 7) && lr == l.lr);
        assert_true(l.warmup_epochs == want.warmup_epochs && l.warmup == want.warmup);
    }
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x9fc0); /* flush results, take operands for 0 */
    const largo_status status = largo_lr_scale(LARGO_SCALING_LINEAR, 0x1p-1070, 1, 8, &lr);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    assert_int_equal(after & 0xffc0, 0x9fc0);
    assert_ok(status);
    assert_true(lr == 0x1p-1067);
#endif
}

/* ---- errors ---- */

static void refused(const char *text, largo_scaling rule, double lr0, int64_t base_batch,
                    int64_t batch)
{
    double lr = 7.0;
    assert_refused(LARGO_ERR_ARGUMENT, text, largo_lr_scale(rule, lr0, base_batch, batch, &lr));
    assert_true(lr == 7.0);
}

static void legw_refused(const char *text, double lr0, double epochs0, int64_t samples,
                         int64_t base_batch, int64_t batch)
{
    largo_legw made = {7.0, 7.0, 7};
    assert_refused(LARGO_ERR_ARGUMENT, text,
                   largo_legw_scale(lr0, epochs0, samples, base_batch, batch, &made));
    assert_true(made.lr == 7.0 && made.warmup_epochs == 7.0 && made.warmup == 7);
}

static void bad_arguments(void **state)
{
    (void)state;
    static const double rates[] = {-1e-9, -INFINITY, INFINITY, NAN, 1e39};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        refused("lr0 is ", LARGO_SCALING_NONE, rates[i], 1, 1);
        legw_refused("lr0 is ", rates[i], 1.0, 1, 1, 1);
    }
    static const int rules[] = {-1, 0, 4};
    for (int i = 0; i < 3; i++)
        refused("it must be NONE, LINEAR or SQRT (1 to 3)", (largo_scaling)rules[i], 0.1, 1, 1);
    refused("base_batch is 0; it must be >= 1", LARGO_SCALING_NONE, 0.1, 0, 1);
    refused("batch is -5; it must be >= 1", LARGO_SCALING_NONE, 0.1, 1, -5);
    refused("which makes 4e+38 at 4 times", LARGO_SCALING_LINEAR, 1e38, 2, 8);
    refused("finite as a float", LARGO_SCALING_SQRT, 1e38, 1, 100);
    assert_refused(LARGO_ERR_ARGUMENT, "lr is NULL",
                   largo_lr_scale(LARGO_SCALING_SQRT, 0.1, 1, 1, NULL));
}

static void bad_legw(void **state)
{
    (void)state;
    static const double epochs[] = {-1e-9, -INFINITY, INFINITY, NAN};
    for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++)
        legw_refused("warmup_epochs0 is ", 0.1, epochs[i], 1, 1, 1);
    legw_refused("samples is 0; it must be >= 1", 0.1, 1.0, 0, 1, 1);
    legw_refused("base_batch is 0; it must be >= 1", 0.1, 1.0, 1, 0, 1);
    legw_refused("batch is 0; it must be >= 1", 0.1, 1.0, 1, 1, 0);
    legw_refused("fewer than 2^63", 0.1, 0x1p63, 1, 1, 1);
    legw_refused("fewer than 2^63", 0.1, 1e308, 1, 1, INT64_MAX);
    legw_refused("finite as a float", 1e38, 1.0, 1, 1, 100);
    assert_refused(LARGO_ERR_ARGUMENT, "scaled is NULL", largo_legw_scale(0.1, 1, 1, 1, 1, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_vectors),
        cmocka_unit_test(legw_vectors),
        cmocka_unit_test(by_hand),
        cmocka_unit_test(legw_steps_are_constant),
        cmocka_unit_test(legw_rounding),
        cmocka_unit_test(bits),
        cmocka_unit_test(bits_under_other_control),
        cmocka_unit_test(bad_arguments),
        cmocka_unit_test(bad_legw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
