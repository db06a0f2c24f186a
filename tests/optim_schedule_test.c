/* labels: oracle short
 *
 * Learning-rate schedules against golden/schedule.json (1e-12 relative, as its README says), and
 * the properties that the header promises. */
#include <math.h>
#include <string.h>
#include "support_golden.h"

static largo_schedule make(largo_decay decay, double lr, int64_t warmup, int64_t total)
{
    largo_schedule s = LARGO_SCHEDULE;
    s.decay = decay;
    s.lr = lr;
    s.warmup = warmup;
    s.total = total;
    return s;
}

static double at(const largo_schedule *s, int64_t step)
{
    double lr = -1.0;
    assert_ok(largo_schedule_lr(s, step, &lr));
    return lr;
}

static void check_near(const char *what, int64_t step, double got, double want)
{
    if (fabs(got - want) <= 1e-12 * fabs(want)) return;
    fail_msg("%s, step %lld: %.17g, wanted %.17g", what, (long long)step, got, want);
}

static double number_or(const cJSON *args, const char *key, double otherwise)
{
    return cJSON_HasObjectItem(args, key) ? golden_number(args, key) : otherwise;
}

/* 0: a decay that largo does not have. */
static int schedule_of(const cJSON *args, largo_schedule *s)
{
    const cJSON *decay = cJSON_GetObjectItem(args, "decay");
    const char *name = decay ? decay->valuestring : "const";
    *s = make(LARGO_DECAY_CONSTANT, golden_number(args, "peak"),
              (int64_t)golden_number(args, "warm"), (int64_t)number_or(args, "total", 0.0));
    s->start_lr = number_or(args, "start", 0.0);
    s->end_lr = number_or(args, "end", 0.0);
    if (strcmp(name, "cosine") == 0) s->decay = LARGO_DECAY_COSINE;
    if (strcmp(name, "poly") == 0) s->decay = LARGO_DECAY_LINEAR;
    return strcmp(name, "step") != 0 && number_or(args, "power", 1.0) == 1.0;
}

static void vectors(void **state)
{
    (void)state;
    cJSON *file = golden_load("schedule.json");
    const cJSON *test;
    int ran = 0, skipped = 0;
    cJSON_ArrayForEach(test, golden_get(file, "lr"))
    {
        largo_schedule s;
        if (!schedule_of(golden_get(test, "args"), &s)) {
            skipped++;
            continue;
        }
        const cJSON *t = golden_get(test, "t"), *lr = golden_get(test, "lr");
        for (int i = 0; i < cJSON_GetArraySize(t); i++) {
            const int64_t step = (int64_t)cJSON_GetArrayItem(t, i)->valuedouble;
            check_near("golden", step, at(&s, step), cJSON_GetArrayItem(lr, i)->valuedouble);
        }
        ran++;
    }
    print_message("schedule: %d cases, %d skipped (decays that largo has not)\n", ran, skipped);
    assert_int_equal(ran, 5);
    assert_int_equal(skipped, 2);
    cJSON_Delete(file);
}

/* The formulas of the header, with libm, over a schedule that the vectors do not have: start and
 * end rates with linear and cosine. */
static void formulas(void **state)
{
    (void)state;
    for (int decay = LARGO_DECAY_CONSTANT; decay <= LARGO_DECAY_COSINE; decay++) {
        largo_schedule s = make((largo_decay)decay, 0.7, 13, 1000);
        s.start_lr = 0.01;
        s.end_lr = 0.003;
        for (int64_t t = 1; t <= 1200; t++) {
            const double p = t >= 1000 ? 1.0 : (double)(t - 13) / 987.0;
            double want = 0.7;
            if (decay == LARGO_DECAY_LINEAR) want = 0.003 + (0.7 - 0.003) * (1.0 - p);
            if (decay == LARGO_DECAY_COSINE)
                want = 0.003 + (0.7 - 0.003) * (1.0 + cos(3.14159265358979323846 * p)) / 2.0;
            if (t <= 13) want = 0.01 + (0.7 - 0.01) * (double)t / 13.0;
            check_near("formula", t, at(&s, t), want);
        }
    }
}

/* Up in warm-up, down after it; ends exactly at end_lr and stays; never outside [end, lr]. */
static void monotone(void **state)
{
    (void)state;
    for (int decay = LARGO_DECAY_LINEAR; decay <= LARGO_DECAY_COSINE; decay++) {
        largo_schedule s = make((largo_decay)decay, 1.1, 100, 5000);
        s.start_lr = 0.2;
        s.end_lr = 0.3;
        double before = s.start_lr;
        for (int64_t t = 1; t <= 6000; t++) {
            const double lr = at(&s, t);
            if (t <= 100 ? lr <= before : lr > before)
                fail_msg("decay %d, step %lld: %.17g after %.17g", decay, (long long)t, lr, before);
            if (lr > s.lr || (t > 100 && lr < s.end_lr))
                fail_msg("decay %d, step %lld: %.17g is outside", decay, (long long)t, lr);
            before = lr;
        }
        assert_true(at(&s, 100) == s.lr);
        assert_true(at(&s, 5000) == s.end_lr && at(&s, 5001) == s.end_lr);
        s.end_lr = 0.0;
        assert_true(at(&s, 5000) == 0.0 && at(&s, 4999) > 0.0);
    }
}

static void end_value_below_float_noise(void **state)
{
    (void)state;
    largo_schedule s = make(LARGO_DECAY_COSINE, 1e-3, 0, 1000000);
    s.end_lr = 1e-9;
    assert_true(at(&s, 1000000) == 1e-9);
    assert_true(at(&s, 999999) >= 1e-9);
}

static void degenerate(void **state)
{
    (void)state;
    for (int64_t total = 0; total <= 6; total += 3) { /* total <= warmup: p = 1 after warm-up */
        largo_schedule s = make(LARGO_DECAY_COSINE, 2.0, 6, total);
        s.end_lr = 0.5;
        assert_true(at(&s, 6) == 2.0 && at(&s, 7) == 0.5);
        s.decay = LARGO_DECAY_LINEAR;
        assert_true(at(&s, 6) == 2.0 && at(&s, 7) == 0.5);
        s.decay = LARGO_DECAY_CONSTANT;
        assert_true(at(&s, 6) == 2.0 && at(&s, 7) == 2.0);
    }
    largo_schedule none = make(LARGO_DECAY_CONSTANT, 0.25, 0, 0);
    assert_true(at(&none, 1) == 0.25);
    none.lr = 0.0;
    assert_true(at(&none, 1) == 0.0);
    largo_schedule falling = make(LARGO_DECAY_CONSTANT, 0.25, 4, 0); /* start above lr is legal */
    falling.start_lr = 1.25;
    assert_true(at(&falling, 1) == 1.0 && at(&falling, 4) == 0.25);
}

static void huge_steps(void **state)
{
    (void)state;
    largo_schedule s = make(LARGO_DECAY_COSINE, 1.0, INT64_MAX / 2, INT64_MAX);
    assert_true(at(&s, 1) > 0.0 && at(&s, 1) < 1e-18);
    assert_true(at(&s, INT64_MAX / 2) == 1.0 && at(&s, INT64_MAX) == 0.0);
    check_near("half of 2^63", 0, at(&s, INT64_MAX / 4 * 3), 0.5);
    s.decay = LARGO_DECAY_LINEAR;
    check_near("half of 2^63", 0, at(&s, INT64_MAX / 4 * 3), 0.5);
    largo_schedule shorter = make(LARGO_DECAY_LINEAR, 1.0, 2, 10);
    assert_true(at(&shorter, INT64_MAX) == 0.0);
}

static void refused(const largo_schedule *s, const char *field)
{
    double lr = 7.0;
    assert_refused(LARGO_ERR_ARGUMENT, field, largo_schedule_lr(s, 1, &lr));
    assert_true(lr == 7.0);
}

static void bad_fields(void **state)
{
    (void)state;
    static const double bad[] = {-1e-9, -INFINITY, INFINITY, NAN, 1e39};
    const largo_schedule good = make(LARGO_DECAY_LINEAR, 1.0, 2, 10);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        largo_schedule s = good;
        s.lr = bad[i];
        refused(&s, "schedule.lr");
        s = good;
        s.start_lr = bad[i];
        refused(&s, "schedule.start_lr");
        s = good;
        s.end_lr = bad[i];
        refused(&s, "schedule.end_lr");
    }
    largo_schedule s = good;
    s.warmup = -1;
    refused(&s, "schedule.warmup");
    s = good;
    s.total = -1;
    refused(&s, "schedule.total");
    for (int decay = -1; decay <= 4; decay += 5) {
        s = good;
        s.decay = (largo_decay)decay;
        refused(&s, "schedule.decay");
    }
    s = good;
    s.decay = (largo_decay)0;
    refused(&s, "schedule.decay");
    s = good;
    s.struct_size = 8;
    refused(&s, "schedule.struct_size");
}

static void bad_calls(void **state)
{
    (void)state;
    const largo_schedule good = make(LARGO_DECAY_LINEAR, 1.0, 2, 10);
    double lr = 7.0;
    assert_refused(LARGO_ERR_ARGUMENT, "step is 0", largo_schedule_lr(&good, 0, &lr));
    assert_refused(LARGO_ERR_ARGUMENT, "step", largo_schedule_lr(&good, INT64_MIN, &lr));
    assert_refused(LARGO_ERR_ARGUMENT, "lr is NULL", largo_schedule_lr(&good, 1, NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "schedule is NULL", largo_schedule_lr(NULL, 1, &lr));
    assert_true(lr == 7.0);
}

/* A larger struct of the future is fine while what we do not know is zero. */
static void larger_struct(void **state)
{
    (void)state;
    struct {
        largo_schedule s;
        int64_t more;
    } later = {make(LARGO_DECAY_LINEAR, 1.0, 2, 10), 0};
    later.s.struct_size = sizeof later;
    assert_true(at(&later.s, 6) == 0.5);
    later.more = 1;
    refused(&later.s, "schedule");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),      cmocka_unit_test(formulas),
        cmocka_unit_test(monotone),     cmocka_unit_test(end_value_below_float_noise),
        cmocka_unit_test(degenerate),   cmocka_unit_test(huge_steps),
        cmocka_unit_test(bad_fields),   cmocka_unit_test(bad_calls),
        cmocka_unit_test(larger_struct)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
