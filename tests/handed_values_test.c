/* labels: property short every-isa
 *
 * Small inputs with right values, by their number in the project's list of cases: formulas, zero
 * norms, clipping, skipping, counting. */
#include <math.h>
#include <string.h>
#include "support.h"

/* One tensor of at most four elements with the state of AdamW, LARS or LAMB. */
typedef struct small {
    float w[4], g[4], m[4], v[4];
    int64_t step;
    largo_param_stats stats;
    largo_param param;
} small;

static void set(small *s, int n, const double w[], const double g[], uint32_t flags)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < n; i++) {
        s->w[i] = (float)w[i];
        s->g[i] = (float)g[i];
    }
    s->param = largo_param_f32(s->w, s->g, n, 1);
    s->param.state[0] = s->m;
    s->param.state[1] = s->v;
    s->param.stats = &s->stats;
    s->param.flags = flags;
}

static largo_hyper hyper(largo_algo algo, double lr, double weight_decay)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algo));
    h.lr = lr;
    h.weight_decay = weight_decay;
    return h;
}

/* One step in a context of its own. */
static largo_outcome step(const largo_hyper *h, int64_t t, size_t n, const largo_param params[])
{
    largo_ctx *ctx = test_ctx(2);
    largo_outcome outcome = {.struct_size = sizeof outcome};
    assert_ok(largo_step(ctx, h, t, n, params));
    assert_ok(largo_last_outcome(ctx, &outcome));
    largo_ctx_destroy(ctx);
    return outcome;
}

#define LIST(...) ((const double[]){__VA_ARGS__})

static void h01_zero_weights_move_by_lr(void **state)
{
    (void)state;
    const largo_hyper h = hyper(LARGO_LAMB, 0.1, 0.01);
    small a;
    set(&a, 2, LIST(0, 0), LIST(.5, -.5), 0);
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(-0.0999998, 0.0999998));
    assert_true(a.stats.trust_ratio == 1.0 && a.stats.weight_norm == 0.0);
    test_close(a.stats.update_norm, sqrt(2) * 0.5 / (0.5 + 1e-6));
}

static void h02_lr_zero_leaves_positive_zeros(void **state)
{
    (void)state;
    largo_hyper h = hyper(LARGO_LAMB, 0.0, 0.0);
    small a;
    set(&a, 4, LIST(0, 0, 0, 0), LIST(1, 1, 1, 1), 0);
    a.param.value.ndim = a.param.grad.ndim = 2;
    for (int d = 0; d < 2; d++) a.param.value.shape[d] = a.param.grad.shape[d] = 2;
    step(&h, 1, 1, &a.param);
    const float zeros[4] = {0};
    assert_memory_equal(a.w, zeros, sizeof zeros);
    for (int i = 0; i < 4; i++) assert_true(isfinite(a.m[i]) && isfinite(a.v[i]));
    h.lr = 0.1;
    step(&h, 2, 1, &a.param);
    for (int i = 0; i < 4; i++) assert_true(fabs((double)a.w[i] + 0.1) < 1e-4);
}

static void h02_lars_too(void **state)
{
    (void)state;
    largo_hyper h = hyper(LARGO_LARS, 0.0, 0.0);
    small a;
    set(&a, 4, LIST(0, 0, 0, 0), LIST(1, 1, 1, 1), 0);
    step(&h, 1, 1, &a.param);
    const float zeros[4] = {0};
    assert_memory_equal(a.w, zeros, sizeof zeros);
    assert_memory_equal(a.m, zeros, sizeof zeros);
    h.lr = 0.1;
    step(&h, 2, 1, &a.param);
    test_near(4, a.w, LIST(-.1, -.1, -.1, -.1)); /* the ratio of zero weights is 1 */
}

static void h04_adamw_zero_gradient_element(void **state)
{
    (void)state;
    const largo_hyper h = hyper(LARGO_ADAMW, 0.1, 0.0);
    small a;
    set(&a, 2, LIST(1, 1), LIST(0, .5), 0);
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(1, 0.900000002));
    assert_true(a.w[0] == 1.0f);
}

static void h05_lars_zero_gradient_decays(void **state)
{
    (void)state;
    largo_hyper h = hyper(LARGO_LARS, 0.1, 0.1);
    small a;
    set(&a, 2, LIST(3, 4), LIST(0, 0), 0);
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(2.97, 3.96)); /* by lr weight_decay w: the ratio is 1 */
    h.denominator = LARGO_DENOMINATOR_DECAYED;
    set(&a, 2, LIST(3, 4), LIST(0, 0), 0);
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(2.9997, 3.9996)); /* by lr trust_coefficient w */
}

static void h06_lamb_zero_gradient_decays(void **state)
{
    (void)state;
    const double decay[3] = {0.1, 0.001, 0.0};
    for (int i = 0; i < 3; i++) {
        const largo_hyper h = hyper(LARGO_LAMB, 0.01, decay[i]);
        small a;
        set(&a, 2, LIST(3, 4), LIST(0, 0), 0);
        step(&h, 1, 1, &a.param);
        if (i < 2)
            test_near(2, a.w, LIST(2.97, 3.96));
        else
            assert_true(a.w[0] == 3.0f && a.w[1] == 4.0f);
    }
}

static void h07_lamb_two_steps(void **state)
{
    (void)state;
    const largo_hyper h = hyper(LARGO_LAMB, 0.1, 0.01);
    small a;
    set(&a, 4, LIST(1, -2, 3, -4), LIST(.1, -.2, .3, .4), 0);
    step(&h, 1, 1, &a.param);
    test_near(4, a.w, LIST(0.7248762452, -1.7221508587, 2.7194263802, -4.2615056751));
    test_close(a.stats.trust_ratio, 2.7240245422);
    test_close(a.stats.weight_norm, sqrt(30));
    const float second[4] = {.2f, .1f, -.3f, .05f};
    memcpy(a.g, second, sizeof second);
    step(&h, 2, 1, &a.param);
    test_near(4, a.w, LIST(0.3021844086, -1.5988948644, 2.7304833509, -4.5721290975));
    test_close(a.stats.trust_ratio, 4.3467822571);
}

static void h08_lars_first_step(void **state)
{
    (void)state;
    const largo_hyper h = hyper(LARGO_LARS, 1.0, 0.0);
    largo_param_stats stats;
    small a;
    set(&a, 2, LIST(3, 4), LIST(.6, .8), 0);
    a.param.stats = &stats;
    step(&h, 1, 1, &a.param);
    test_close(stats.trust_ratio, 0.005);
    test_near(2, a.w, LIST(2.997, 3.996));
}

/* Of the old velocity, made at ten times the rate: LR_RATIO keeps all, RATIO a tenth, GRAD a tenth
 * at the new ratio too. */
static void h09_lars_learning_rate_falls(void **state)
{
    (void)state;
    static const double second[3][2] = {
        {2.9940003000, 3.9927956278}, {2.9964303000, 3.9960356278}, {2.9966721, 3.9963581}};
    for (int velocity = 1; velocity <= 3; velocity++) {
        largo_hyper h = hyper(LARGO_LARS, 1.0, 0.01);
        h.velocity = (largo_velocity)velocity;
        small a;
        set(&a, 2, LIST(3, 4), LIST(.6, .8), 0);
        step(&h, 1, 1, &a.param);
        test_near(2, a.w, LIST(2.997, 3.996));
        a.g[0] = 6;
        a.g[1] = -8;
        h.lr = 0.1;
        step(&h, 2, 1, &a.param);
        test_near(2, a.w, second[velocity - 1]);
    }
}

static void h10_lamb_ratio_bound(void **state)
{
    (void)state;
    largo_hyper h = hyper(LARGO_LAMB, 0.1, 0.01);
    h.trust_ratio_max = 1.0;
    small a;
    set(&a, 4, LIST(1, -2, 3, -4), LIST(.1, -.2, .3, .4), 0);
    step(&h, 1, 1, &a.param);
    test_near(4, a.w, LIST(0.899001, -1.8980005, 2.8970003, -4.0959998));
    assert_true(a.stats.trust_ratio == 1.0);
    set(&a, 2, LIST(.01, .02), LIST(.5, .5), 0);
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(0.0084189402, 0.0184187821));
    test_close(a.stats.trust_ratio, 0.0158090485);
}

/* One call, two groups: without momentum there is no state, and the other is as if alone. */
static void h11_lars_without_momentum(void **state)
{
    (void)state;
    const double second[2] = {.8, -.6};
    largo_hyper h[2] = {hyper(LARGO_LARS, 1.0, 0.0), hyper(LARGO_LARS, 1.0, 0.0)};
    h[0].momentum = 0.0;
    small a[2], alone;
    largo_ctx *ctx = test_ctx(2);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    set(&alone, 2, LIST(3, 4), LIST(.6, .8), 0);
    for (int i = 0; i < 2; i++) {
        largo_slot slots[LARGO_MAX_SLOTS];
        size_t n;
        set(&a[i], 2, LIST(3, 4), LIST(.6, .8), 0);
        assert_ok(largo_slots(&h[i], &a[i].param, slots, &n));
        assert_int_equal(n, i);
        if (!i) a[i].param.state[0] = a[i].param.state[1] = NULL;
        assert_ok(largo_optim_add_group(o, &h[i], 1, &a[i].param, NULL));
    }
    for (int t = 1; t <= 2; t++) {
        assert_ok(largo_optim_step(o));
        step(&h[1], t, 1, &alone.param);
        test_near(2, a[0].w, t == 1 ? LIST(2.997, 3.996) : LIST(2.993004, 3.998997));
        for (int i = 0; i < 2; i++) a[0].g[i] = a[1].g[i] = alone.g[i] = (float)second[i];
    }
    assert_memory_equal(a[1].w, alone.w, sizeof alone.w);
    assert_memory_equal(a[1].m, alone.m, sizeof alone.m);
    largo_tensor view;
    assert_status(LARGO_ERR_ARGUMENT, largo_optim_slot(o, 0, 0, "momentum_buffer", &view));
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

static void h13_no_decay_no_trust(void **state)
{
    (void)state;
    const largo_hyper h = hyper(LARGO_LAMB, 0.1, 0.01);
    small a;
    set(&a, 2, LIST(1, -2), LIST(.1, -.2), LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST);
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(0.900001, -1.9000005));
    assert_true(a.stats.trust_ratio == 1.0);
    set(&a, 2, LIST(1, -2), LIST(.1, -.2), LARGO_PARAM_NO_DECAY);
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(0.8418865, -1.8418857));
    test_close(a.stats.trust_ratio, 1.5811507);
}

static void h19_clip_by_global_norm(void **state)
{
    (void)state;
    const largo_algo algos[2] = {LARGO_ADAMW, LARGO_LAMB};
    for (int i = 0; i < 2; i++) {
        largo_hyper h = hyper(algos[i], 0.1, 0.01);
        h.max_grad_norm = 1.0;
        small a[2];
        set(&a[0], 1, LIST(1), LIST(3), 0);
        set(&a[1], 1, LIST(1), LIST(4), 0);
        const largo_param params[2] = {a[0].param, a[1].param};
        const largo_outcome o = step(&h, 1, 2, params);
        test_close(o.grad_norm, 5.0);
        test_close(o.clip, 0.2);
        test_near(1, a[0].m, LIST(.06));
        test_near(1, a[1].m, LIST(.08));
    }
}

static void h33_loss_scale_is_exact(void **state)
{
    (void)state;
    const largo_algo algos[2] = {LARGO_LAMB, LARGO_LARS};
    for (int k = 0; k < 2; k++) {
        largo_hyper h = hyper(algos[k], 0.1, 0.01);
        small plain, scaled;
        set(&plain, 4, LIST(1, -2, 3, -4), LIST(.1, -.2, .3, .4), 0);
        set(&scaled, 4, LIST(1, -2, 3, -4), LIST(.1, -.2, .3, .4), 0);
        for (int i = 0; i < 4; i++) scaled.g[i] *= 1024.0f;
        step(&h, 1, 1, &plain.param);
        h.grad_scale = 0x1p-10;
        step(&h, 1, 1, &scaled.param);
        assert_memory_equal(plain.w, scaled.w, sizeof plain.w);
        assert_memory_equal(plain.m, scaled.m, sizeof plain.m);
        assert_memory_equal(plain.v, scaled.v, sizeof plain.v);
    }
}

static void h34_clip_after_scale(void **state)
{
    (void)state;
    largo_hyper h = hyper(LARGO_ADAMW, 0.1, 0.01);
    h.grad_scale = 0x1p-10;
    h.max_grad_norm = 1.0;
    small a;
    set(&a, 2, LIST(1, 1), LIST(3072, 4096), 0);
    test_close(step(&h, 1, 1, &a.param).grad_norm, 5.0);
    test_near(2, a.m, LIST(.06, .08));
}

static void h31_skip_changes_nothing(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    const largo_hyper h = hyper(LARGO_LAMB, 0.1, 0.01);
    small a[3], before[3], first[3];
    largo_param params[3], alone[3];
    for (int i = 0; i < 3; i++) {
        set(&a[i], 2, LIST(1, -2), LIST(.1, -.2), 0);
        a[i].step = 0;
        a[i].param.step = &a[i].step;
        params[i] = a[i].param;
        set(&first[i], 2, LIST(1, -2), LIST(.1, -.2), 0);
        alone[i] = first[i].param;
    }
    a[1].g[0] = INFINITY;
    memcpy(before, a, sizeof a);
    assert_status(LARGO_SKIPPED, largo_step(ctx, &h, 1, 3, params));
    assert_memory_equal(before, a, sizeof a);
    largo_outcome o = {.struct_size = sizeof o};
    assert_ok(largo_last_outcome(ctx, &o));
    assert_int_equal(o.skipped, 1);
    assert_int_equal(o.bad_param, 1);
    assert_int_equal(o.bad_element, 0);
    a[1].g[0] = .1f;
    assert_ok(largo_step(ctx, &h, 99, 3, params)); /* their own counts: still the first step */
    assert_ok(largo_step(ctx, &h, 1, 3, alone));
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(a[i].w, first[i].w, sizeof a[i].w);
        assert_memory_equal(a[i].v, first[i].v, sizeof a[i].v);
        assert_int_equal(a[i].step, 1);
    }
    largo_ctx_destroy(ctx);
}

static void h32_a_skipped_step_does_not_count(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    const largo_hyper h = hyper(LARGO_ADAMW, 0.01, 0.01);
    small a;
    set(&a, 2, LIST(1, -2), LIST(.1, -.2), 0);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    a.param.state[0] = a.param.state[1] = NULL;
    assert_ok(largo_optim_add_group(o, &h, 1, &a.param, NULL));
    assert_ok(largo_optim_step(o));
    a.g[0] = INFINITY;
    a.g[1] = 0;
    assert_status(LARGO_SKIPPED, largo_optim_step(o));
    assert_int_equal(largo_optim_step_count(o), 1);
    a.g[0] = .3f;
    a.g[1] = .1f;
    assert_ok(largo_optim_step(o));
    test_near(2, a.w, LIST(0.9806232002, -1.9869376503));
    assert_int_equal(largo_optim_step_count(o), 2);
    assert_int_equal(largo_optim_param_step(o, 0, 0), 2);
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

static void h35_each_parameter_counts_its_steps(void **state)
{
    (void)state;
    const largo_hyper h = hyper(LARGO_ADAMW, 0.1, 0.0);
    small a, b;
    set(&a, 1, LIST(1), LIST(.5), 0);
    set(&b, 1, LIST(1), LIST(.25), 0);
    a.param.step = &a.step;
    b.param.step = &b.step;
    largo_param params[2] = {a.param, b.param};
    params[1].grad.data = NULL;
    step(&h, 1, 2, params);
    assert_int_equal(a.step, 1);
    assert_int_equal(b.step, 0);
    params[1].grad.data = b.g;
    step(&h, 2, 2, params);
    test_near(1, b.w, LIST(0.900000004));
    assert_int_equal(a.step, 2);
    assert_int_equal(b.step, 1);
}

static void h49_no_gradient_no_touch(void **state)
{
    (void)state;
    const largo_algo algos[2] = {LARGO_ADAMW, LARGO_LAMB};
    for (int i = 0; i < 2; i++) {
        const largo_hyper h = hyper(algos[i], 0.1, 0.1);
        small a, before;
        set(&a, 2, LIST(1, 2), LIST(1, 1), 0);
        a.param.grad.data = NULL;
        a.param.step = &a.step;
        before = a;
        step(&h, 1, 1, &a.param);
        assert_memory_equal(&a, &before, sizeof a);
    }
}

static void h50_zero_gradient_decays(void **state)
{
    (void)state;
    const largo_hyper h = hyper(LARGO_ADAMW, 0.1, 0.1);
    small a;
    set(&a, 2, LIST(1, 2), LIST(0, 0), 0);
    a.param.step = &a.step;
    step(&h, 1, 1, &a.param);
    test_near(2, a.w, LIST(.99, 1.98));
    assert_int_equal(a.step, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h01_zero_weights_move_by_lr),
        cmocka_unit_test(h02_lr_zero_leaves_positive_zeros),
        cmocka_unit_test(h02_lars_too),
        cmocka_unit_test(h04_adamw_zero_gradient_element),
        cmocka_unit_test(h05_lars_zero_gradient_decays),
        cmocka_unit_test(h06_lamb_zero_gradient_decays),
        cmocka_unit_test(h07_lamb_two_steps),
        cmocka_unit_test(h08_lars_first_step),
        cmocka_unit_test(h09_lars_learning_rate_falls),
        cmocka_unit_test(h10_lamb_ratio_bound),
        cmocka_unit_test(h11_lars_without_momentum),
        cmocka_unit_test(h13_no_decay_no_trust),
        cmocka_unit_test(h19_clip_by_global_norm),
        cmocka_unit_test(h31_skip_changes_nothing),
        cmocka_unit_test(h32_a_skipped_step_does_not_count),
        cmocka_unit_test(h33_loss_scale_is_exact),
        cmocka_unit_test(h34_clip_after_scale),
        cmocka_unit_test(h35_each_parameter_counts_its_steps),
        cmocka_unit_test(h49_no_gradient_no_touch),
        cmocka_unit_test(h50_zero_gradient_decays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
