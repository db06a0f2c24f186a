/* labels: oracle short every-isa
 *
 * AdamW against golden/adamw.json. State: 10 steps of at most 5 roundings each (beta, 1 - beta,
 * g^2, product, fma) are 10 * 5 * 2^-24 = 3e-6 of the largest value on the way, which is at most
 * three times the largest sample; 1e-5 is the bound. */
#include <string.h>
#include "support_golden.h"

static const golden_state states[] = {{"m", "exp_avg", 1e-5}, {"v", "exp_avg_sq", 1e-5}};

static void vectors(void **state)
{
    (void)state;
    golden_check_file(&(golden_file){.name = "adamw.json",
                                     .algo = LARGO_ADAMW,
                                     .n_states = 2,
                                     .states = states,
                                     .ok = 67,
                                     .rejected = 2});
}

static void policies(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    assert_int_equal(golden_check_policies(ctx, "adamw", LARGO_ADAMW), 6);
    largo_ctx_destroy(ctx);
}

/* The generator is that of the vectors. */
static void generator(void **state)
{
    (void)state;
    cJSON *file = golden_load("lcg.json");
    const cJSON *check;
    cJSON_ArrayForEach(check, golden_get(file, "check"))
    {
        float x[8];
        test_fill(x, 8, (uint64_t)golden_number(check, "seed"), 0, 1);
        for (int i = 0; i < 8; i++)
            assert_true((double)x[i] ==
                        cJSON_GetArrayItem(golden_get(check, "values"), i)->valuedouble);
    }
    cJSON_Delete(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(generator), cmocka_unit_test(vectors),
                                       cmocka_unit_test(policies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
