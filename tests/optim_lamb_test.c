/* labels: oracle short every-isa
 *
 * LAMB against golden/lamb.json. State tolerance as AdamW's: 1e-5; with l2 the weights enter it,
 * off by their own tolerance (4e-7), which wd = 0.1 makes nothing of. */
#include "support_golden.h"

static const golden_state states[] = {{"m", "exp_avg", 1e-5}, {"v", "exp_avg_sq", 1e-5}};

static void vectors(void **state)
{
    (void)state;
    golden_check_file(&(golden_file){.name = "lamb.json",
                                     .algo = LARGO_LAMB,
                                     .n_states = 2,
                                     .states = states,
                                     .ok = 119,
                                     .rejected = 2});
}

static void policies(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    assert_int_equal(golden_check_policies(ctx, "lamb", LARGO_LAMB), 6);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(policies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
