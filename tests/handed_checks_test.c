/* labels: property short
 *
 * Handed cases about refusals: hyper-parameters, fields that an algorithm does not use, tensors
 * listed twice, the capability call. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "support.h"

/* The fields of the header, by hand: the library's own table may have forgotten one. */
typedef struct field {
    const char *name;
    size_t offset;
    int is_choice;
} field;

/* clang-format off */
#define NUMBER(name) {#name, offsetof(largo_hyper, name), 0}
#define CHOICE(name) {#name, offsetof(largo_hyper, name), 1}
/* clang-format on */
static const field fields[] = {
    CHOICE(non_finite),
    CHOICE(maximize),
    CHOICE(bias_correction),
    CHOICE(nesterov),
    CHOICE(grad_averaging),
    CHOICE(l2),
    CHOICE(adapt),
    CHOICE(larc),
    CHOICE(denominator),
    CHOICE(velocity),
    NUMBER(lr),
    NUMBER(beta1),
    NUMBER(beta2),
    NUMBER(beta3),
    NUMBER(momentum),
    NUMBER(dampening),
    NUMBER(eps),
    NUMBER(eps2),
    NUMBER(weight_decay),
    NUMBER(trust_coefficient),
    NUMBER(clip_threshold),
    NUMBER(weight_norm_min),
    NUMBER(weight_norm_max),
    NUMBER(trust_ratio_min),
    NUMBER(trust_ratio_max),
    NUMBER(grad_scale),
    NUMBER(max_grad_norm),
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const char *const used_by_all =
    " non_finite maximize lr weight_decay grad_scale max_grad_norm ";

/* What else the header says each algorithm uses. */
static const struct {
    largo_algo algo;
    const char *name, *uses;
} algorithms[] = {
    {LARGO_SGD, "sgd", " nesterov momentum dampening "},
    {LARGO_ADAMW, "adamw", " bias_correction beta1 beta2 eps "},
    {LARGO_LARS, "lars",
     " nesterov adapt larc denominator velocity momentum eps trust_coefficient clip_threshold "
     "weight_norm_min weight_norm_max trust_ratio_min trust_ratio_max "},
    {LARGO_LAMB, "lamb",
     " bias_correction grad_averaging l2 adapt beta1 beta2 eps weight_norm_min weight_norm_max "
     "trust_ratio_min trust_ratio_max "},
    {LARGO_CAME, "came", " beta1 beta2 beta3 eps eps2 clip_threshold "},
    {LARGO_MERIT, "merit", " bias_correction beta1 beta2 eps clip_threshold "},
};
enum { ALGOS = sizeof algorithms / sizeof *algorithms };

static int uses(int algo, const field *f)
{
    char word[40];
    snprintf(word, sizeof word, " %s ", f->name);
    return strstr(used_by_all, word) || strstr(algorithms[algo].uses, word);
}

static largo_hyper defaults(int algo)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algorithms[algo].algo));
    return h;
}

static void put(largo_hyper *h, const field *f, double value)
{
    const int32_t choice = (int32_t)value;
    if (f->is_choice)
        memcpy((char *)h + f->offset, &choice, sizeof choice);
    else
        memcpy((char *)h + f->offset, &value, sizeof value);
}

/* A step of one parameter is refused for this field, and wrote nothing. */
static void step_refuses(const largo_hyper *h, const char *name)
{
    float w[2] = {1, 2}, g[2] = {3, 4}, m[2] = {5, 6}, v[2] = {7, 8};
    largo_ctx *ctx = test_ctx(1);
    largo_param p = largo_param_f32(w, g, 2, 1);
    p.state[0] = m;
    p.state[1] = v;
    assert_refused(LARGO_ERR_ARGUMENT, name, largo_step(ctx, h, 1, 1, &p));
    assert_true(w[0] == 1 && w[1] == 2 && m[0] == 5 && m[1] == 6 && v[0] == 7 && v[1] == 8);
    assert_refused(LARGO_ERR_ARGUMENT, name, largo_hyper_check(h));
    largo_ctx_destroy(ctx);
}

static void refuses(int algo, const char *name, double value)
{
    for (int f = 0; f < FIELDS; f++) {
        if (strcmp(fields[f].name, name) != 0 || !uses(algo, &fields[f])) continue;
        largo_hyper h = defaults(algo);
        put(&h, &fields[f], value);
        step_refuses(&h, name);
        h = defaults(algo);
        largo_hyper before;
        memcpy(&before, &h, sizeof h);
        assert_refused(LARGO_ERR_ARGUMENT, name, largo_hyper_set(&h, name, value));
        assert_memory_equal(&before, &h, sizeof h);
    }
}

static void h43_hyper_parameters_out_of_range(void **state)
{
    (void)state;
    const struct {
        const char *name;
        double value;
    } wrong[] = {
        {"beta1", 1},
        {"beta1", -.1},
        {"beta1", NAN},
        {"beta2", 1},
        {"beta2", -.1},
        {"beta2", NAN},
        {"eps", 0},
        {"eps", -1},
        {"lr", NAN},
        {"lr", -1},
        {"lr", INFINITY},
        {"weight_decay", -1},
        {"weight_decay", INFINITY},
    };
    for (int algo = 0; algo < ALGOS; algo++)
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            const int is_eps_zero = strcmp(wrong[i].name, "eps") == 0 && wrong[i].value == 0;
            if (is_eps_zero && algorithms[algo].algo == LARGO_LARS) continue; /* its default */
            refuses(algo, wrong[i].name, wrong[i].value);
        }
}

/* Every algorithm and every field that it does not use, with several values that look harmless. */
static void h44_unused_fields_are_refused(void **state)
{
    (void)state;
    int unused = 0;
    for (int algo = 0; algo < ALGOS; algo++)
        for (int f = 0; f < FIELDS; f++) {
            if (uses(algo, &fields[f])) continue;
            unused++;
            const double numbers[5] = {0.0, 0.5, 1.0, INFINITY, -1.0};
            for (int i = 0; i < 5; i++) {
                if (fields[f].is_choice && (numbers[i] == 0 || !isfinite(numbers[i]))) continue;
                largo_hyper h = defaults(algo), before;
                put(&h, &fields[f], fields[f].is_choice ? numbers[i] * 2 : numbers[i]);
                step_refuses(&h, fields[f].name);
                test_assert_contains(largo_last_error(), algorithms[algo].name, __FILE__, __LINE__);
                h = defaults(algo);
                memcpy(&before, &h, sizeof h);
                assert_refused(LARGO_ERR_ARGUMENT, fields[f].name,
                               largo_hyper_set(&h, fields[f].name, numbers[i]));
                assert_memory_equal(&before, &h, sizeof h);
            }
        }
    assert_true(unused > 30);
}

/* Defaults are accepted, with NaN or 0 in all that is unused, a number in all that is not. */
static void h44_defaults_leave_unused_fields_unset(void **state)
{
    (void)state;
    for (int algo = 0; algo < ALGOS; algo++) {
        const largo_hyper h = defaults(algo);
        assert_ok(largo_hyper_check(&h));
        for (int f = 0; f < FIELDS; f++) {
            const char *at = (const char *)&h + fields[f].offset;
            int32_t choice;
            double number;
            memcpy(&choice, at, sizeof choice);
            memcpy(&number, at, sizeof number);
            const int is_set = fields[f].is_choice ? choice != 0 : !isnan(number);
            if (is_set != (uses(algo, &fields[f]) != 0))
                fail_msg("%s of %s", fields[f].name, algorithms[algo].name);
        }
    }
}

static void h45_max_grad_norm(void **state)
{
    (void)state;
    for (int algo = 0; algo < ALGOS; algo++) {
        refuses(algo, "max_grad_norm", 0.0);
        refuses(algo, "max_grad_norm", -1.0);
        refuses(algo, "max_grad_norm", NAN);
        largo_hyper h = defaults(algo);
        h.max_grad_norm = INFINITY;
        assert_ok(largo_hyper_check(&h));
    }
    float w[2] = {1, 1}, g[2] = {3000, 4000};
    largo_hyper h = defaults(0);
    h.lr = 1.0;
    h.max_grad_norm = INFINITY;
    const largo_param p = largo_param_f32(w, g, 2, 1);
    largo_ctx *ctx = test_ctx(1);
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    assert_true(w[0] == -2999.0f && w[1] == -3999.0f);
    largo_ctx_destroy(ctx);
}

/* Nothing is changed, *matched included. */
static void flag_refused(const char *text, size_t n, largo_param params[],
                         const char *const names[], const char *pattern, uint32_t flags)
{
    largo_param before[4];
    size_t matched = 77;
    if (params) memcpy(before, params, sizeof before);
    assert_refused(LARGO_ERR_ARGUMENT, text,
                   largo_params_flag(n, params, names, pattern, flags, &matched));
    if (params) assert_memory_equal(before, params, sizeof before);
    assert_int_equal(matched, 77);
}

static void h46_flags_by_name(void **state)
{
    (void)state;
    float x[4] = {0};
    const char *names[4] = {"a/LayerNorm/gamma", "a/kernel", "a/bias", "b/LayerNorm/beta"};
    largo_param p[4];
    for (int i = 0; i < 4; i++) p[i] = largo_param_f32(&x[i], NULL, 1, 1);
    p[1].flags = LARGO_PARAM_GRAD_SCRATCH;
    const uint32_t both = LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST;
    flag_refused("pattern is \"layer_norm\"; none of 3 names holds it", 3, p, names, "layer_norm",
                 both);
    flag_refused("none of 3 names", 3, p, names, "layernorm", both); /* case counts */
    size_t matched = 77;
    assert_ok(largo_params_flag(3, p, names, "LayerNorm", both, &matched));
    assert_int_equal(matched, 1);
    assert_int_equal(p[0].flags, both);
    assert_int_equal(p[3].flags, 0); /* not among the three */
    assert_ok(largo_params_flag(4, p, names, "a/", LARGO_PARAM_FROZEN, NULL));
    assert_int_equal(p[0].flags, both | LARGO_PARAM_FROZEN);
    assert_int_equal(p[1].flags, LARGO_PARAM_GRAD_SCRATCH | LARGO_PARAM_FROZEN);
    assert_int_equal(p[3].flags, 0);
    assert_ok(largo_params_flag(4, p, names, "b/LayerNorm/beta", both, &matched)); /* all of it */
    assert_int_equal(matched, 1);

    flag_refused("pattern is empty", 4, p, names, "", both);
    flag_refused("pattern is NULL", 4, p, names, NULL, both);
    flag_refused("flags is 0x11", 4, p, names, "a/", 0x11);
    flag_refused("flags is 0x0", 4, p, names, "a/", 0);
    flag_refused("names is NULL", 4, p, NULL, "a/", both);
    flag_refused("params is NULL", 4, NULL, names, "a/", both);
    flag_refused("none of 0 names", 0, p, names, "a/", both);
    names[2] = NULL;
    flag_refused("names[2] is NULL", 4, p, names, "a/", both);
}

static void h47_exempt_vectors(void **state)
{
    (void)state;
    float x[100] = {0};
    largo_param p[4] = {largo_param_f32(x, x, 10, 1), largo_param_f32(x, x, 10, 10),
                        largo_param_f32(x, x, 1, 10), largo_param_f32(x, x, 1, 1)};
    p[3].value.ndim = 0;
    p[0].flags = LARGO_PARAM_GRAD_SCRATCH;
    assert_int_equal(largo_params_exempt_vectors(4, p), 2);
    const uint32_t both = LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST;
    assert_int_equal(p[0].flags, both | LARGO_PARAM_GRAD_SCRATCH);
    assert_int_equal(p[1].flags, 0);
    assert_int_equal(p[2].flags, 0);
    assert_int_equal(p[3].flags, both);
    assert_int_equal(largo_params_exempt_vectors(0, NULL), 0);
}

static void h48_a_tensor_listed_twice(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    const largo_hyper h = defaults(0);
    float w[2] = {1, 2}, g[2] = {3, 4}, g2[2] = {3, 4};
    const largo_param twice[2] = {largo_param_f32(w, g, 2, 1), largo_param_f32(w, g2, 2, 1)};
    assert_refused(LARGO_ERR_ARGUMENT, "params[1].value", largo_step(ctx, &h, 1, 2, twice));
    test_assert_contains(largo_last_error(), "params[0].value", __FILE__, __LINE__);
    test_assert_contains(largo_last_error(), "overlaps", __FILE__, __LINE__);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    assert_refused(LARGO_ERR_ARGUMENT, "group 0: params[1].value",
                   largo_optim_add_group(o, &h, 2, twice, NULL));
    assert_ok(largo_optim_add_group(o, &h, 1, &twice[0], NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "group 1: params[0].value",
                   largo_optim_add_group(o, &h, 1, &twice[1], NULL));
    test_assert_contains(largo_last_error(), "group 0: params[0].value", __FILE__, __LINE__);
    assert_true(w[0] == 1 && w[1] == 2);
    assert_ok(largo_optim_step(o)); /* with the one group that it has */
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

static void h93_capabilities(void **state)
{
    (void)state;
    largo_capability list[16];
    size_t n;
    int cpu = 0, cuda = 0, scalar = 0;
    assert_ok(largo_capabilities(16, list, &n));
    assert_true(n >= 3 && n <= 16);
    for (size_t i = 0; i < n; i++) {
        const int is_backend = strcmp(list[i].kind, "backend") == 0;
        assert_true(is_backend || strcmp(list[i].kind, "isa") == 0);
        assert_true(list[i].available == 0 || list[i].available == 1);
        assert_int_equal(list[i].reserved, 0);
        assert_int_equal(strlen(list[i].reason) == 0, list[i].available);
        cpu += is_backend && strcmp(list[i].name, "cpu") == 0 && list[i].available;
        cuda += is_backend && strcmp(list[i].name, "cuda") == 0;
        scalar += !is_backend && strcmp(list[i].name, "scalar") == 0 && list[i].available;
    }
    assert_true(cpu == 1 && cuda == 1 && scalar == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h43_hyper_parameters_out_of_range),
        cmocka_unit_test(h44_unused_fields_are_refused),
        cmocka_unit_test(h44_defaults_leave_unused_fields_unset),
        cmocka_unit_test(h45_max_grad_norm),
        cmocka_unit_test(h46_flags_by_name),
        cmocka_unit_test(h47_exempt_vectors),
        cmocka_unit_test(h48_a_tensor_listed_twice),
        cmocka_unit_test(h93_capabilities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
