/* labels: oracle short every-isa
 *
 * LARS against golden/lars.json: all denominators, velocities, Nesterov, clamp, no momentum. */
#include <math.h>
#include "support_golden.h"

static const golden_state states[] = {{"v", "momentum_buffer", 1e-5}};

static void vectors(void **state)
{
    (void)state;
    golden_check_file(&(golden_file){.name = "lars.json",
                                     .algo = LARGO_LARS,
                                     .n_states = 1,
                                     .states = states,
                                     .ok = 114,
                                     .rejected = 0});
}

static void policies(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    assert_int_equal(golden_check_policies(ctx, "lars", LARGO_LARS), 6);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(policies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
