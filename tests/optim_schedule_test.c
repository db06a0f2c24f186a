/* labels: oracle short no-valgrind
 *
 * Learning-rate schedules against golden/schedule.json (1 ulp; cosine 2^-52 of lr), against libm in long double, in
 * bits, and the properties that the header promises. */
#include <fenv.h>
#include <math.h>
#include <string.h>
#include "support_golden.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static const int64_t milestones[] = {30, 31, 400, 700};
enum { N_MILESTONES = sizeof milestones / sizeof *milestones };

static largo_schedule make(largo_decay decay, double lr, int64_t warmup, int64_t total)
{
    largo_schedule s = LARGO_SCHEDULE;
    s.decay = decay;
    s.lr = lr;
    s.warmup = warmup;
    s.total = total;
    return s;
}

static largo_schedule polynomial(double power, double lr, int64_t warmup, int64_t total)
{
    largo_schedule s = make(LARGO_DECAY_POLYNOMIAL, lr, warmup, total);
    s.power = power;
    return s;
}

static largo_schedule multi_step(double gamma, double lr, int64_t warmup)
{
    largo_schedule s = make(LARGO_DECAY_MULTI_STEP, lr, warmup, 0);
    s.gamma = gamma;
    s.milestones = milestones;
    s.n_milestones = N_MILESTONES;
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

/* The arguments of one list of the file. The milestones are the caller's. */
static largo_schedule schedule_of(const cJSON *args, int64_t given[N_MILESTONES])
{
    const cJSON *decay = cJSON_GetObjectItem(args, "decay");
    const char *name = decay ? decay->valuestring : "const";
    largo_schedule s =
        make(LARGO_DECAY_CONSTANT, golden_number(args, "peak"),
             (int64_t)golden_number(args, "warm"), (int64_t)number_or(args, "total", 0.0));
    s.start_lr = number_or(args, "start", 0.0);
    s.end_lr = number_or(args, "end", 0.0);
    if (strcmp(name, "cosine") == 0) s.decay = LARGO_DECAY_COSINE;
    if (strcmp(name, "poly") == 0) s.decay = LARGO_DECAY_POLYNOMIAL;
    if (strcmp(name, "poly") == 0) s.power = number_or(args, "power", 1.0);
    if (strcmp(name, "step") == 0) {
        const cJSON *list = golden_get(args, "milestones");
        s.decay = LARGO_DECAY_MULTI_STEP;
        s.gamma = number_or(args, "gamma", 0.1);
        s.milestones = given;
        s.n_milestones = (size_t)cJSON_GetArraySize(list);
        assert_true(s.n_milestones <= N_MILESTONES);
        for (size_t i = 0; i < s.n_milestones; i++)
            given[i] = (int64_t)cJSON_GetArrayItem(list, (int)i)->valuedouble;
    }
    return s;
}

static void vectors(void **state)
{
    (void)state;
    cJSON *file = golden_load("schedule.json");
    const cJSON *test;
    int decays[LARGO_DECAY_MULTI_STEP + 1] = {0};
    cJSON_ArrayForEach(test, golden_get(file, "lr"))
    {
        int64_t given[N_MILESTONES];
        const largo_schedule s = schedule_of(golden_get(test, "args"), given);
        /* 1 + cos(pi p) cancels near the end, in the file as well. */
        const double noise = s.decay == LARGO_DECAY_COSINE ? 0x1p-52 * s.lr : 0.0;
        const cJSON *t = golden_get(test, "t"), *lr = golden_get(test, "lr");
        for (int i = 0; i < cJSON_GetArraySize(t); i++) {
            const int64_t step = (int64_t)cJSON_GetArrayItem(t, i)->valuedouble;
            const double got = at(&s, step), want = cJSON_GetArrayItem(lr, i)->valuedouble;
            if (golden_ulps(got, want) > 1 && fabs(got - want) > noise)
                fail_msg("step %lld: %.17g, wanted %.17g", (long long)step, got, want);
        }
        decays[s.decay]++;
    }
    assert_int_equal(decays[LARGO_DECAY_CONSTANT], 3);
    assert_int_equal(decays[LARGO_DECAY_POLYNOMIAL], 2);
    assert_int_equal(decays[LARGO_DECAY_COSINE], 1);
    assert_int_equal(decays[LARGO_DECAY_MULTI_STEP], 1);
    cJSON_Delete(file);
}

/* The header's formula in long double, with libm. */
static double formula(const largo_schedule *s, int64_t step)
{
    const int64_t t = step - (s->flags & LARGO_SCHEDULE_ZERO_BASED ? 1 : 0);
    const int64_t from = s->flags & LARGO_SCHEDULE_DECAY_FROM_START ? 0 : s->warmup;
    if (t < s->warmup)
        return (double)(s->start_lr + ((long double)s->lr - s->start_lr) * (long double)t /
                                          (long double)s->warmup);
    double q = 0.0; /* 1 - p as the header has it, rounded twice */
    if (t < s->total) q = 1.0 - (double)(t - from) / (double)(s->total - from);
    const long double span = (long double)s->lr - s->end_lr;
    int past = 0;
    switch (t == s->warmup ? LARGO_DECAY_CONSTANT : s->decay) {
    case LARGO_DECAY_CONSTANT:
        return s->lr;
    case LARGO_DECAY_LINEAR:
        return (double)(s->end_lr + span * q);
    case LARGO_DECAY_COSINE: /* by sin^2: no cancellation near the end */
        return (double)(s->end_lr + span * powl(sinl(acosl(-1.0L) * q / 2), 2));
    case LARGO_DECAY_POLYNOMIAL:
        return (double)(s->end_lr + span * powl(q, s->power));
    case LARGO_DECAY_MULTI_STEP:
        for (size_t i = 0; i < s->n_milestones; i++) past += s->milestones[i] < t;
        return (double)(s->lr * powl(s->gamma, past));
    }
    fail_msg("decay %d", (int)s->decay);
    return 0.0;
}

/* Every decay, with what it may be combined with. */
enum { SAMPLES = 26 };
static largo_schedule sample(int i)
{
    static const double powers[] = {1.0, 2.0, 3.0, 10.0, 64.0, 65.0, 0.5, 0.9, 1e-3, 2.5, 100.25};
    enum { POWERS = sizeof powers / sizeof *powers };
    largo_schedule s = make(LARGO_DECAY_CONSTANT, 0.7, 13, 0);
    if (i < 2 * POWERS)
        s = polynomial(powers[i % POWERS], 0.7, 13, 1000);
    else if (i < 2 * POWERS + 2)
        s = make(i % 2 ? LARGO_DECAY_LINEAR : LARGO_DECAY_COSINE, 0.7, 13, 1000);
    else if (i < 2 * POWERS + 3)
        s = multi_step(0.1, 0.7, 13);
    if (s.total && i % 2) s.flags |= LARGO_SCHEDULE_DECAY_FROM_START;
    if (i % 3 == 1) s.flags |= LARGO_SCHEDULE_ZERO_BASED;
    if (i % 3) s.start_lr = 0.01;
    if (s.total && i >= POWERS) s.end_lr = 0.003;
    return s;
}

static void formulas(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        const largo_schedule s = sample(i);
        for (int64_t t = 1; t <= 1200; t++) check_near("formula", t, at(&s, t), formula(&s, t));
    }
}

/* What `power_real` states: 2^-52 (1 + a), and one rounding of lr. */
static void error_of_powers(void **state)
{
    (void)state;
    static const double powers[] = {0.5, 0.9, 1.0 / 3.0, 3.0, 10.0, 63.5, 1e-9};
    const int64_t total = 1000003;
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++) {
        const largo_schedule s = polynomial(powers[i], 1.0, 0, total);
        for (int64_t t = 1; t < total; t += 997) {
            const long double want = powl(1.0 - (double)t / (double)total, s.power);
            const long double error = fabsl(at(&s, t) - want) / want;
            if (error > 0x1p-52L * (1.0L + s.power) && want > 0x1p-1022L)
                fail_msg("power %.3g, step %lld: off by %.3Lg", s.power, (long long)t, error);
        }
    }
}

/* Up in warm-up, down after it, never outside [end_lr, lr]; lr at its end, end_lr at the last. */
static void check_shape(const largo_schedule *given)
{
    largo_schedule s = *given;
    s.flags &= ~LARGO_SCHEDULE_ZERO_BASED;
    double before = s.start_lr;
    for (int64_t t = 1; t <= 1200; t++) {
        const double lr = at(&s, t);
        if (t <= s.warmup ? lr <= before : lr > before)
            fail_msg("decay %d, step %lld: %.17g after %.17g", (int)s.decay, (long long)t, lr,
                     before);
        if (lr > s.lr || (t > s.warmup && lr < s.end_lr))
            fail_msg("decay %d, step %lld: %.17g is outside", (int)s.decay, (long long)t, lr);
        before = lr;
    }
    assert_true(at(&s, s.warmup) == s.lr);
    if (!s.total) return;
    assert_true(at(&s, s.total) == s.end_lr && at(&s, s.total + 1) == s.end_lr);
    s.end_lr = 0.0;
    assert_true(at(&s, s.total) == 0.0 && at(&s, s.total - 1) > 0.0);
}

static void monotone(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        const largo_schedule s = sample(i);
        check_shape(&s);
    }
}

/* The end of warm-up is lr itself, though start_lr + (lr - start_lr) may not be. */
static void warmup_ends_at_lr(void **state)
{
    (void)state;
    int inexact = 0;
    for (int i = 1; i <= 50; i++) {
        largo_schedule s = make(LARGO_DECAY_CONSTANT, 0.7 / i, 9, 0);
        s.start_lr = 0.1 + i;
        assert_true(at(&s, 9) == s.lr && at(&s, 10) == s.lr);
        inexact += s.start_lr + (s.lr - s.start_lr) != s.lr;
    }
    assert_true(inexact > 0);
}

static void linear_is_power_1(void **state)
{
    (void)state;
    for (int64_t t = 1; t <= 1001; t++) {
        largo_schedule linear = make(LARGO_DECAY_LINEAR, 0.7, 7, 1000);
        largo_schedule power = polynomial(1.0, 0.7, 7, 1000);
        linear.end_lr = power.end_lr = 0.01;
        assert_true(at(&linear, t) == at(&power, t));
    }
}

/* Counting from 0 moves every rate one step later; the first is start_lr, or lr without warm-up. */
static void zero_based(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        largo_schedule from_1 = sample(i), from_0 = from_1;
        from_1.flags &= ~LARGO_SCHEDULE_ZERO_BASED;
        from_0.flags |= LARGO_SCHEDULE_ZERO_BASED;
        assert_true(at(&from_0, 1) == from_0.start_lr);
        for (int64_t t = 1; t <= 1100; t++) assert_true(at(&from_0, t + 1) == at(&from_1, t));
        from_0.warmup = 0;
        from_0.start_lr = 0.0;
        assert_true(at(&from_0, 1) == from_0.lr);
    }
}

/* The decay of BERT's authors: p = t / total, of which warm-up hides the beginning. */
static void decay_from_start(void **state)
{
    (void)state;
    largo_schedule s = make(LARGO_DECAY_LINEAR, 1.0, 250, 1000);
    s.flags = LARGO_SCHEDULE_DECAY_FROM_START;
    assert_true(at(&s, 125) == 0.5 && at(&s, 250) == 1.0);
    assert_true(at(&s, 500) == 0.5 && at(&s, 750) == 0.25);
    s.total = 250; /* no longer than warm-up */
    assert_true(at(&s, 250) == 1.0 && at(&s, 251) == 0.0);
    for (int64_t t = 1; t <= 1001; t++) {
        largo_schedule plain = polynomial(0.5, 0.7, 0, 1000), flagged = plain;
        flagged.flags = LARGO_SCHEDULE_DECAY_FROM_START;
        assert_true(at(&plain, t) == at(&flagged, t));
    }
}

/* The rate falls after a milestone, not at it; those inside warm-up count once it is over. */
static void milestones_by_hand(void **state)
{
    (void)state;
    largo_schedule s = multi_step(0.5, 8.0, 0);
    const int64_t step[] = {1, 30, 31, 32, 400, 401, 700, 701, INT64_MAX};
    const double want[] = {8.0, 8.0, 4.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) assert_true(at(&s, step[i]) == want[i]);
    s.warmup = 40;
    assert_true(at(&s, 40) == 8.0 && at(&s, 41) == 2.0);
    s.gamma = 1.0;
    assert_true(at(&s, 701) == 8.0);
    s.gamma = 1e-200; /* 1e-200^2 is below every double */
    s.warmup = 0;
    assert_true(at(&s, 31) == 8e-200 && at(&s, 32) == 0.0);
    s.lr = 1.0;
    s.gamma = 0x1p-520;
    assert_true(at(&s, 32) == 0x1p-1040);
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
        s.decay = LARGO_DECAY_POLYNOMIAL;
        s.power = 0.5;
        assert_true(at(&s, 6) == 2.0 && at(&s, 7) == 0.5);
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

/* 1 - 2^-53 is the last p below 1: totals to there reach end_lr at their end and not before. */
static void long_totals(void **state)
{
    (void)state;
    const int64_t total = INT64_C(1) << 53;
    for (int i = 0; i < 4; i++) {
        static const double powers[4] = {1.0, 3.0, 0.5, 0.9};
        const largo_schedule s = polynomial(powers[i], 1.0, 0, total);
        check_near("half", total / 2, at(&s, total / 2), pow(0.5, powers[i]));
        check_near("last", total - 1, at(&s, total - 1), pow(0x1p-53, powers[i]));
        assert_true(at(&s, total) == 0.0 && at(&s, INT64_MAX) == 0.0);
        double before = 1.0;
        for (int64_t t = total / 4; t < total / 4 + 999; t++) {
            assert_true(at(&s, t) <= before);
            before = at(&s, t);
        }
    }
}

/* Results below 2^-1022 lose digits, and at last become 0: never NaN, never negative. */
static void subnormal_results(void **state)
{
    (void)state;
    const int64_t total = INT64_C(1) << 53;
    for (int i = 0; i < 2; i++) {
        largo_schedule s = polynomial(i ? 20.25 : 20.0, 1.0, 0, total);
        const double lr = at(&s, total - 1); /* 2^-1060, 2^-1073.25 */
        assert_true(fabs(lr - pow(0x1p-53, s.power)) <= 0x1p-1073 && lr > 0.0);
        s.power = 21.0 + i / 4.0;
        assert_true(at(&s, total - 1) == 0.0);
        s.power = i ? 1e300 : 1e15 + 0.5;
        assert_true(at(&s, total / 2) == 0.0);
    }
    largo_schedule tiny = polynomial(2.5, 0x1p-1060, 10, 100);
    for (int64_t t = 1; t <= 101; t++)
        assert_true(fabs(at(&tiny, t) - formula(&tiny, t)) <= 0x1p-1074);
}

/* ---- bits ---- */

/* Rates of all samples, of long totals and of subnormal ones. */
static uint64_t hash_of_rates(void)
{
    enum { MOST = 1200, MORE = 4 };
    static double lr[(SAMPLES + MORE) * MOST];
    for (int i = 0; i < SAMPLES + MORE; i++) {
        largo_schedule s = i < SAMPLES ? sample(i) : polynomial(2.5, 0x1p-1060, 10, MOST);
        if (i > SAMPLES) s = polynomial(i - SAMPLES - 0.75, 1.0, 0, INT64_MAX / 1024);
        if (i > SAMPLES) s.start_lr = 0x1p-1070, s.warmup = MOST / 2;
        for (int64_t t = 1; t <= MOST; t++)
            lr[i * MOST + t - 1] = at(&s, i > SAMPLES ? t * (INT64_MAX / 1024 / MOST) : t);
    }
    return test_hash_doubles(lr, sizeof lr / sizeof *lr);
}

/* The same for every machine, compiler and level of optimization. */
static const uint64_t hash_of_all = 0x9ed92278c4cab9d2;

static void bits(void **state)
{
    (void)state;
    const uint64_t got = hash_of_rates();
    if (got != hash_of_all) fail_msg("the hash is 0x%016llx", (unsigned long long)got);
}

static void bits_under_other_control(void **state)
{
    (void)state;
    const int modes[3] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        const uint64_t got = hash_of_rates();
        const int after = fegetround();
        fesetround(FE_TONEAREST);
        assert_int_equal(after, modes[i]);
        assert_true(got == hash_of_all);
    }
#if defined(__x86_64__)
    const unsigned before = _mm_getcsr();
    largo_schedule s = multi_step(0x1p-1070, 1.0, 0);
    _mm_setcsr(0x9fc0); /* flush results, take operands for 0 */
    const uint64_t got = hash_of_rates();
    double lr = -1.0;
    const largo_status status = largo_schedule_lr(&s, 31, &lr);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    assert_int_equal(after & 0xffc0, 0x9fc0);
    assert_true(got == hash_of_all);
    assert_ok(status); /* a gamma that is not 0 */
    assert_true(lr == 0x1p-1070);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(formulas),
        cmocka_unit_test(error_of_powers),
        cmocka_unit_test(monotone),
        cmocka_unit_test(warmup_ends_at_lr),
        cmocka_unit_test(linear_is_power_1),
        cmocka_unit_test(zero_based),
        cmocka_unit_test(decay_from_start),
        cmocka_unit_test(milestones_by_hand),
        cmocka_unit_test(end_value_below_float_noise),
        cmocka_unit_test(degenerate),
        cmocka_unit_test(huge_steps),
        cmocka_unit_test(long_totals),
        cmocka_unit_test(subnormal_results),
        cmocka_unit_test(bits),
        cmocka_unit_test(bits_under_other_control),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
