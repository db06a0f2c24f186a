/* labels: property short every-isa
 *
 * Small inputs with right values, by their number in the project's list of cases: order, empty
 * tensors, tails and addresses, threads, instruction sets. */
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { ALGOS = 8 };

/* Every algorithm, SGD and LARS with and without momentum. */
static largo_hyper algorithm(int i)
{
    const largo_algo algos[ALGOS] = {LARGO_SGD,  LARGO_SGD,   LARGO_ADAMW, LARGO_LAMB,
                                     LARGO_CAME, LARGO_MERIT, LARGO_LARS,  LARGO_LARS};
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algos[i]));
    h.lr = 0.01;
    h.weight_decay = 0.01;
    if (i == 1) h.momentum = 0.9;
    if (i == 7) h.momentum = 0.0;
    if (h.algo == LARGO_LARS) h.lr = 10.0; /* ratios are about 1e-3 */
    return h;
}

/* A vector of n elements `offset` floats into memory of its own, with canaries around value and
 * state. Five arrays: grad, value, state. */
typedef struct vector {
    float *memory;
    size_t n, stride;
    largo_param param;
} vector;

enum { CANARIES = 16, ARRAYS = 4 };
static const float CANARY = -1234.5f;

static vector make(size_t n, size_t offset, uint64_t seed)
{
    vector x = {.n = n, .stride = n + 2 * CANARIES + 16};
    x.memory = test_floats(ARRAYS * x.stride);
    for (size_t i = 0; i < ARRAYS * x.stride; i++) x.memory[i] = CANARY;
    float *array[ARRAYS];
    for (size_t a = 0; a < ARRAYS; a++) {
        array[a] = x.memory + a * x.stride + CANARIES + offset;
        memset(array[a], 0, n * sizeof(float));
    }
    test_fill(array[0], n, seed, 0, 3);
    test_fill(array[1], n, seed + 1, 1, 2);
    x.param = largo_param_f32(array[1], array[0], (int64_t)n, 1);
    x.param.state[0] = array[2];
    x.param.state[1] = array[3];
    return x;
}

static void check_canaries(const vector *x, size_t offset)
{
    for (size_t a = 0; a < ARRAYS; a++)
        for (size_t i = 0; i < x->stride; i++) {
            const int inside = i >= CANARIES + offset && i < CANARIES + offset + x->n;
            if (!inside && x->memory[a * x->stride + i] != CANARY)
                fail_msg("n %zu, offset %zu: array %zu was written at %td", x->n, offset, a,
                         (ptrdiff_t)i - (ptrdiff_t)(CANARIES + offset));
        }
}

static uint64_t hash(const vector *x, uint64_t seed)
{
    seed = test_hash(seed, x->param.value.data, x->n);
    seed = test_hash(seed, x->param.state[0], x->n);
    return test_hash(seed, x->param.state[1], x->n);
}

/* The context of the lowest instruction set, whatever LARGO_ISA says. */
static largo_ctx *scalar_ctx(void)
{
    const char *before = getenv("LARGO_ISA");
    char kept[64] = "";
    if (before) strncpy(kept, before, sizeof kept - 1);
    setenv("LARGO_ISA", "scalar", 1);
    largo_ctx *ctx = test_ctx(1);
    if (before)
        setenv("LARGO_ISA", kept, 1);
    else
        unsetenv("LARGO_ISA");
    return ctx;
}

static uint64_t hash_of_orders(largo_ctx *ctx, const largo_hyper *h, int reversed)
{
    vector a = make(40, 0, 5), b = make(5000, 0, 9);
    const largo_param forward[2] = {a.param, b.param}, backward[2] = {b.param, a.param};
    assert_ok(largo_step(ctx, h, 1, 2, reversed ? backward : forward));
    const uint64_t result = hash(&b, hash(&a, 0));
    free(a.memory);
    free(b.memory);
    return result;
}

static void h12_order_and_settings(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        largo_hyper before;
        memcpy(&before, &h, sizeof h);
        assert_true(hash_of_orders(ctx, &h, 0) == hash_of_orders(ctx, &h, 1));
        assert_memory_equal(&before, &h, sizeof h);
    }
    largo_ctx_destroy(ctx);
}

/* 64 tensors of 5 floats, `empties` empty ones from place `at` on. */
static uint64_t hash_with_empties(largo_ctx *ctx, const largo_hyper *h, size_t at, size_t empties)
{
    vector x[64];
    largo_param params[66];
    size_t n = 0;
    for (size_t i = 0; i <= 64; i++) {
        for (size_t e = 0; i == at && e < empties; e++) {
            params[n] = largo_param_f32(NULL, NULL, 0, 1);
            params[n++].grad.data = params; /* has a gradient, of no elements */
        }
        if (i == 64) break;
        x[i] = make(5, 0, 100 + i);
        params[n++] = x[i].param;
    }
    assert_ok(largo_step(ctx, h, 1, n, params));
    uint64_t result = 0;
    for (size_t i = 0; i < 64; i++) {
        result = hash(&x[i], result);
        free(x[i].memory);
    }
    return result;
}

static void h20_empty_tensors_anywhere(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        const uint64_t none = hash_with_empties(ctx, &h, 0, 0);
        for (size_t at = 0; at <= 64; at++)
            for (size_t empties = 1; empties <= 2; empties++)
                if (hash_with_empties(ctx, &h, at, empties) != none)
                    fail_msg("%zu empty at %zu, algorithm %d", empties, at, i);
    }
    largo_ctx_destroy(ctx);
}

static void h30_tails_and_addresses(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1), *scalar = scalar_ctx();
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        for (size_t n = 0; n < 68; n++) {
            vector reference = make(n, 0, n);
            assert_ok(largo_step(scalar, &h, 1, 1, &reference.param));
            const uint64_t want = hash(&reference, 0);
            free(reference.memory);
            for (size_t offset = 0; offset < 16; offset++) {
                vector x = make(n, offset, n);
                assert_ok(largo_step(ctx, &h, 1, 1, &x.param));
                check_canaries(&x, offset);
                if (hash(&x, 0) != want)
                    fail_msg("n %zu, offset %zu, algorithm %d: not scalar's bits", n, offset, i);
                free(x.memory);
            }
        }
    }
    largo_ctx_destroy(ctx);
    largo_ctx_destroy(scalar);
}

static void h58_a_million_and_any_threads(void **state)
{
    (void)state;
    const largo_hyper h = algorithm(3);
    const int threads[5] = {1, 2, 3, 7, 16};
    uint64_t want = 0;
    for (int t = 0; t < 5; t++) {
        largo_ctx *ctx = test_ctx(threads[t]);
        vector x = make(1000003, 0, 11);
        assert_ok(largo_step(ctx, &h, 1, 1, &x.param));
        if (!t) want = hash(&x, 0);
        assert_true(hash(&x, 0) == want);
        free(x.memory);
        largo_ctx_destroy(ctx);
    }
}

static uint64_t five_steps(largo_ctx *ctx, const largo_hyper *h)
{
    const size_t sizes[6] = {1, 31, 32, 33, 1000, 65537};
    vector x[6];
    largo_param params[6];
    for (size_t i = 0; i < 6; i++) {
        x[i] = make(sizes[i], 0, 40 + i);
        params[i] = x[i].param;
    }
    uint64_t result = 0;
    for (int64_t t = 1; t <= 5; t++) {
        for (size_t i = 0; i < 6; i++)
            test_fill(params[i].grad.data, sizes[i], (uint64_t)t * 7 + i, 0, 3);
        assert_ok(largo_step(ctx, h, t, 6, params));
    }
    for (size_t i = 0; i < 6; i++) {
        result = hash(&x[i], result);
        free(x[i].memory);
    }
    return result;
}

static void h60_same_bits_as_scalar(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2), *scalar = scalar_ctx();
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        assert_true(five_steps(ctx, &h) == five_steps(scalar, &h));
    }
    largo_ctx_destroy(ctx);
    largo_ctx_destroy(scalar);
}

static void h72_equal_inputs_equal_outputs(void **state)
{
    (void)state;
    const size_t n = 1048577;
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        vector x[2] = {make(n, 0, 1), make(n, 0, 1)};
        for (int a = 0; a < 2; a++)
            for (size_t j = 0; j < n; j++)
                ((float *)x[a].param.value.data)[j] = ((float *)x[a].param.grad.data)[j] = 1.0f;
        const largo_param params[2] = {x[0].param, x[1].param};
        assert_ok(largo_step(ctx, &h, 1, 2, params));
        const float *w0 = x[0].param.value.data, *w1 = x[1].param.value.data;
        assert_true(w0[0] != 1.0f);
        for (size_t j = 0; j < n; j++)
            if (memcmp(&w0[j], &w0[0], 4) || memcmp(&w1[j], &w0[0], 4))
                fail_msg("element %zu differs", j);
        free(x[0].memory);
        free(x[1].memory);
    }
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h12_order_and_settings),  cmocka_unit_test(h20_empty_tensors_anywhere),
        cmocka_unit_test(h30_tails_and_addresses), cmocka_unit_test(h58_a_million_and_any_threads),
        cmocka_unit_test(h60_same_bits_as_scalar), cmocka_unit_test(h72_equal_inputs_equal_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
