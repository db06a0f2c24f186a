/* labels: oracle short every-isa
 *
 * CAME against golden/came.json. State m, r, c, v: as AdamW's, 1e-5 of the largest sample. R and C
 * average (u^ - m)^2: where û comes near m the float32 noise of the difference is squared (trap
 * T6), so theirs is the README's 1e-4. */
#include <string.h>
#include "support_golden.h"

static const golden_state states[] = {
    {"m", "exp_avg", 1e-5},        {"v", "exp_avg_sq", 1e-5},      {"r", "exp_avg_sq_row", 1e-5},
    {"c", "exp_avg_sq_col", 1e-5}, {"R", "exp_avg_res_row", 1e-4}, {"C", "exp_avg_res_col", 1e-4}};
enum { STATES = sizeof states / sizeof *states };

/* nd "flat" views a tensor as [D0, rest]; up to two dimensions that is what largo does anyway. */
static const char *flat_nd(const cJSON *test)
{
    const char *view = golden_get(golden_get(test, "hp"), "nd")->valuestring;
    return strcmp(view, "flat") == 0 && golden_is_nd(test)
               ? "flat view of more than two dimensions is not built"
               : NULL;
}

static void vectors(void **state)
{
    (void)state;
    golden_check_file(&(golden_file){.name = "came.json",
                                     .algo = LARGO_CAME,
                                     .n_states = STATES,
                                     .states = states,
                                     .why_not = flat_nd,
                                     .ok = 84,
                                     .rejected = 2,
                                     .skipped = 1});
}

static void policies(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    assert_int_equal(golden_check_policies(ctx, "came", LARGO_CAME), 6);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(policies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
