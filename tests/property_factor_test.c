/* labels: property short every-isa
 *
 * grad_factor, the float that a loss scaler leaves in memory: it is one more factor of the gradient,
 * and one that is not positive and finite forbids the step, in every group and under any policy. */
#include <math.h>
#include <string.h>
#include "support_probe.h"

enum { TENSORS = 3, CASES = 8, SMALL = 500, LARGE = 33000 };

static largo_hyper algorithm(int i)
{
    static const struct {
        largo_algo algo;
        const char *set;
    } cases[CASES] = {
        {LARGO_SGD, ""},   {LARGO_SGD, "momentum=0.9 maximize=1"},
        {LARGO_ADAMW, ""}, {LARGO_LARS, ""},
        {LARGO_LAMB, ""},  {LARGO_LAMB, "l2=1"},
        {LARGO_CAME, ""},  {LARGO_MERIT, ""},
    };
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, cases[i].algo));
    test_hyper_set(&h, cases[i].set);
    return h;
}

/* A vector, a matrix, and a vector of n elements. */
static void open_all(probe q[TENSORS], const largo_hyper *h, int64_t n)
{
    const int64_t shape[TENSORS][2] = {{40, 1}, {33, 13}, {n, 1}};
    for (int i = 0; i < TENSORS; i++) {
        probe_open(&q[i], h, i == 1 ? 2 : 1, shape[i], 0, 0);
        probe_fill(&q[i], NORMAL, 5 + (uint64_t)i);
        probe_reset(&q[i]);
    }
}

static void close_all(probe q[TENSORS])
{
    for (int i = 0; i < TENSORS; i++) probe_close(&q[i]);
}

static uint64_t hash_all(const probe q[TENSORS])
{
    uint64_t hash = 0;
    for (int i = 0; i < TENSORS; i++) hash = probe_hash(hash, &q[i]) + (uint64_t)q[i].step;
    return hash;
}

/* One step of all tensors as they are, or in an object with a group for each. */
static largo_status step(largo_ctx *ctx, const largo_hyper h[TENSORS], probe q[TENSORS],
                         int in_groups)
{
    largo_param p[TENSORS];
    for (int i = 0; i < TENSORS; i++) p[i] = probe_param(&q[i], 0);
    if (!in_groups) return largo_step(ctx, h, 1, TENSORS, p);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    for (int i = 0; i < TENSORS; i++) assert_ok(largo_optim_add_group(o, &h[i], 1, &p[i], NULL));
    const largo_status status = largo_optim_step(o);
    assert_int_equal(largo_optim_step_count(o), status == LARGO_OK);
    largo_optim_destroy(o);
    return status;
}

static largo_outcome outcome_of(const largo_ctx *ctx)
{
    largo_outcome o = {.struct_size = sizeof o};
    assert_ok(largo_last_outcome(ctx, &o));
    return o;
}

/* What a step from the start makes of the tensors, and what it tells. */
static uint64_t hash_after(const largo_hyper *h, probe q[TENSORS], int in_groups, largo_outcome *o)
{
    const largo_hyper same[TENSORS] = {*h, *h, *h};
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < TENSORS; i++) probe_reset(&q[i]);
    assert_ok(step(ctx, same, q, in_groups));
    *o = outcome_of(ctx);
    largo_ctx_destroy(ctx);
    return hash_all(q);
}

/* The factor with one grad_scale has the bits of the other grad_scale alone. */
static void is_a_scale(const largo_hyper *base, probe q[TENSORS], double scale, float factor,
                       double product)
{
    for (int in_groups = 0; in_groups < 2; in_groups++) {
        largo_hyper h = *base;
        largo_outcome plain, factored;
        h.grad_scale = product;
        const uint64_t want = hash_after(&h, q, in_groups, &plain);
        h.grad_scale = scale;
        h.grad_factor = &factor;
        if (hash_after(&h, q, in_groups, &factored) != want)
            fail_msg("algorithm %d: factor %g and scale %g are not scale %g", (int)h.algo,
                     (double)factor, scale, product);
        assert_memory_equal(&plain, &factored, sizeof plain);
    }
}

static void a_factor_of_the_scale(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        largo_hyper h = algorithm(i);
        probe q[TENSORS];
        open_all(q, &h, LARGE);
        for (int clips = 0; clips < 2; clips++) {
            if (clips) h.max_grad_norm = 0x1p-12;
            is_a_scale(&h, q, 1.0, 1.0f, 1.0);
            is_a_scale(&h, q, 1.0, 0x1p-10f, 0x1p-10);
            is_a_scale(&h, q, 0.3, 0.7f, 0.3 * (double)0.7f);
        }
        close_all(q);
    }
}

static const float forbidden[] = {0.0f, -0.0f, -1.0f, -0x1p-149f, INFINITY, -INFINITY, NAN};
enum { FORBIDDEN = sizeof forbidden / sizeof *forbidden };

/* A step that a factor forbids wrote and counted nothing; what is told. */
static void forbids(const largo_hyper h[TENSORS], probe q[TENSORS], int in_groups,
                    largo_status expected, const char *text)
{
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < TENSORS; i++) probe_reset(&q[i]);
    const uint64_t before = hash_all(q);
    assert_refused(expected, text, step(ctx, h, q, in_groups));
    assert_true(hash_all(q) == before);
    const largo_outcome o = outcome_of(ctx);
    assert_true(o.skipped == 1 && o.scanned == 0);
    assert_true(o.bad_param == -1 && o.bad_element == -1);
    assert_true(isnan(o.grad_norm) && o.clip == 1.0);
    largo_ctx_destroy(ctx);
}

static void forbids_the_step(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        probe q[TENSORS];
        largo_hyper h = algorithm(i);
        open_all(q, &h, SMALL);
        for (int k = 0; k < FORBIDDEN * 6; k++) {
            const float factor = forbidden[k % FORBIDDEN];
            const largo_non_finite policy = (largo_non_finite)(k / FORBIDDEN % 3 + 1);
            h.grad_factor = &factor;
            h.non_finite = policy;
            h.max_grad_norm = k / FORBIDDEN / 3 ? 1.0 : (double)INFINITY;
            const largo_hyper all[TENSORS] = {h, h, h};
            const largo_status expected =
                policy == LARGO_NON_FINITE_ERROR ? LARGO_ERR_NON_FINITE : LARGO_SKIPPED;
            forbids(all, q, k % 2, expected, "*grad_factor of group 0 is");
        }
        close_all(q);
    }
}

/* The smallest factor and the largest are factors. */
static void extreme_factors(void **state)
{
    (void)state;
    largo_hyper h = algorithm(2);
    probe q[TENSORS];
    open_all(q, &h, SMALL);
    is_a_scale(&h, q, 0x1p100, 0x1p-149f, 0x1p-49);
    is_a_scale(&h, q, 0x1p-126, 0x1.fffffep127f, 0x1.fffffep1);
    close_all(q);
}

/* Each group has its own; one that forbids stops all of them. */
static void groups_have_their_own(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        probe q[TENSORS];
        const largo_hyper base = algorithm(i);
        open_all(q, &base, LARGE);
        float factor[TENSORS] = {0x1p-3f, 0x1p-5f, 1.0f};
        largo_hyper with[TENSORS] = {base, base, base}, scaled[TENSORS] = {base, base, base};
        for (int g = 0; g < TENSORS; g++) {
            scaled[g].grad_scale = (double)factor[g];
            if (g < 2) with[g].grad_factor = &factor[g];
        }
        largo_ctx *ctx = test_ctx(3);
        assert_ok(step(ctx, scaled, q, 1));
        const uint64_t want = hash_all(q);
        for (int g = 0; g < TENSORS; g++) probe_reset(&q[g]);
        assert_ok(step(ctx, with, q, 1));
        assert_true(hash_all(q) == want);
        largo_ctx_destroy(ctx);

        factor[1] = -1.0f;
        forbids(with, q, 1, LARGO_SKIPPED, "*grad_factor of group 1 is -1; it must be > 0");
        with[0].non_finite = LARGO_NON_FINITE_ERROR; /* of the group whose factor is good */
        forbids(with, q, 1, LARGO_SKIPPED, "*grad_factor of group 1 is -1");
        with[1].non_finite = LARGO_NON_FINITE_ERROR;
        forbids(with, q, 1, LARGO_ERR_NON_FINITE, "*grad_factor of group 1 is -1");
        close_all(q);
    }
}

/* A bad factor hides what the gradients hold: they are not read. */
static void comes_before_the_gradients(void **state)
{
    (void)state;
    const float factor = 0.0f;
    largo_hyper h = algorithm(4);
    h.grad_factor = &factor;
    probe q[TENSORS];
    open_all(q, &h, SMALL);
    q[0].g0[3] = NAN;
    const largo_hyper all[TENSORS] = {h, h, h};
    forbids(all, q, 0, LARGO_SKIPPED, "*grad_factor of group 0 is 0");
    close_all(q);
}

/* Read once a step, in its first round. */
static void read_by_each_step(void **state)
{
    (void)state;
    float factor = 1.0f;
    largo_hyper h = algorithm(4);
    probe q[TENSORS];
    open_all(q, &h, SMALL);
    h.grad_factor = &factor;
    largo_param p[TENSORS];
    for (int i = 0; i < TENSORS; i++) p[i] = probe_param(&q[i], 0);
    largo_ctx *ctx = test_ctx(2);
    const float factors[4] = {1.0f, 0x1p-8f, 0.0f, 0x1p-4f};
    uint64_t hash[2];
    for (int by_rounds = 0; by_rounds < 2; by_rounds++) {
        for (int i = 0; i < TENSORS; i++) probe_reset(&q[i]);
        for (int t = 0; t < 4; t++) {
            factor = factors[t];
            largo_reduction reduction = {NULL, 0, LARGO_I64, LARGO_SUM};
            largo_status status = LARGO_OK;
            if (!by_rounds) status = largo_step(ctx, &h, 1, TENSORS, p);
            for (int32_t round = 0; by_rounds && (!round || reduction.n); round++) {
                status = largo_step_round(ctx, &h, 1, TENSORS, p, round, &reduction);
                factor = NAN;
            }
            assert_status(t == 2 ? LARGO_SKIPPED : LARGO_OK, status);
        }
        hash[by_rounds] = hash_all(q);
        assert_int_equal(q[0].step, PROBE_STEP - 1 + 3);
    }
    assert_true(hash[0] == hash[1]);
    largo_ctx_destroy(ctx);
    close_all(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_factor_of_the_scale),
        cmocka_unit_test(forbids_the_step),
        cmocka_unit_test(extreme_factors),
        cmocka_unit_test(groups_have_their_own),
        cmocka_unit_test(comes_before_the_gradients),
        cmocka_unit_test(read_by_each_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
