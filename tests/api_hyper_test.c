/* labels: short
 *
 * Every field of every algorithm at both ends of its range, NaN, infinity; initialisers, presets,
 * access by name, struct sizes. What an algorithm does not use is tests/handed_checks_test.c. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "support.h"

#define BELOW(x) nextafter((x), -INFINITY)
#define ABOVE(x) nextafter((x), INFINITY)

/* From the header's comments, not from the library's table. */
typedef struct number {
    const char *name;
    size_t offset;
    double low, high; /* both accepted */
    int open;         /* high is not: the nearest double below is */
} number;

/* clang-format off */
#define NUMBER(name, low, high, open) {#name, offsetof(largo_hyper, name), low, high, open}
/* clang-format on */
static const number numbers[] = {
    NUMBER(lr, 0, FLT_MAX, 0),
    NUMBER(beta1, 0, 1, 1),
    NUMBER(beta2, 0, 1, 1),
    NUMBER(beta3, 0, 1, 1),
    NUMBER(momentum, 0, 1, 1),
    NUMBER(dampening, 0, 1, 0),
    NUMBER(eps, 0x1p-126, FLT_MAX, 0),
    NUMBER(eps2, 0x1p-126, FLT_MAX, 0),
    NUMBER(weight_decay, 0, FLT_MAX, 0),
    NUMBER(trust_coefficient, 0x1p-126, FLT_MAX, 0),
    NUMBER(clip_threshold, 0x1p-126, INFINITY, 0),
    NUMBER(weight_norm_min, 0, FLT_MAX, 0),
    NUMBER(weight_norm_max, 0, INFINITY, 0),
    NUMBER(trust_ratio_min, 0, 1, 0),
    NUMBER(trust_ratio_max, 1, INFINITY, 0),
    NUMBER(grad_scale, 0x1p-126, FLT_MAX, 0),
    NUMBER(max_grad_norm, 0x1p-126, INFINITY, 0),
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

/* clang-format off */
#define CHOICE(name, high) {#name, offsetof(largo_hyper, name), 1, high, 0}
/* clang-format on */
static const number choices[] = {
    CHOICE(non_finite, 3),     CHOICE(maximize, 2), CHOICE(bias_correction, 2), CHOICE(nesterov, 2),
    CHOICE(grad_averaging, 2), CHOICE(l2, 2),       CHOICE(adapt, 3),           CHOICE(larc, 2),
    CHOICE(denominator, 3),    CHOICE(velocity, 3),
};
enum { CHOICES = sizeof choices / sizeof *choices };

static const largo_algo algos[] = {LARGO_SGD,  LARGO_ADAMW, LARGO_LARS,
                                   LARGO_LAMB, LARGO_CAME,  LARGO_MERIT};
enum { ALGOS = sizeof algos / sizeof *algos };

static largo_hyper defaults(largo_algo algo)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algo));
    return h;
}

static double get(const largo_hyper *h, const number *f)
{
    double x;
    memcpy(&x, (const char *)h + f->offset, sizeof x);
    return x;
}

static void put(largo_hyper *h, const number *f, double x)
{
    memcpy((char *)h + f->offset, &x, sizeof x);
}

/* By assignment and by name. */
static void accepts(largo_algo algo, const number *f, double x)
{
    largo_hyper h = defaults(algo);
    put(&h, f, x);
    assert_ok(largo_hyper_check(&h));
    h = defaults(algo);
    assert_ok(largo_hyper_set(&h, f->name, x));
    assert_true(get(&h, f) == x);
}

static void refuses(largo_algo algo, const number *f, double x)
{
    largo_hyper h = defaults(algo), before;
    put(&h, f, x);
    assert_refused(LARGO_ERR_ARGUMENT, f->name, largo_hyper_check(&h));
    test_assert_contains(largo_last_error(), "must be", __FILE__, __LINE__);
    h = defaults(algo);
    memcpy(&before, &h, sizeof h);
    assert_refused(LARGO_ERR_ARGUMENT, f->name, largo_hyper_set(&h, f->name, x));
    test_assert_contains(largo_last_error(), "must be", __FILE__, __LINE__);
    assert_memory_equal(&h, &before, sizeof h);
}

static void ends_of_every_range(void **state)
{
    (void)state;
    int tried = 0;
    for (int a = 0; a < ALGOS; a++)
        for (int i = 0; i < NUMBERS; i++) {
            const number *f = &numbers[i];
            const largo_hyper h = defaults(algos[a]);
            if (isnan(get(&h, f))) continue; /* not used by it */
            tried++;
            accepts(algos[a], f, f->low);
            refuses(algos[a], f, BELOW(f->low));
            accepts(algos[a], f, f->open ? BELOW(f->high) : f->high);
            if (f->open) refuses(algos[a], f, f->high);
            if (isfinite(f->high)) refuses(algos[a], f, ABOVE(f->high));
            if (isfinite(f->high)) refuses(algos[a], f, INFINITY);
            refuses(algos[a], f, NAN);
            refuses(algos[a], f, -INFINITY);
        }
    assert_int_equal(tried, 6 + 7 + 12 + 11 + 10 + 8);
}

/* 0 is one value more for it, not the end of a longer range, which ends_of_every_range has seen. */
static void eps_of_lars_may_be_zero(void **state)
{
    (void)state;
    const number eps = NUMBER(eps, 0, FLT_MAX, 0);
    accepts(LARGO_LARS, &eps, 0.0);
    accepts(LARGO_LARS, &eps, -0.0);
    refuses(LARGO_LARS, &eps, BELOW(0.0));
    refuses(LARGO_LARS, &eps, ABOVE(0.0));
    test_assert_contains(largo_last_error(), "0, or >= 2^-126", __FILE__, __LINE__);
}

static void hostile_choices(void **state)
{
    (void)state;
    const int32_t hostile[6] = {0, -1, 4, 3, 0x7fffffff, -0x7fffffff - 1};
    for (int a = 0; a < ALGOS; a++)
        for (int i = 0; i < CHOICES; i++) {
            const number *f = &choices[i];
            int32_t value;
            largo_hyper h = defaults(algos[a]);
            memcpy(&value, (char *)&h + f->offset, sizeof value);
            if (!value) continue; /* not used by it */
            for (int v = 0; v < 6; v++) {
                if (hostile[v] == 3 && f->high == 3) continue;
                memcpy((char *)&h + f->offset, &hostile[v], sizeof hostile[v]);
                assert_refused(LARGO_ERR_ARGUMENT, f->name, largo_hyper_check(&h));
            }
        }
}

static void pairs_that_do_not_fit(void **state)
{
    (void)state;
    largo_hyper h = defaults(LARGO_SGD);
    h.nesterov = LARGO_ON;
    assert_refused(LARGO_ERR_ARGUMENT, "nesterov", largo_hyper_check(&h));
    h.momentum = 0.9;
    assert_ok(largo_hyper_check(&h));
    h.dampening = 0.1;
    assert_refused(LARGO_ERR_ARGUMENT, "dampening", largo_hyper_check(&h));
    h = defaults(LARGO_LAMB);
    h.weight_norm_min = 2.0;
    h.weight_norm_max = 1.0;
    assert_refused(LARGO_ERR_ARGUMENT, "weight_norm_max", largo_hyper_check(&h));
    h.weight_norm_max = 2.0;
    assert_ok(largo_hyper_check(&h));
    h = defaults(LARGO_LARS);
    h.nesterov = LARGO_ON;
    assert_ok(largo_hyper_check(&h));
    h.momentum = 0.0;
    assert_refused(LARGO_ERR_ARGUMENT, "nesterov", largo_hyper_check(&h));
    h = defaults(LARGO_LARS);
    h.denominator = LARGO_DENOMINATOR_UPDATE;
    assert_refused(LARGO_ERR_ARGUMENT, "velocity must be GRAD", largo_hyper_check(&h));
    h.velocity = LARGO_VELOCITY_RATIO;
    assert_refused(LARGO_ERR_ARGUMENT, "denominator is UPDATE", largo_hyper_check(&h));
    h.velocity = LARGO_VELOCITY_GRAD;
    assert_ok(largo_hyper_check(&h));
    h.lr = h.weight_decay = 1e20;
    assert_refused(LARGO_ERR_ARGUMENT, "product", largo_hyper_check(&h));
}

static void names(void **state)
{
    (void)state;
    largo_hyper h = defaults(LARGO_LAMB);
    assert_ok(largo_hyper_set(&h, "l2", 1));
    assert_int_equal(h.l2, LARGO_ON);
    assert_ok(largo_hyper_set(&h, "l2", 0));
    assert_int_equal(h.l2, LARGO_OFF);
    assert_ok(largo_hyper_set(&h, "adapt", 3));
    assert_int_equal(h.adapt, LARGO_ADAPT_NEVER);
    largo_hyper before;
    memcpy(&before, &h, sizeof h);
    const double wrong[6] = {2, -1, 0.5, NAN, INFINITY, 1e300};
    for (int i = 0; i < 6; i++)
        assert_refused(LARGO_ERR_ARGUMENT, "l2", largo_hyper_set(&h, "l2", wrong[i]));
    const double wrong_number[5] = {0, 4, 1.5, NAN, -1e300};
    for (int i = 0; i < 5; i++)
        assert_refused(LARGO_ERR_ARGUMENT, "adapt", largo_hyper_set(&h, "adapt", wrong_number[i]));
    const char *const unknown[6] = {"", "LR", "lr ", "struct_size", "algo", "learning_rate"};
    for (int i = 0; i < 6; i++)
        assert_refused(LARGO_ERR_ARGUMENT, unknown[i], largo_hyper_set(&h, unknown[i], 1));
    char endless[4000];
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = 0;
    assert_refused(LARGO_ERR_ARGUMENT, "xxxx", largo_hyper_set(&h, endless, 1));
    assert_refused(LARGO_ERR_ARGUMENT, "\"l?r?\" is not a field", largo_hyper_set(&h, "l\nr\r", 1));
    assert_refused(LARGO_ERR_ARGUMENT, "NULL", largo_hyper_set(&h, NULL, 1));
    assert_refused(LARGO_ERR_ARGUMENT, "hyper is NULL", largo_hyper_set(NULL, "lr", 1));
    assert_memory_equal(&h, &before, sizeof h);
    h.struct_size = 8;
    assert_refused(LARGO_ERR_ARGUMENT, "struct_size", largo_hyper_set(&h, "lr", 1));
}

/* Any address of a float, and no other: it is read by each step. */
static void places_of_the_factor(void **state)
{
    (void)state;
    float factors[2] = {1.0f, 1.0f};
    const char *at = (const char *)factors;
    for (int i = 0; i < ALGOS; i++) {
        largo_hyper h = defaults(algos[i]);
        for (size_t shift = 0; shift <= sizeof *factors; shift++) {
            h.grad_factor = (const float *)(const void *)(at + shift);
            if (shift % sizeof *factors == 0)
                assert_ok(largo_hyper_check(&h));
            else
                assert_refused(LARGO_ERR_ARGUMENT, "grad_factor", largo_hyper_check(&h));
        }
    }
}

static void init_and_presets(void **state)
{
    (void)state;
    largo_hyper h, before;
    memset(&h, 0x5a, sizeof h);
    memcpy(&before, &h, sizeof h);
    const int unknown[6] = {0, 7, 99, -1, 0x7fffffff, -0x7fffffff - 1};
    for (int i = 0; i < 6; i++)
        assert_refused(LARGO_ERR_ARGUMENT, "algo is", largo_hyper_init(&h, (largo_algo)unknown[i]));
    const size_t sizes[5] = {0, 8, sizeof h - 1, 4097, SIZE_MAX};
    for (int i = 0; i < 5; i++) {
        assert_refused(LARGO_ERR_ARGUMENT, "struct_size",
                       largo_hyper_init_sized(&h, sizes[i], LARGO_SGD));
        assert_refused(LARGO_ERR_ARGUMENT, "struct_size",
                       largo_hyper_preset_sized(&h, sizes[i], "nvlamb"));
    }
    const char *const presets[4] = {"", "lamb", "apex_lamb ", "NVLAMB"};
    for (int i = 0; i < 4; i++)
        assert_refused(LARGO_ERR_ARGUMENT, presets[i], largo_hyper_preset(&h, presets[i]));
    assert_refused(LARGO_ERR_ARGUMENT, "NULL", largo_hyper_preset(&h, NULL));
    assert_memory_equal(&h, &before, sizeof h);
    assert_refused(LARGO_ERR_ARGUMENT, "hyper is NULL",
                   largo_hyper_init_sized(NULL, sizeof h, LARGO_SGD));
    assert_refused(LARGO_ERR_ARGUMENT, "hyper is NULL",
                   largo_hyper_preset_sized(NULL, sizeof h, "nvlamb"));
    assert_refused(LARGO_ERR_ARGUMENT, "hyper is NULL", largo_hyper_check(NULL));
}

/* Everything a preset says, from the codes it is named after; all else is the default. */
static void every_preset(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        largo_algo algo;
        const char *fields;
    } presets[] = {
        {"apex_lamb", LARGO_LAMB, "adapt=2 max_grad_norm=1"},
        {"nvlamb", LARGO_LAMB, "max_grad_norm=1"},
        {"cybertronai_lamb", LARGO_LAMB, "bias_correction=0 weight_norm_max=10 weight_decay=0"},
        {"optax_lamb", LARGO_LAMB, "weight_decay=0"},
        {"timm_lamb", LARGO_LAMB, "adapt=2 max_grad_norm=1"},
        {"optax_lars", LARGO_LARS, "denominator=2"},
        {"timm_lars", LARGO_LARS, "adapt=2 velocity=2 eps=1e-8 momentum=0"},
        {"timm_larc", LARGO_LARS, "adapt=2 velocity=2 eps=1e-8 momentum=0 larc=1"},
        {"simclr_lars", LARGO_LARS, "denominator=2 weight_decay=1e-6"},
        {"simclr_lars_update", LARGO_LARS, "denominator=3 velocity=3 weight_decay=1e-6"},
    };
    largo_hyper h;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        largo_hyper want = defaults(presets[i].algo);
        test_hyper_set(&want, presets[i].fields);
        assert_ok(largo_hyper_preset(&h, presets[i].name));
        assert_memory_equal(&h, &want, sizeof h);
        assert_ok(largo_hyper_check(&h));
        assert_refused(LARGO_ERR_ARGUMENT, presets[i].name, largo_hyper_preset(&h, "nothing"));
    }
    test_assert_contains(largo_last_error(), "\"nothing\" is not known", __FILE__, __LINE__);
}

static void documented_defaults(void **state)
{
    (void)state;
    const largo_hyper lamb = defaults(LARGO_LAMB);
    assert_int_equal(lamb.struct_size, sizeof lamb);
    assert_int_equal(lamb.non_finite, LARGO_NON_FINITE_SKIP);
    assert_int_equal(lamb.maximize, LARGO_OFF);
    assert_int_equal(lamb.bias_correction, LARGO_ON);
    assert_int_equal(lamb.grad_averaging, LARGO_ON);
    assert_int_equal(lamb.l2, LARGO_OFF);
    assert_int_equal(lamb.adapt, LARGO_ADAPT_ALWAYS);
    assert_true(lamb.weight_norm_min == 0 && lamb.weight_norm_max == INFINITY);
    assert_true(lamb.trust_ratio_min == 0 && lamb.trust_ratio_max == INFINITY);
    assert_true(lamb.max_grad_norm == INFINITY && lamb.grad_scale == 1.0);
    assert_true(lamb.beta1 == 0.9 && lamb.beta2 == 0.999 && lamb.eps == 1e-6);
    const largo_hyper lars = defaults(LARGO_LARS);
    assert_int_equal(lars.adapt, LARGO_ADAPT_ALWAYS);
    assert_int_equal(lars.denominator, LARGO_DENOMINATOR_PAPER);
    assert_int_equal(lars.velocity, LARGO_VELOCITY_LR_RATIO);
    assert_int_equal(lars.nesterov, LARGO_OFF);
    assert_int_equal(lars.larc, LARGO_OFF);
    assert_true(lars.lr == 1e-3 && lars.momentum == 0.9 && lars.trust_coefficient == 1e-3);
    assert_true(lars.eps == 0 && lars.weight_decay == 0 && lars.clip_threshold == INFINITY);
    const largo_hyper sgd = defaults(LARGO_SGD);
    assert_int_equal(sgd.nesterov, LARGO_OFF);
    assert_true(sgd.momentum == 0 && sgd.dampening == 0 && sgd.weight_decay == 0);
    const largo_hyper adamw = defaults(LARGO_ADAMW);
    assert_int_equal(adamw.bias_correction, LARGO_ON);
    assert_true(adamw.eps == 1e-8 && adamw.lr == 1e-3 && adamw.weight_decay == 1e-2);
}

/* A program built against a later header. */
static void larger_structs(void **state)
{
    (void)state;
    struct {
        largo_hyper hyper;
        unsigned char tail[64];
    } h;
    memset(&h, 0x5a, sizeof h);
    assert_ok(largo_hyper_init_sized(&h.hyper, sizeof h.hyper + 32, LARGO_LAMB));
    for (int i = 0; i < 64; i++) assert_int_equal(h.tail[i], i < 32 ? 0 : 0x5a);
    assert_int_equal(h.hyper.struct_size, sizeof h.hyper + 32);
    assert_ok(largo_hyper_set(&h.hyper, "lr", 0.5));
    assert_ok(largo_hyper_check(&h.hyper));
    float w[2] = {1, 1}, g[2] = {1, 1}, m[2] = {0}, v[2] = {0};
    largo_param p = largo_param_f32(w, g, 2, 1);
    p.state[0] = m;
    p.state[1] = v;
    largo_ctx *ctx = test_ctx(1);
    assert_ok(largo_step(ctx, &h.hyper, 1, 1, &p));
    h.tail[31] = 1;
    assert_refused(LARGO_ERR_ARGUMENT, "hyper has a value", largo_hyper_check(&h.hyper));
    assert_refused(LARGO_ERR_ARGUMENT, "hyper has a value", largo_step(ctx, &h.hyper, 2, 1, &p));
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_every_range),
        cmocka_unit_test(hostile_choices),
        cmocka_unit_test(eps_of_lars_may_be_zero),
        cmocka_unit_test(pairs_that_do_not_fit),
        cmocka_unit_test(names),
        cmocka_unit_test(init_and_presets),
        cmocka_unit_test(every_preset),
        cmocka_unit_test(documented_defaults),
        cmocka_unit_test(larger_structs),
        cmocka_unit_test(places_of_the_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
