/* labels: fault short
 *
 * A step with the same shapes as the last one allocates nothing: not through the host's functions,
 * and not behind its back either. This program has its own malloc, which counts. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

static atomic_long mallocs, callbacks;

#if defined(__SANITIZE_ADDRESS__)
enum { COUNTS_MALLOC = 0 }; /* the sanitizer's own malloc must stay */
#elif defined(__GLIBC__)
enum { COUNTS_MALLOC = 1 };

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    mallocs++;
    return __libc_malloc(bytes);
}
void *calloc(size_t n, size_t bytes)
{
    mallocs++;
    return __libc_calloc(n, bytes);
}
void *realloc(void *memory, size_t bytes)
{
    mallocs++;
    return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes)
{
    mallocs++;
    return __libc_memalign(alignment, bytes);
}
int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    mallocs++;
    *memory = __libc_memalign(alignment, bytes);
    return *memory ? 0 : 12;
}
#else
enum { COUNTS_MALLOC = 0 };
#endif

static void *count_alloc(void *user, size_t bytes, void *stream)
{
    (void)user;
    (void)stream;
    callbacks++;
    return aligned_alloc(256, bytes);
}

static void count_free(void *user, void *memory, size_t bytes, void *stream)
{
    (void)user;
    (void)bytes;
    (void)stream;
    free(memory);
}

enum { TENSORS = 4, ALGOS = 7 };
static const int64_t SHAPE[TENSORS][2] = {{40000, 1}, {100, 1}, {300, 200}, {7, 5}};

typedef struct tensors {
    largo_hyper hyper;
    largo_param params[TENSORS];
    float *memory[TENSORS];
} tensors;

static void make(tensors *x, int algo)
{
    const largo_algo algos[ALGOS] = {LARGO_SGD,  LARGO_SGD,   LARGO_ADAMW, LARGO_LAMB,
                                     LARGO_CAME, LARGO_MERIT, LARGO_LARS};
    assert_ok(largo_hyper_init(&x->hyper, algos[algo]));
    if (algo == 1) x->hyper.momentum = 0.9;
    x->hyper.max_grad_norm = 1.0;
    for (int i = 0; i < TENSORS; i++) {
        const size_t n = (size_t)(SHAPE[i][0] * SHAPE[i][1]);
        x->memory[i] = test_floats(7 * n);
        test_fill(x->memory[i], 2 * n, 3, 0, 4);
        x->params[i] = largo_param_f32(x->memory[i], x->memory[i] + n, SHAPE[i][0], SHAPE[i][1]);
        for (size_t s = 0; s < 5; s++) x->params[i].state[s] = x->memory[i] + (2 + s) * n;
    }
}

static void drop(tensors *x)
{
    for (int i = 0; i < TENSORS; i++) free(x->memory[i]);
}

static largo_ctx *counting_ctx(int threads)
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = threads;
    options.alloc = count_alloc;
    options.free = count_free;
    largo_ctx *ctx;
    assert_ok(largo_ctx_create(&options, &ctx));
    return ctx;
}

/* Nothing was allocated since `before`. */
static void check(const long before[2], int algo, const char *what)
{
    if (mallocs != before[0] || callbacks != before[1])
        fail_msg("%s, algorithm %d: %ld mallocs, %ld by the host's functions", what, algo,
                 mallocs - before[0], callbacks - before[1]);
}

static void the_counter_counts(void **state)
{
    (void)state;
    const long before = mallocs;
    void *volatile x = malloc(10);
    void *volatile y = aligned_alloc(64, 64);
    free(x);
    free(y);
    assert_int_equal(mallocs - before, COUNTS_MALLOC ? 2 : 0);
}

static void functional_steps(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++)
        for (int algo = 0; algo < ALGOS; algo++) {
            largo_ctx *ctx = counting_ctx(threads);
            tensors x;
            make(&x, algo);
            float factor = 1.0f;
            x.hyper.grad_factor = &factor;
            assert_ok(largo_step(ctx, &x.hyper, 1, TENSORS, x.params));
            const long before[2] = {mallocs, callbacks};
            for (int64_t t = 2; t < 6; t++) {
                x.hyper.lr /= 2; /* what schedules and loss scalers change */
                x.hyper.grad_scale /= 2;
                factor /= 2;
                assert_ok(largo_step(ctx, &x.hyper, t, TENSORS, x.params));
            }
            factor = 0.0f;
            assert_status(LARGO_SKIPPED, largo_step(ctx, &x.hyper, 6, TENSORS, x.params));
            factor = 1.0f;
            float *g = x.params[0].grad.data;
            g[3] = 1e30f;
            x.hyper.grad_scale = 1.0;
            (void)largo_step(ctx, &x.hyper, 6, TENSORS,
                             x.params); /* skipped, but by SGD and LARS */
            check(before, algo, "functional");
            assert_true(callbacks > 0);
            drop(&x);
            largo_ctx_destroy(ctx);
        }
}

/* The descriptors may lie elsewhere, and a scalar hyper-parameter may have changed: same plan. */
static void copied_descriptors(void **state)
{
    (void)state;
    largo_ctx *ctx = counting_ctx(2);
    tensors x, copy;
    make(&x, 3);
    assert_ok(largo_step(ctx, &x.hyper, 1, TENSORS, x.params));
    const long before[2] = {mallocs, callbacks};
    copy = x;
    assert_ok(largo_step(ctx, &copy.hyper, 2, TENSORS, copy.params));
    check(before, 3, "copied descriptors");
    drop(&x);
    largo_ctx_destroy(ctx);
}

static void object_steps(void **state)
{
    (void)state;
    largo_schedule schedule = LARGO_SCHEDULE;
    schedule.decay = LARGO_DECAY_COSINE;
    schedule.lr = 0.1;
    schedule.total = 10;
    schedule.warmup = 2;
    for (int algo = 0; algo < ALGOS; algo++) {
        largo_ctx *ctx = counting_ctx(2);
        tensors x;
        make(&x, algo);
        float factor[2] = {1.0f, 1.0f};
        largo_optim *o;
        assert_ok(largo_optim_create(ctx, &o));
        assert_ok(largo_optim_add_group(o, &x.hyper, TENSORS, x.params, NULL));
        assert_ok(largo_optim_set_schedule(o, 0, &schedule));
        largo_optim_hyper(o, 0)->grad_factor = &factor[0];
        assert_ok(largo_optim_step(o));
        const long before[2] = {mallocs, callbacks};
        for (int t = 0; t < 5; t++) {
            largo_optim_hyper(o, 0)->max_grad_norm *= 2;
            largo_optim_hyper(o, 0)->grad_factor = &factor[t % 2]; /* elsewhere, the same plan */
            factor[t % 2] /= 2;
            assert_ok(largo_optim_step(o));
        }
        check(before, algo, "object");
        drop(&x);
        largo_optim_destroy(o);
        largo_ctx_destroy(ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_counter_counts),
        cmocka_unit_test(functional_steps),
        cmocka_unit_test(copied_descriptors),
        cmocka_unit_test(object_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
