/* labels: oracle short every-isa
 *
 * SGD against golden/sgd.json. State: 10 steps of at most 6 roundings each (wd, d, 1 - dampening,
 * product, momentum, fma), and w itself is off by its own tolerance, which wd <= 0.1 passes on:
 * below 1e-5 of the largest value. */
#include <math.h>
#include <string.h>
#include "support_golden.h"

static const golden_state states[] = {{"b", "momentum_buffer", 1e-5}};

static void vectors(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    cJSON *file = golden_load("sgd.json");
    const cJSON *test;
    int ok = 0;
    cJSON_ArrayForEach(test, golden_get(file, "cases"))
    {
        golden_check_case(ctx, GOLDEN_STEP, test, LARGO_SGD, 1, states);
        golden_check_case(ctx, GOLDEN_OBJECT, test, LARGO_SGD, 1, states);
        ok++;
    }
    print_message("sgd: %d cases\n", ok);
    assert_int_equal(ok, 11 * 9 + 4 * 9 + 1);
    cJSON_Delete(file);
    largo_ctx_destroy(ctx);
}

static void one_step(largo_ctx *ctx, const largo_hyper *h, int64_t step, float *w, float g,
                     float *buffer)
{
    largo_param p = largo_param_f32(w, &g, 1, 1);
    p.state[0] = buffer;
    assert_ok(largo_step(ctx, h, step, 1, &p));
}

/* The first step takes d as it is, without dampening, which acts from the second on. */
static void first_step(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_SGD));
    h.lr = 0.5;
    h.momentum = 0.5;
    h.dampening = 0.75;
    float w = 1.0f, buffer = 0.0f;
    one_step(ctx, &h, 1, &w, 2.0f, &buffer);
    assert_true(buffer == 2.0f && w == 0.0f);
    one_step(ctx, &h, 2, &w, 4.0f, &buffer);
    assert_true(buffer == 0.5f * 2.0f + 0.25f * 4.0f && w == -1.0f);
    h.nesterov = LARGO_ON;
    float g = 1.0f;
    largo_param p = largo_param_f32(&w, &g, 1, 1);
    p.state[0] = &buffer;
    assert_refused(LARGO_ERR_ARGUMENT, "nesterov", largo_step(ctx, &h, 3, 1, &p));
    assert_true(w == -1.0f);
    largo_ctx_destroy(ctx);
}

/* Nothing is squared, so 2^64 and more are legal; what is not finite is not. */
static void large_gradients(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_SGD));
    h.lr = 0x1p-100;
    float w = 1.0f, g = 0x1p100f;
    largo_param p = largo_param_f32(&w, &g, 1, 1);
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    assert_true(w == 0.0f);
    h.grad_scale = 0x1p30; /* 2^130 is not a float */
    assert_status(LARGO_SKIPPED, largo_step(ctx, &h, 1, 1, &p));
    h.grad_scale = 0x1p-30;
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    assert_true(w == -0x1p-30f);
    g = -INFINITY;
    assert_status(LARGO_SKIPPED, largo_step(ctx, &h, 1, 1, &p));
    assert_true(w == -0x1p-30f);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vectors), cmocka_unit_test(first_step),
                                       cmocka_unit_test(large_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
