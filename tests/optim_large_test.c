/* labels: oracle short
 *
 * 2^24 elements: what must not depend on how many there are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { N = 1 << 24 };

typedef struct large {
    largo_ctx *ctx;
    float *memory[4]; /* value, gradient, state */
    largo_param param;
} large;

static large make(void)
{
    large t;
    t.ctx = test_ctx(2);
    for (int i = 0; i < 4; i++) t.memory[i] = test_floats(N);
    for (int i = 0; i < N; i++) {
        t.memory[0][i] = 1.0f;
        t.memory[1][i] = 0.001f;
    }
    t.param = largo_param_f32(t.memory[0], t.memory[1], N, 1);
    t.param.state[0] = t.memory[2];
    t.param.state[1] = t.memory[3];
    return t;
}

static void drop(large *t)
{
    for (int i = 0; i < 4; i++) free(t->memory[i]);
    largo_ctx_destroy(t->ctx);
}

static void check_all(const float *x, double want, double tolerance, const char *what)
{
    for (int i = 0; i < N; i++)
        if (!(fabs((double)x[i] - want) <= tolerance))
            fail_msg("%s: element %d is %.9g, wanted %.9g", what, i, (double)x[i], want);
}

/* Equal elements: the norm is 2^12 |g|. A lane adds 32 squares of a chunk in float32, all rounded the
 * same way here: 7e-8. A float sum of 2^24 equal squares would be off by half and more. The first step hides the clip in w, not in m. */
static void clip_norm_of_many(void **state)
{
    (void)state;
    large t = make();
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_ADAMW));
    h.max_grad_norm = 1.0;
    assert_ok(largo_step(t.ctx, &h, 1, 1, &t.param));
    largo_outcome outcome = {.struct_size = sizeof outcome};
    assert_ok(largo_last_outcome(t.ctx, &outcome));
    const double norm = 4096.0 * (double)0.001f;
    if (fabs(outcome.grad_norm / norm - 1.0) > 5e-7)
        fail_msg("norm %.17g, wanted %.17g", outcome.grad_norm, norm);
    check_all(t.memory[2], 0.1 * (double)0.001f / norm, 1e-10, "exp_avg");
    drop(&t);
}

static void adamw_on_many(void **state)
{
    (void)state;
    large t = make();
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_ADAMW));
    h.lr = 0.1;
    assert_ok(largo_step(t.ctx, &h, 1, 1, &t.param));
    const double g = (double)0.001f, u = g / (g + 1e-8); /* first step: m and v cancel */
    check_all(t.memory[0], 1.0 - 0.1 * 0.01 - 0.1 * u, 2e-7, "adamw");
    drop(&t);
}

static void sgd_on_many(void **state)
{
    (void)state;
    large t = make();
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_SGD));
    h.lr = 10.0;
    h.momentum = 0.9;
    for (int step = 1; step <= 2; step++) assert_ok(largo_step(t.ctx, &h, step, 1, &t.param));
    const double g = (double)0.001f;
    check_all(t.memory[0], 1.0 - 10.0 * g - 10.0 * 1.9 * g, 2e-7, "sgd");
    drop(&t);
}

/* The ratio is trust_coefficient |w| / |g| = 1000 trust_coefficient. */
static void lars_on_many(void **state)
{
    (void)state;
    static const largo_denominator denominator[2] = {LARGO_DENOMINATOR_PAPER,
                                                     LARGO_DENOMINATOR_UPDATE};
    for (int i = 0; i < 2; i++) {
        large t = make();
        largo_hyper h;
        assert_ok(largo_hyper_init(&h, LARGO_LARS));
        h.trust_coefficient = 0.5;
        h.lr = 1.0;
        h.denominator = denominator[i];
        h.velocity = LARGO_VELOCITY_GRAD;
        largo_param_stats stats;
        t.param.stats = &stats;
        assert_ok(largo_step(t.ctx, &h, 1, 1, &t.param));
        const double ratio = 0.5 / (double)0.001f;
        if (fabs(stats.trust_ratio / ratio - 1.0) > 5e-7)
            fail_msg("ratio %.17g, wanted %.17g", stats.trust_ratio, ratio);
        check_all(t.memory[0], 0.5, 5e-7, "lars");
        drop(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clip_norm_of_many), cmocka_unit_test(adamw_on_many),
        cmocka_unit_test(sgd_on_many), cmocka_unit_test(lars_on_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
