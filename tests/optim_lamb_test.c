/* labels: oracle short every-isa
 *
 * LAMB against golden/lamb.json. State tolerance as AdamW's: 1e-5; with l2 the weights enter it,
 * off by their own tolerance (4e-7), which wd = 0.1 makes nothing of.
 *
 * The trust ratio is no output of the library. It is seen through the length of the step: the test
 * makes u again from the state and the weights before, and ratio = |w' - w| / (lr |u|). w' is
 * rounded to half an ulp, so the ratio seen is good to 2^-24 |w| / (lr ratio |u|), plus 1e-5 for u.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support_golden.h"

static const golden_state states[] = {{"m", "exp_avg", 1e-5}, {"v", "exp_avg_sq", 1e-5}};

static double correction(const largo_hyper *h, double beta, int t)
{
    return h->bias_correction == LARGO_ON ? 1.0 - pow(beta, t) : 1.0;
}

/* Direction of element i, from the state after step t and the weight before it. */
static double direction(const largo_hyper *h, double m, double v, double w, int t)
{
    const double u =
        m / correction(h, h->beta1, t) / (sqrt(v / correction(h, h->beta2, t)) + h->eps);
    return h->l2 == LARGO_ON ? u : u + h->weight_decay * w;
}

static void check_trust(golden_run *run, size_t k, const float *before, double want, int t)
{
    size_t n;
    const float *m = golden_slot(run, k, "exp_avg", &n), *v = golden_slot(run, k, "exp_avg_sq", &n);
    double moved = 0.0, u2 = 0.0, w2 = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)run->w[k][i] - (double)before[i];
        const double u = direction(&run->hyper, (double)m[i], (double)v[i], (double)before[i], t);
        moved += d * d;
        u2 += u * u;
        w2 += (double)before[i] * (double)before[i];
    }
    if (u2 == 0.0) { /* the ratio cannot be seen */
        assert_true(moved == 0.0 && want == 1.0);
        return;
    }
    const double unit = run->hyper.lr * sqrt(u2), got = sqrt(moved) / unit;
    const double tol = 1e-5 * want + 0x1p-24 * sqrt(w2) / unit;
    if (fabs(got - want) > tol)
        fail_msg("%s, tensor %zu: trust ratio %.9g, wanted %.9g within %.3g", run->name, k, got,
                 want, tol);
}

/* The last step of a case alone, for its trust ratios; at least one tensor is looked at. */
static void check_trusts(largo_ctx *ctx, const cJSON *test)
{
    const largo_hyper hyper = golden_hyper(golden_get(test, "hp"), LARGO_LAMB);
    golden_run run;
    golden_open(&run, ctx, GOLDEN_STEP, golden_get(test, "name")->valuestring,
                golden_get(test, "tensors"), &hyper);
    float *before[GOLDEN_TENSORS];
    for (size_t k = 0; k < run.n; k++) before[k] = test_floats(run.numel[k]);
    for (int t = 1; t <= 10; t++) {
        for (size_t k = 0; k < run.n; k++)
            memcpy(before[k], run.w[k], run.numel[k] * sizeof(float));
        golden_gradients(&run, t);
        assert_ok(golden_step(&run, t));
    }
    const cJSON *trust = golden_get(cJSON_GetArrayItem(golden_get(test, "steps"), 2), "trust");
    for (size_t k = 0; k < run.n; k++) {
        const cJSON *want = cJSON_GetArrayItem(trust, (int)k);
        if (run.numel[k]) check_trust(&run, k, before[k], want->valuedouble, 10);
        free(before[k]);
    }
    golden_close(&run);
}

static void vectors(void **state)
{
    (void)state;
    golden_check_file(&(golden_file){.name = "lamb.json",
                                     .algo = LARGO_LAMB,
                                     .n_states = 2,
                                     .states = states,
                                     .more = check_trusts,
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
