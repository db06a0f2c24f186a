/* labels: short
 *
 * The optimizer object: documented answers and refusals. After a refusal it is as it was. */
#include <math.h>
#include <string.h>
#include "support.h"

enum { N = 24 };

typedef struct scene {
    largo_ctx *ctx;
    largo_optim *optim;
    largo_hyper hyper;
    float w[2][N], g[2][N], m[N], v[N];
    int64_t step;
    largo_param params[2]; /* the second has state and count of the caller's */
} scene;

static void make_scene(scene *s)
{
    memset(s, 0, sizeof *s);
    s->ctx = test_ctx(2);
    assert_ok(largo_hyper_init(&s->hyper, LARGO_LAMB));
    for (int i = 0; i < 2; i++) {
        test_fill(s->w[i], N, 1, 0, 2);
        test_fill(s->g[i], N, 2, 0, 2);
        s->params[i] = largo_param_f32(s->w[i], s->g[i], 4, 6);
    }
    s->params[1].state[0] = s->m;
    s->params[1].state[1] = s->v;
    s->params[1].step = &s->step;
    assert_ok(largo_optim_create(s->ctx, &s->optim));
    size_t group = 77;
    assert_ok(largo_optim_add_group(s->optim, &s->hyper, 2, s->params, &group));
    assert_int_equal(group, 0);
}

static void end_scene(scene *s)
{
    largo_optim_destroy(s->optim);
    largo_ctx_destroy(s->ctx);
}

/* What a step writes, as bytes: equal when nothing was changed. */
static uint64_t fingerprint(scene *s)
{
    uint64_t hash = test_hash(7, &s->w[0][0], sizeof(float[4][N]) / sizeof(float));
    hash = test_hash(hash, s->m, N);
    hash = test_hash(hash, s->v, N);
    for (size_t i = 0; i < 2; i++) {
        largo_tensor view;
        assert_ok(largo_optim_slot(s->optim, 0, i, "exp_avg", &view));
        hash = test_hash(hash, view.data, N);
        hash = hash * 31 + (uint64_t)largo_optim_param_step(s->optim, 0, i);
    }
    return hash * 31 + (uint64_t)largo_optim_step_count(s->optim) + (uint64_t)s->step;
}

static void null_arguments(void **state)
{
    (void)state;
    scene s;
    make_scene(&s);
    largo_optim *o = (largo_optim *)1;
    assert_refused(LARGO_ERR_ARGUMENT, "ctx is NULL", largo_optim_create(NULL, &o));
    assert_null(o);
    assert_refused(LARGO_ERR_ARGUMENT, "optim is NULL", largo_optim_create(s.ctx, NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "optim is NULL", largo_optim_step(NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "optim is NULL", largo_optim_rebind(NULL, 0, 2, s.params));
    assert_refused(LARGO_ERR_ARGUMENT, "optim is NULL", largo_optim_set_schedule(NULL, 0, NULL));
    largo_tensor view;
    assert_refused(LARGO_ERR_ARGUMENT, "optim is NULL",
                   largo_optim_slot(NULL, 0, 0, "exp_avg", &view));
    assert_null(largo_optim_hyper(NULL, 0));
    assert_null(largo_optim_hyper(s.optim, 1));
    assert_int_equal(largo_optim_step_count(NULL), -1);
    assert_int_equal(largo_optim_param_step(NULL, 0, 0), -1);
    assert_int_equal(largo_optim_param_step(s.optim, 1, 0), -1);
    assert_int_equal(largo_optim_param_step(s.optim, 0, 2), -1);
    assert_int_equal(largo_optim_param_step(s.optim, SIZE_MAX, SIZE_MAX), -1);
    end_scene(&s);
}

/* An object may be stepped before it has anything to step, as a call with n = 0 may be made. */
static void object_without_groups(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    assert_int_equal(largo_optim_step_count(o), 0);
    assert_ok(largo_optim_step(o));
    assert_int_equal(largo_optim_step_count(o), 1);
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

static void group_without_parameters(void **state)
{
    (void)state;
    scene s;
    make_scene(&s);
    size_t group;
    assert_ok(largo_optim_add_group(s.optim, &s.hyper, 0, NULL, &group));
    assert_int_equal(group, 1);
    assert_ok(largo_optim_rebind(s.optim, 1, 0, NULL));
    assert_ok(largo_optim_step(s.optim));
    assert_int_equal(largo_optim_step_count(s.optim), 1);
    end_scene(&s);
}

static void slots_by_name(void **state)
{
    (void)state;
    scene s;
    make_scene(&s);
    largo_tensor view, before;
    memset(&view, 0x5a, sizeof view);
    before = view;
    assert_refused(LARGO_ERR_ARGUMENT, "group is 1",
                   largo_optim_slot(s.optim, 1, 0, "exp_avg", &view));
    assert_refused(LARGO_ERR_ARGUMENT, "index is 2",
                   largo_optim_slot(s.optim, 0, 2, "exp_avg", &view));
    assert_refused(LARGO_ERR_ARGUMENT, "NULL", largo_optim_slot(s.optim, 0, 0, NULL, &view));
    assert_refused(LARGO_ERR_ARGUMENT, "view is NULL",
                   largo_optim_slot(s.optim, 0, 0, "exp_avg", NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "momentum_buffer",
                   largo_optim_slot(s.optim, 0, 0, "momentum_buffer", &view));
    assert_memory_equal(&view, &before, sizeof view);
    assert_ok(largo_optim_slot(s.optim, 0, 0, "exp_avg_sq", &view));
    const float *own = view.data;
    for (int i = 0; i < N; i++) assert_true(own[i] == 0.0f);
    assert_int_equal(view.ndim, 2);
    assert_int_equal(view.shape[1], 6);
    assert_int_equal(view.dtype, LARGO_F32);
    assert_ok(largo_optim_slot(s.optim, 0, 1, "exp_avg_sq", &view));
    assert_ptr_equal(view.data, s.v);
    end_scene(&s);
}

static void rebind_refuses(scene *s, size_t group, size_t n, const largo_param p[],
                           largo_status status, const char *text)
{
    const uint64_t before = fingerprint(s);
    assert_refused(status, text, largo_optim_rebind(s->optim, group, n, p));
    assert_true(fingerprint(s) == before);
}

static void rebind(void **state)
{
    (void)state;
    scene s;
    make_scene(&s);
    assert_ok(largo_optim_step(s.optim));
    rebind_refuses(&s, 1, 2, s.params, LARGO_ERR_ARGUMENT, "group is 1");
    rebind_refuses(&s, 0, 1, s.params, LARGO_ERR_ARGUMENT, "n is 1");
    rebind_refuses(&s, 0, 3, s.params, LARGO_ERR_ARGUMENT, "n is 3");
    rebind_refuses(&s, 0, 2, NULL, LARGO_ERR_ARGUMENT, "params is NULL");
    const struct {
        largo_status status;
        const char *text;
    } wrong[8] = {
        {LARGO_ERR_SHAPE, "params[1].value"},       {LARGO_ERR_SHAPE, "params[1].value"},
        {LARGO_ERR_SHAPE, "params[1].segments"},    {LARGO_ERR_ARGUMENT, "params[1].step is NULL"},
        {LARGO_ERR_ARGUMENT, "params[1].state[0]"}, {LARGO_ERR_ARGUMENT, "overlaps"},
        {LARGO_ERR_ARGUMENT, "params[1].flags"},    {LARGO_ERR_ARGUMENT, "params[1].value.data"},
    };
    for (int i = 0; i < 8; i++) {
        largo_param p[2] = {s.params[0], s.params[1]};
        if (i == 0) p[1].value.shape[0] = p[1].grad.shape[0] = 3;
        if (i == 1) p[1].value.ndim = p[1].grad.ndim = 1;
        if (i == 2) p[1].segments = 2;
        if (i == 3) p[1].step = NULL;
        if (i == 4) p[1].state[0] = NULL;
        if (i == 5) p[1].value.data = s.w[0] + 1;
        if (i == 6) p[1].flags = 1u << 31;
        if (i == 7) p[1].value.data = NULL;
        rebind_refuses(&s, 0, 2, p, wrong[i].status, wrong[i].text);
    }
    assert_ok(largo_optim_rebind(s.optim, 0, 2, s.params));
    assert_ok(largo_optim_step(s.optim));
    assert_int_equal(largo_optim_step_count(s.optim), 2);
    end_scene(&s);
}

/* A rebind that unfreezes one parameter and is refused because of another can be made right. */
static void refused_unfreezing_can_be_repeated(void **state)
{
    (void)state;
    scene s;
    make_scene(&s);
    largo_optim *o;
    assert_ok(largo_optim_create(s.ctx, &o));
    largo_param p[2] = {s.params[0], s.params[1]};
    p[0].flags = LARGO_PARAM_FROZEN;
    assert_ok(largo_optim_add_group(o, &s.hyper, 2, p, NULL));
    p[0].flags = 0;
    p[1].value.data = (char *)p[1].value.data + 1;
    assert_refused(LARGO_ERR_ARGUMENT, "params[1].value.data", largo_optim_rebind(o, 0, 2, p));
    p[1].value.data = s.w[1];
    assert_ok(largo_optim_rebind(o, 0, 2, p));
    assert_ok(largo_optim_step(o));
    assert_int_equal(largo_optim_param_step(o, 0, 0), 1);
    largo_optim_destroy(o);
    end_scene(&s);
}

static void changed_hyper_parameters_are_checked(void **state)
{
    (void)state;
    scene s;
    make_scene(&s);
    const uint64_t before = fingerprint(&s);
    largo_hyper *h = largo_optim_hyper(s.optim, 0);
    h->lr = NAN;
    assert_refused(LARGO_ERR_ARGUMENT, "group 0: hyper.lr", largo_optim_step(s.optim));
    h->lr = 0.1;
    h->momentum = 0.9;
    assert_refused(LARGO_ERR_ARGUMENT, "momentum", largo_optim_step(s.optim));
    h->momentum = NAN;
    h->algo = (largo_algo)99;
    assert_refused(LARGO_ERR_ARGUMENT, "algo", largo_optim_step(s.optim));
    largo_hyper adamw;
    assert_ok(largo_hyper_init(&adamw, LARGO_ADAMW));
    *h = adamw;
    assert_refused(LARGO_ERR_ARGUMENT, "algo is 2; it must stay 4", largo_optim_step(s.optim));
    *h = s.hyper;
    h->struct_size += 8;
    assert_refused(LARGO_ERR_ARGUMENT, "struct_size", largo_optim_step(s.optim));
    h->struct_size = sizeof *h;
    assert_true(fingerprint(&s) == before);
    assert_ok(largo_optim_step(s.optim));
    end_scene(&s);
}

/* A refused schedule leaves the one before; a step that is refused leaves lr. */
static void schedule_of_a_group(void **state)
{
    (void)state;
    scene s;
    make_scene(&s);
    largo_schedule schedule = LARGO_SCHEDULE;
    schedule.decay = LARGO_DECAY_LINEAR;
    schedule.lr = 0.5;
    schedule.total = 10;
    double want;
    assert_ok(largo_optim_set_schedule(s.optim, 0, &schedule));
    schedule.lr = -1;
    assert_status(LARGO_ERR_ARGUMENT, largo_optim_set_schedule(s.optim, 0, &schedule));
    schedule.lr = 0.5;
    for (int64_t t = 1; t <= 3; t++) {
        assert_ok(largo_optim_step(s.optim));
        assert_ok(largo_schedule_lr(&schedule, t, &want));
        assert_true(largo_optim_hyper(s.optim, 0)->lr == want);
    }
    largo_optim_hyper(s.optim, 0)->eps = -1;
    assert_status(LARGO_ERR_ARGUMENT, largo_optim_step(s.optim));
    assert_true(largo_optim_hyper(s.optim, 0)->lr == want);
    largo_optim_hyper(s.optim, 0)->eps = 1e-6;
    assert_ok(largo_optim_set_schedule(s.optim, 0, NULL));
    largo_optim_hyper(s.optim, 0)->lr = 0.125;
    assert_ok(largo_optim_step(s.optim));
    assert_true(largo_optim_hyper(s.optim, 0)->lr == 0.125);
    end_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_arguments),
        cmocka_unit_test(object_without_groups),
        cmocka_unit_test(group_without_parameters),
        cmocka_unit_test(slots_by_name),
        cmocka_unit_test(rebind),
        cmocka_unit_test(refused_unfreezing_can_be_repeated),
        cmocka_unit_test(changed_hyper_parameters_are_checked),
        cmocka_unit_test(schedule_of_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
