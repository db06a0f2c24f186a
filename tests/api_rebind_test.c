/* labels: property short
 *
 * Rebinding and stepping in odd orders: each case once broke something.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { ROWS = 256, COLS = 64, N = ROWS * COLS };

typedef struct scene {
    largo_ctx *ctx;
    largo_optim *optim;
    float *w, *g;
    largo_param param;
} scene;

static scene make(largo_algo algo, double momentum, uint32_t flags)
{
    scene s;
    s.ctx = test_ctx(2);
    s.w = test_floats(N);
    s.g = test_floats(N);
    test_fill(s.w, N, 1, 0, 1);
    test_fill(s.g, N, 2, 0, 1);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algo));
    if (algo == LARGO_SGD) h.momentum = momentum;
    s.param = largo_param_f32(s.w, s.g, ROWS, COLS);
    s.param.flags = flags;
    assert_ok(largo_optim_create(s.ctx, &s.optim));
    assert_ok(largo_optim_add_group(s.optim, &h, 1, &s.param, NULL));
    return s;
}

static void drop(scene *s)
{
    largo_optim_destroy(s->optim);
    largo_ctx_destroy(s->ctx);
    free(s->w);
    free(s->g);
}

/* An algorithm written over hyper is refused by the step; a rebind before it must not make that
 * algorithm's state. */
static void another_algorithm_before_a_rebind(void **state)
{
    (void)state;
    scene s = make(LARGO_ADAMW, 0.0, LARGO_PARAM_FROZEN);
    largo_hyper *h = largo_optim_hyper(s.optim, 0);
    h->algo = LARGO_CAME;
    s.param.flags = 0;
    assert_ok(largo_optim_rebind(s.optim, 0, 1, &s.param));
    assert_status(LARGO_ERR_ARGUMENT, largo_optim_step(s.optim));
    h->algo = LARGO_ADAMW;
    assert_ok(largo_optim_step(s.optim));
    largo_tensor view;
    assert_ok(largo_optim_slot(s.optim, 0, 0, "exp_avg_sq", &view));
    assert_int_equal(view.ndim, 2);
    assert_non_null(view.data);
    drop(&s);
}

/* A change of momentum that removes the state, then a rebind, then a step. */
static void momentum_off_before_a_rebind(void **state)
{
    (void)state;
    scene s = make(LARGO_SGD, 0.9, LARGO_PARAM_FROZEN);
    largo_optim_hyper(s.optim, 0)->momentum = 0.0;
    s.param.flags = 0;
    assert_ok(largo_optim_rebind(s.optim, 0, 1, &s.param));
    const float before = s.w[0];
    assert_ok(largo_optim_step(s.optim));
    assert_true(s.w[0] != before);
    drop(&s);
}

/* Empty tensors have no state, however long their other dimension is. */
static void empty_with_a_long_side(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    static const int64_t shapes[4][3] = {
        {0, (int64_t)1 << 62, 1}, {INT64_MAX, 0, INT64_MAX}, {INT64_MAX, INT64_MAX, 0}, {0, 8, 1}};
    for (int i = 0; i < 4; i++) {
        largo_hyper h;
        assert_ok(largo_hyper_init(&h, LARGO_CAME));
        float w = 0, g = 0;
        largo_param p = largo_param_f32(&w, &g, 1, 1);
        p.value.ndim = p.grad.ndim = 3;
        memcpy(p.value.shape, shapes[i], sizeof shapes[i]);
        memcpy(p.grad.shape, shapes[i], sizeof shapes[i]);
        if (i == 3) p.segments = 1000000;
        largo_slot slots[LARGO_MAX_SLOTS];
        size_t n;
        assert_ok(largo_slots(&h, &p, slots, &n));
        for (size_t s = 0; s < n; s++) assert_int_equal(slots[s].bytes, 0);
        assert_ok(largo_step(ctx, &h, 1, 1, &p));
        largo_optim *o;
        assert_ok(largo_optim_create(ctx, &o));
        assert_ok(largo_optim_add_group(o, &h, 1, &p, NULL));
        assert_ok(largo_optim_step(o));
        assert_int_equal(largo_optim_param_step(o, 0, 0), 1);
        largo_optim_destroy(o);
    }
    largo_ctx_destroy(ctx);
}

/* One group lets an inf through; the other asked for a bound on a norm that is none. */
static void a_norm_that_is_not_finite_clips_nothing(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    float w[2] = {1, 1}, g[2] = {INFINITY, 1000};
    for (int i = 0; i < 2; i++) {
        largo_hyper h;
        assert_ok(largo_hyper_init(&h, LARGO_SGD));
        h.lr = 0.1;
        if (i == 0) h.non_finite = LARGO_NON_FINITE_PROPAGATE;
        if (i == 1) h.max_grad_norm = 1.0;
        const largo_param p = largo_param_f32(&w[i], &g[i], 1, 1);
        assert_ok(largo_optim_add_group(o, &h, 1, &p, NULL));
    }
    assert_status(LARGO_SKIPPED, largo_optim_step(o));
    assert_true(w[0] == 1.0f && w[1] == 1.0f);
    largo_outcome outcome = {.struct_size = sizeof outcome};
    assert_ok(largo_last_outcome(ctx, &outcome));
    assert_int_equal(outcome.bad_param, 0);
    g[0] = 0.0f;
    assert_ok(largo_optim_step(o));
    assert_true(fabsf(w[1] - 0.9f) < 1e-6f);
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

/* With two bad groups the status and the sentence speak of the same one. */
static void the_error_names_its_own_group(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    float w[2] = {1, 1}, g[2] = {0x1p70f, 0x1p80f};
    for (int i = 0; i < 2; i++) {
        largo_hyper h;
        assert_ok(largo_hyper_init(&h, LARGO_ADAMW));
        if (i == 1) h.non_finite = LARGO_NON_FINITE_ERROR;
        const largo_param p = largo_param_f32(&w[i], &g[i], 1, 1);
        assert_ok(largo_optim_add_group(o, &h, 1, &p, NULL));
    }
    assert_refused(LARGO_ERR_NON_FINITE, "parameter 1", largo_optim_step(o));
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

static void product_of_rate_and_decay(void **state)
{
    (void)state;
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_ADAMW));
    h.lr = h.weight_decay = 1e30;
    assert_refused(LARGO_ERR_ARGUMENT, "product", largo_hyper_check(&h));
    assert_refused(LARGO_ERR_ARGUMENT, "is not a field",
                   largo_hyper_set(&h, largo_last_error(), 1.0)); /* the text itself as the name */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_algorithm_before_a_rebind),
        cmocka_unit_test(momentum_off_before_a_rebind),
        cmocka_unit_test(empty_with_a_long_side),
        cmocka_unit_test(a_norm_that_is_not_finite_clips_nothing),
        cmocka_unit_test(the_error_names_its_own_group),
        cmocka_unit_test(product_of_rate_and_decay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
