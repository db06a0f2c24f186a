/* labels: property short every-isa
 *
 * What must hold of a step whatever the numbers: segments and separate tensors, order, threads,
 * empty tensors, signs and scales, norms. "bits" means equal hashes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { ALGOS = 12, MOST = 8 };

static largo_hyper algorithm(int i)
{
    static const struct {
        largo_algo algo;
        const char *fields;
    } algos[ALGOS] = {
        {LARGO_SGD, ""},
        {LARGO_SGD, "momentum=0.9"},
        {LARGO_ADAMW, ""},
        {LARGO_LAMB, ""},
        {LARGO_LAMB, "l2=1"},
        {LARGO_LAMB, "adapt=3"},
        {LARGO_CAME, ""},
        {LARGO_MERIT, ""},
        {LARGO_LARS, "lr=10"},
        {LARGO_LARS, "lr=10 denominator=2 velocity=2 nesterov=1"},
        {LARGO_LARS, "lr=10 denominator=3 velocity=3"},
        {LARGO_LARS, "lr=10 momentum=0 larc=1 eps=1e-8"},
    };
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algos[i].algo));
    h.lr = 0.01;
    h.weight_decay = 0.05;
    test_hyper_set(&h, algos[i].fields);
    return h;
}

/* A tensor of any shape with gradient and state; state of a parameter is one block. */
typedef struct tensor {
    size_t n, state_floats;
    float *value, *grad, *state;
    largo_param param;
} tensor;

static tensor make(const largo_hyper *h, uint64_t seed, int32_t ndim, const int64_t shape[],
                   int32_t segments)
{
    tensor x = {.n = 1};
    largo_tensor t = {NULL, LARGO_F32, ndim, {0}};
    for (int d = 0; d < ndim; d++) x.n *= (size_t)(t.shape[d] = shape[d]);
    x.value = test_floats(x.n);
    x.grad = test_floats(x.n);
    test_fill(x.value, x.n, seed, 0, 5);
    test_fill(x.grad, x.n, seed + 1, -1, 9);
    x.param.value = x.param.grad = t;
    x.param.value.data = x.value;
    x.param.grad.data = x.grad;
    x.param.segments = segments;
    largo_slot slots[LARGO_MAX_SLOTS];
    size_t n;
    assert_ok(largo_slots(h, &x.param, slots, &n));
    for (size_t s = 0; s < n; s++) x.state_floats += slots[s].bytes / sizeof(float);
    x.state = test_floats(x.state_floats + 1);
    size_t at = 0;
    for (size_t s = 0; s < n; s++) {
        x.param.state[s] = x.state + at;
        at += slots[s].bytes / sizeof(float);
    }
    return x;
}

static tensor make_vector(const largo_hyper *h, uint64_t seed, int64_t n)
{
    return make(h, seed, 1, &n, 0);
}

static void drop(tensor *x)
{
    free(x->value);
    free(x->grad);
    free(x->state);
}

static uint64_t hash(uint64_t seed, const tensor *x)
{
    return test_hash(test_hash(seed, x->value, x->n), x->state, x->state_floats);
}

static void steps(largo_ctx *ctx, const largo_hyper *h, size_t n, const tensor x[])
{
    largo_param p[MOST];
    for (size_t i = 0; i < n; i++) p[i] = x[i].param;
    for (int64_t t = 1; t <= 3; t++) assert_ok(largo_step(ctx, h, t, n, p));
}

/* One tensor of k slices, against k tensors that hold the same numbers. */
static void compare_slices(largo_ctx *ctx, const largo_hyper *h, int32_t ndim,
                           const int64_t shape[], int32_t k)
{
    tensor whole = make(h, 3, ndim, shape, k), part[MOST];
    int64_t slice[LARGO_MAX_DIMS];
    memcpy(slice, shape, (size_t)ndim * sizeof *shape);
    slice[0] /= k;
    for (int32_t i = 0; i < k; i++) {
        part[i] = make(h, 0, ndim, slice, 0);
        memcpy(part[i].value, whole.value + (size_t)i * part[i].n, part[i].n * sizeof(float));
        memcpy(part[i].grad, whole.grad + (size_t)i * part[i].n, part[i].n * sizeof(float));
    }
    steps(ctx, h, 1, &whole);
    steps(ctx, h, (size_t)k, part);
    for (int32_t i = 0; i < k; i++) {
        assert_memory_equal(part[i].value, whole.value + (size_t)i * part[i].n,
                            part[i].n * sizeof(float));
        largo_slot slots[LARGO_MAX_SLOTS];
        size_t n;
        assert_ok(largo_slots(h, &part[i].param, slots, &n));
        for (size_t s = 0; s < n; s++)
            assert_memory_equal(part[i].param.state[s],
                                (char *)whole.param.state[s] + (size_t)i * slots[s].bytes,
                                slots[s].bytes);
        drop(&part[i]);
    }
    drop(&whole);
}

static void segments_are_separate_tensors(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(3);
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        compare_slices(ctx, &h, 1, (const int64_t[]){700}, 7);
        compare_slices(ctx, &h, 1, (const int64_t[]){70000}, 2);
        compare_slices(ctx, &h, 2, (const int64_t[]){8, 33}, 4);
        compare_slices(ctx, &h, 2, (const int64_t[]){4, 9000}, 4);
        compare_slices(ctx, &h, 2, (const int64_t[]){600, 130}, 2);
        compare_slices(ctx, &h, 2, (const int64_t[]){3, 5}, 1);
        if (h.algo == LARGO_MERIT) continue; /* takes two dimensions at most */
        compare_slices(ctx, &h, 3, (const int64_t[]){6, 5, 7}, 3);
        compare_slices(ctx, &h, 4, (const int64_t[]){4, 3, 150, 70}, 2);
    }
    largo_ctx_destroy(ctx);
}

enum { SIZES = 6 };
static const int64_t SIZE[SIZES] = {1, 40, 5000, 33000, 0, 70001};

/* The same tensors in the order given, hashed in their own. */
static uint64_t hash_in_order(largo_ctx *ctx, const largo_hyper *h, const size_t order[SIZES])
{
    tensor x[SIZES];
    uint64_t result = 0;
    for (size_t i = 0; i < SIZES; i++) x[order[i]] = make_vector(h, order[i], SIZE[order[i]]);
    tensor shuffled[SIZES];
    for (size_t i = 0; i < SIZES; i++) shuffled[i] = x[order[i]];
    steps(ctx, h, SIZES, shuffled);
    for (size_t i = 0; i < SIZES; i++) {
        result = hash(result, &x[i]);
        drop(&x[i]);
    }
    return result;
}

static void order_does_not_matter(void **state)
{
    (void)state;
    const size_t order[4][SIZES] = {
        {0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 5, 0, 4, 2, 1}, {4, 2, 5, 1, 3, 0}};
    largo_ctx *ctx = test_ctx(3);
    for (int i = 0; i < ALGOS; i++) {
        largo_hyper h = algorithm(i);
        h.max_grad_norm = 1.0; /* the norm is over all of them */
        const uint64_t want = hash_in_order(ctx, &h, order[0]);
        for (int o = 1; o < 4; o++) assert_true(hash_in_order(ctx, &h, order[o]) == want);
    }
    largo_ctx_destroy(ctx);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    const size_t order[SIZES] = {0, 1, 2, 3, 4, 5};
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        uint64_t want = 0;
        for (int threads = 1; threads <= 8; threads++) {
            largo_ctx *ctx = test_ctx(threads);
            const uint64_t got = hash_in_order(ctx, &h, order);
            if (threads == 1) want = got;
            if (got != want) fail_msg("%d threads, algorithm %d", threads, i);
            largo_ctx_destroy(ctx);
        }
    }
}

/* Two runs of one tensor, of which the second differs by `change`; equal bits. */
static void same_after(void (*change)(largo_hyper *h, tensor *x))
{
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < ALGOS; i++) {
        largo_hyper h = algorithm(i);
        tensor x = make(&h, 7, 2, (const int64_t[]){300, 200}, 0);
        tensor y = make(&h, 7, 2, (const int64_t[]){300, 200}, 0);
        steps(ctx, &h, 1, &x);
        change(&h, &y);
        steps(ctx, &h, 1, &y);
        if (hash(0, &x) != hash(0, &y)) fail_msg("algorithm %d", i);
        drop(&x);
        drop(&y);
    }
    largo_ctx_destroy(ctx);
}

static void negate_and_maximize(largo_hyper *h, tensor *x)
{
    h->maximize = LARGO_ON;
    for (size_t i = 0; i < x->n; i++) x->grad[i] = -x->grad[i];
}

static void scale_back(largo_hyper *h, tensor *x)
{
    h->grad_scale = 0x1p-10;
    for (size_t i = 0; i < x->n; i++) x->grad[i] *= 0x1p10f;
}

static void give_gradient_away(largo_hyper *h, tensor *x)
{
    (void)h;
    largo_ctx *ctx = test_ctx(2); /* steps of its own, as the gradient is used up */
    float *grad = test_floats(x->n);
    memcpy(grad, x->grad, x->n * sizeof(float));
    x->param.flags = LARGO_PARAM_GRAD_SCRATCH;
    for (int64_t t = 1; t <= 3; t++) {
        memcpy(x->grad, grad, x->n * sizeof(float));
        assert_ok(largo_step(ctx, h, t, 1, &x->param));
    }
    x->param.flags = LARGO_PARAM_FROZEN;
    free(grad);
    largo_ctx_destroy(ctx);
}

static void maximize_is_the_negated_gradient(void **state)
{
    (void)state;
    same_after(negate_and_maximize);
}

static void powers_of_two_scale_exactly(void **state)
{
    (void)state;
    same_after(scale_back);
}

static void scratch_gradients(void **state)
{
    (void)state;
    same_after(give_gradient_away);
}

/* LAMB moves a tensor by lr |w|, and does not care how long the gradient is. */
static void lamb_steps_by_lr_times_norm(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    largo_hyper h = algorithm(3);
    h.weight_decay = 0.0;
    h.eps = 0x1p-126;
    const int64_t sizes[4] = {1, 100, 5000, 40000};
    for (int s = 0; s < 4; s++) {
        tensor first = make_vector(&h, 21, sizes[s]);
        assert_ok(largo_step(ctx, &h, 1, 1, &first.param));
        for (int power = -20; power <= 20; power += 4) {
            tensor x = make_vector(&h, 21, sizes[s]), w = make_vector(&h, 21, sizes[s]);
            for (size_t i = 0; i < x.n; i++) x.grad[i] = ldexpf(x.grad[i], power);
            assert_ok(largo_step(ctx, &h, 1, 1, &x.param));
            const double moved = test_distance(x.value, w.value, x.n),
                         want = 0.01 * test_distance(w.value, NULL, x.n);
            assert_true(fabs(moved - want) <= 1e-5 * want);
            assert_true(test_distance(x.value, first.value, x.n) <= 1e-5 * want);
            drop(&x);
            drop(&w);
        }
        drop(&first);
    }
    largo_ctx_destroy(ctx);
}

/* w and its velocity, after the gradient was multiplied by 2^power for two steps of LARS. */
static tensor lars_scaled(largo_ctx *ctx, const largo_hyper *h, int64_t n, int power)
{
    tensor x = make_vector(h, 21, n);
    for (size_t i = 0; i < x.n; i++) x.grad[i] = ldexpf(x.grad[i], power);
    for (int64_t t = 1; t <= 2; t++) assert_ok(largo_step(ctx, h, t, 1, &x.param));
    return x;
}

/* Without decay, eps and LARC LARS does not see how long the gradient is: to the bit, as long as no
 * chunk needs its second look, and closely always. The velocity is that of the gradient only if it
 * holds no ratio. */
static void lars_does_not_see_the_length_of_the_gradient(void **state)
{
    (void)state;
    static const int powers[] = {-100, -24, -3, 1, 24, 100};
    static const int64_t sizes[4] = {1, 100, 5000, 40000};
    largo_ctx *ctx = test_ctx(2);
    for (int i = 8; i < ALGOS; i++)
        for (int k = 0; k < 24; k++) {
            largo_hyper h = algorithm(i);
            h.weight_decay = h.eps = 0.0;
            h.larc = LARGO_OFF;
            const int64_t n = sizes[k % 4];
            const int power = powers[k / 4], exact = power > -30 && power < 30;
            tensor x = lars_scaled(ctx, &h, n, 0), y = lars_scaled(ctx, &h, n, power);
            for (size_t e = 0; e < y.state_floats && h.velocity == LARGO_VELOCITY_GRAD; e++)
                y.state[e] = ldexpf(y.state[e], -power);
            assert_true(test_distance(x.value, y.value, x.n) <=
                        1e-7 * test_distance(x.value, NULL, x.n));
            if (exact) assert_true(hash(0, &x) == hash(0, &y));
            drop(&x);
            drop(&y);
        }
    largo_ctx_destroy(ctx);
}

/* A count of its own decides, not the number in the call; and it is written. */
static void a_count_of_its_own(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    for (int i = 0; i < ALGOS; i++) {
        const largo_hyper h = algorithm(i);
        tensor own = make_vector(&h, 9, 50), shared = make_vector(&h, 9, 50);
        int64_t count = 6;
        own.param.step = &count;
        assert_ok(largo_step(ctx, &h, 1, 1, &own.param));
        assert_ok(largo_step(ctx, &h, 7, 1, &shared.param));
        assert_int_equal(count, 7);
        assert_true(hash(0, &own) == hash(0, &shared));
        drop(&own);
        drop(&shared);
    }
    largo_ctx_destroy(ctx);
}

/* A frozen tensor is not touched, not looked at for bad values, and not in the norm. */
static void frozen_tensors(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < ALGOS; i++) {
        largo_hyper h = algorithm(i);
        h.max_grad_norm = 1.0;
        tensor x[2] = {make_vector(&h, 4, 5000), make_vector(&h, 5, 5000)};
        tensor alone = make_vector(&h, 4, 5000), before = make_vector(&h, 5, 5000);
        x[1].param.flags = LARGO_PARAM_FROZEN;
        x[1].grad[17] = NAN;
        steps(ctx, &h, 2, x);
        steps(ctx, &h, 1, &alone);
        assert_true(hash(0, &x[0]) == hash(0, &alone));
        assert_true(hash(0, &x[1]) == hash(0, &before));
        drop(&x[0]);
        drop(&x[1]);
        drop(&alone);
        drop(&before);
    }
    largo_ctx_destroy(ctx);
}

/* Zero weights, zero gradients or both: everything stays a number. */
static void zero_norms(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    for (int i = 0; i < ALGOS; i++)
        for (int zero = 1; zero < 4; zero++)
            for (int large = 0; large < 2; large++) {
                const largo_hyper h = algorithm(i);
                tensor x = make(&h, 1, 2, (const int64_t[]){large ? 400 : 4, 100}, 0);
                if (zero & 1) memset(x.value, 0, x.n * sizeof(float));
                if (zero & 2) memset(x.grad, 0, x.n * sizeof(float));
                steps(ctx, &h, 1, &x);
                size_t odd = 0, moved = 0;
                for (size_t e = 0; e < x.n; e++) {
                    odd += isfinite(x.value[e]) ? 0 : 1;
                    moved += x.value[e] != 0.0f;
                }
                assert_int_equal(odd, 0);
                if (zero == 3) assert_int_equal(moved, 0);
                drop(&x);
            }
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_separate_tensors),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(maximize_is_the_negated_gradient),
        cmocka_unit_test(powers_of_two_scale_exactly),
        cmocka_unit_test(scratch_gradients),
        cmocka_unit_test(lamb_steps_by_lr_times_norm),
        cmocka_unit_test(lars_does_not_see_the_length_of_the_gradient),
        cmocka_unit_test(a_count_of_its_own),
        cmocka_unit_test(frozen_tensors),
        cmocka_unit_test(zero_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
