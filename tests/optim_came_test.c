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
static int is_flat_nd(const cJSON *test)
{
    if (strcmp(golden_get(golden_get(test, "hp"), "nd")->valuestring, "flat") != 0) return 0;
    const cJSON *tensor;
    cJSON_ArrayForEach(tensor, golden_get(test, "tensors"))
    {
        if (cJSON_GetArraySize(golden_get(tensor, "shape")) > 2) return 1;
    }
    return 0;
}

static void vectors(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    cJSON *file = golden_load("came.json");
    const cJSON *test;
    int ok = 0, rejected = 0, skipped = 0;
    cJSON_ArrayForEach(test, golden_get(file, "cases"))
    {
        if (is_flat_nd(test)) {
            print_message("skipped, flat view of more than two dimensions is not built: %s\n",
                          golden_get(test, "name")->valuestring);
            skipped++;
        } else if (strcmp(golden_get(test, "fp32")->valuestring, "ok") != 0) {
            golden_check_rejected(ctx, test, LARGO_CAME);
            rejected++;
        } else {
            golden_check_case(ctx, GOLDEN_STEP, test, LARGO_CAME, STATES, states);
            golden_check_case(ctx, GOLDEN_OBJECT, test, LARGO_CAME, STATES, states);
            ok++;
        }
    }
    print_message("came: %d cases, %d refused, %d skipped\n", ok, rejected, skipped);
    assert_int_equal(ok, 84);
    assert_int_equal(rejected, 2);
    assert_int_equal(skipped, 1);
    cJSON_Delete(file);
    largo_ctx_destroy(ctx);
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
