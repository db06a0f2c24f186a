/* labels: short every-isa */
#include <math.h>
#include "support.h"

static void h07_lamb_two_steps(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    float w[4] = {1, -2, 3, -4}, g[4] = {.1f, -.2f, .3f, .4f}, m[4] = {0}, v[4] = {0};
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_LAMB));
    h.lr = 0.1;
    largo_param p = largo_param_f32(w, g, 4, 1);
    p.state[0] = m;
    p.state[1] = v;
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    const double want[4] = {0.7248762452, -1.7221508587, 2.7194263802, -4.2615056751};
    for (int i = 0; i < 4; i++) assert_true(fabs(w[i] - want[i]) < 1e-6);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(h07_lamb_two_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
