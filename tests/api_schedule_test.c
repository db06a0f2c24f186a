/* labels: short
 *
 * What a schedule may not be, through both entries that take one; whose its milestones are. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include "support.h"

static largo_ctx *ctx;
static largo_optim *optim;

static largo_schedule linear(void)
{
    largo_schedule s = LARGO_SCHEDULE;
    s.decay = LARGO_DECAY_LINEAR;
    s.lr = 1.0;
    s.warmup = 2;
    s.total = 10;
    return s;
}

static const int64_t milestones[] = {3, 4};

static largo_schedule multi_step(void)
{
    largo_schedule s = LARGO_SCHEDULE;
    s.decay = LARGO_DECAY_MULTI_STEP;
    s.lr = 1.0;
    s.gamma = 0.5;
    s.milestones = milestones;
    s.n_milestones = 2;
    return s;
}

static void refused(const largo_schedule *s, const char *text)
{
    double lr = 7.0;
    assert_refused(LARGO_ERR_ARGUMENT, text, largo_schedule_lr(s, 1, &lr));
    assert_true(lr == 7.0);
    assert_refused(LARGO_ERR_ARGUMENT, text, largo_optim_set_schedule(optim, 0, s));
}

static void bad_rates(void **state)
{
    (void)state;
    static const double bad[] = {-1e-9, -INFINITY, INFINITY, NAN, 1e39};
    const largo_schedule good = linear();
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
}

static void bad_fields(void **state)
{
    (void)state;
    const largo_schedule good = linear();
    largo_schedule s = good;
    s.warmup = -1;
    refused(&s, "schedule.warmup is -1; it must be >= 0");
    s = good;
    s.total = -1;
    refused(&s, "schedule.total is -1; it must be >= 0");
    static const int decays[] = {-1, 0, 6};
    for (int i = 0; i < 3; i++) {
        s = good;
        s.decay = (largo_decay)decays[i];
        refused(&s, "schedule.decay is ");
    }
    s = good;
    s.flags = 7;
    refused(&s, "schedule.flags is 0x7; it has bits that this version does not know, 0x4");
    s = good;
    s.struct_size = 56;
    refused(&s, "schedule.struct_size is 56; LARGO_SCHEDULE sets it to 88");
    static const double powers[] = {0.0, -1.0, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        s = good;
        s.decay = LARGO_DECAY_POLYNOMIAL;
        s.power = powers[i];
        refused(&s, "schedule.power is ");
    }
    static const double gammas[] = {0.0, -0.5, NAN, INFINITY, 1.0 + DBL_EPSILON};
    for (int i = 0; i < 5; i++) {
        s = multi_step();
        s.gamma = gammas[i];
        refused(&s, "schedule.gamma is ");
    }
}

static void bad_milestones(void **state)
{
    (void)state;
    largo_schedule s = multi_step();
    s.milestones = NULL;
    refused(&s, "schedule.milestones is NULL");
    s = multi_step();
    s.n_milestones = 0;
    refused(&s, "schedule.n_milestones is 0; it must be >= 1");
    static const int64_t wrong[4][3] = {{0, 5, 6}, {-7, 5, 6}, {5, 5, 6}, {5, 6, 4}};
    static const char *const texts[4] = {"milestones[0] is 0;", "milestones[0] is -7;",
                                         "milestones[1] is 5;", "it must be > 6"};
    for (int i = 0; i < 4; i++) {
        s = multi_step();
        s.milestones = wrong[i];
        s.n_milestones = 3;
        refused(&s, texts[i]);
    }
}

/* Nothing is ignored: what a decay does not use must stay 0. */
static void unused_fields(void **state)
{
    (void)state;
    static const char *const names[] = {"end_lr",      "total", "flags DECAY_FROM_START",
                                        "power",       "gamma", "milestones",
                                        "n_milestones"};
    static const char uses[LARGO_DECAY_MULTI_STEP][8] = {"0000000", "1110000", "1110000", "1111000",
                                                         "0000111"};
    for (int decay = 0; decay < LARGO_DECAY_MULTI_STEP; decay++)
        for (int field = 0; field < 7; field++) {
            if (uses[decay][field] == '1') continue;
            largo_schedule s = LARGO_SCHEDULE;
            s.decay = (largo_decay)(decay + 1);
            if (field == 0) s.end_lr = 1e-320;
            if (field == 1) s.total = 1;
            if (field == 2) s.flags = LARGO_SCHEDULE_DECAY_FROM_START;
            if (field == 3) s.power = 1.0;
            if (field == 4) s.gamma = NAN;
            if (field == 5) s.milestones = milestones;
            if (field == 6) s.n_milestones = 1;
            char text[64];
            snprintf(text, sizeof text, "schedule.%s is set, but decay ", names[field]);
            refused(&s, text);
        }
    largo_schedule s = LARGO_SCHEDULE;
    s.start_lr = 0.5;
    refused(&s, "schedule.start_lr is 0.5 with warmup 0");
}

static void bad_calls(void **state)
{
    (void)state;
    const largo_schedule good = linear();
    double lr = 7.0;
    assert_refused(LARGO_ERR_ARGUMENT, "step is 0", largo_schedule_lr(&good, 0, &lr));
    assert_refused(LARGO_ERR_ARGUMENT, "step", largo_schedule_lr(&good, INT64_MIN, &lr));
    assert_refused(LARGO_ERR_ARGUMENT, "lr is NULL", largo_schedule_lr(&good, 1, NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "schedule is NULL", largo_schedule_lr(NULL, 1, &lr));
    assert_refused(LARGO_ERR_ARGUMENT, "optim is NULL", largo_optim_set_schedule(NULL, 0, &good));
    assert_refused(LARGO_ERR_ARGUMENT, "group is 1", largo_optim_set_schedule(optim, 1, &good));
    assert_true(lr == 7.0);
}

/* A larger struct of the future is fine while what we do not know is zero. */
static void larger_struct(void **state)
{
    (void)state;
    struct {
        largo_schedule s;
        unsigned char more[16];
    } later = {linear(), {0}};
    later.s.struct_size = sizeof later;
    double lr;
    assert_ok(largo_schedule_lr(&later.s, 6, &lr));
    assert_true(lr == 0.5);
    later.more[15] = 1;
    refused(&later.s, "schedule has a value at byte 103");
    later.s.struct_size = 4097;
    refused(&later.s, "schedule.struct_size is 4097");
}

/* The object keeps milestones of its own, through refusals, other schedules and its end. */
static void milestones_are_copied(void **state)
{
    (void)state;
    int64_t given[2] = {1, 2};
    largo_schedule s = multi_step();
    s.milestones = given;
    s.n_milestones = 2;
    for (int i = 0; i < 2; i++) assert_ok(largo_optim_set_schedule(optim, 0, &s));
    given[0] = given[1] = INT64_MAX;
    refused(&s, "schedule.milestones[1]");
    for (int t = 1; t <= 3; t++) {
        assert_ok(largo_optim_step(optim));
        assert_true(largo_optim_hyper(optim, 0)->lr == 1.0 / (1 << (t - 1)));
    }
    const largo_schedule other = linear();
    assert_ok(largo_optim_set_schedule(optim, 0, &other));
    given[0] = 1;
    assert_ok(largo_optim_set_schedule(optim, 0, &s));
    assert_ok(largo_optim_set_schedule(optim, 0, NULL));
    assert_ok(largo_optim_set_schedule(optim, 0, &s)); /* freed with the object */
}

static int open_object(void **state)
{
    (void)state;
    static float w[4], g[4];
    largo_hyper hyper;
    ctx = test_ctx(1);
    assert_ok(largo_hyper_init(&hyper, LARGO_SGD));
    assert_ok(largo_optim_create(ctx, &optim));
    const largo_param p = largo_param_f32(w, g, 4, 1);
    assert_ok(largo_optim_add_group(optim, &hyper, 1, &p, NULL));
    return 0;
}

static int close_object(void **state)
{
    (void)state;
    largo_optim_destroy(optim);
    largo_ctx_destroy(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_rates),
        cmocka_unit_test(bad_fields),
        cmocka_unit_test(bad_milestones),
        cmocka_unit_test(unused_fields),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(larger_struct),
        cmocka_unit_test(milestones_are_copied),
    };
    return cmocka_run_group_tests(tests, open_object, close_object);
}
