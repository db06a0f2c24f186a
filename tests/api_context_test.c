/* labels: short
 *
 * Documented answers and refusals of the context, the messages, the capability call, the outcome
 * and the slot query. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "support.h"

static void status_names_and_sentences(void **state)
{
    (void)state;
#define CHECK(name, code, sentence)                                                                \
    assert_int_equal(name, code);                                                                  \
    assert_string_equal(largo_status_name(name), #name);                                           \
    assert_string_equal(largo_status_sentence(name), sentence);                                    \
    assert_int_equal(largo_failed(name), code > 1);
    LARGO_STATUS_LIST(CHECK)
#undef CHECK
    const int unknown[4] = {-1, 12, 0x7fffffff, -0x7fffffff};
    for (int i = 0; i < 4; i++) {
        assert_string_equal(largo_status_name((largo_status)unknown[i]), "LARGO_ERR_UNKNOWN");
        assert_non_null(largo_status_sentence((largo_status)unknown[i]));
    }
    assert_int_equal(largo_version(),
                     LARGO_VERSION_MAJOR * 10000 + LARGO_VERSION_MINOR * 100 + LARGO_VERSION_PATCH);
}

static void *another_thread(void *text)
{
    strcpy(text, largo_last_error()); /* "" before any failure on this thread */
    size_t n;
    if (largo_capabilities(1, NULL, &n) != LARGO_ERR_ARGUMENT) strcpy(text, "not refused");
    return NULL;
}

static void last_error_is_of_this_thread(void **state)
{
    (void)state;
    assert_refused(LARGO_ERR_ARGUMENT, "n is NULL", largo_capabilities(0, NULL, NULL));
    char kept[512], theirs[512] = "unset";
    strcpy(kept, largo_last_error());
    size_t n;
    assert_ok(largo_capabilities(0, NULL, &n));
    assert_string_equal(largo_last_error(), kept); /* success leaves it alone */
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, another_thread, theirs), 0);
    pthread_join(thread, NULL);
    assert_string_equal(theirs, "");
    assert_string_equal(largo_last_error(), kept);
    largo_hyper h;
    assert_refused(LARGO_ERR_ARGUMENT, "algo is 99", largo_hyper_init(&h, (largo_algo)99));
}

static void capabilities(void **state)
{
    (void)state;
    largo_capability list[16], part[16];
    size_t n, m;
    assert_ok(largo_capabilities(0, NULL, &n));
    assert_true(n > 0 && n < 15);
    assert_ok(largo_capabilities(16, list, &m));
    assert_int_equal(m, n);
    for (size_t room = 0; room <= n; room++) {
        memset(part, 0x5a, sizeof part);
        assert_ok(largo_capabilities(room, part, &m));
        assert_int_equal(m, n);
        assert_memory_equal(part, list, room * sizeof *list);
        const unsigned char *rest = (const unsigned char *)&part[room];
        for (size_t i = 0; i < sizeof *part; i++) assert_int_equal(rest[i], 0x5a);
    }
    m = 77;
    assert_refused(LARGO_ERR_ARGUMENT, "list is NULL", largo_capabilities(3, NULL, &m));
    assert_refused(LARGO_ERR_ARGUMENT, "n is NULL", largo_capabilities(16, part, NULL));
    assert_int_equal(m, 77);
}

static void *no_alloc(void *user, size_t bytes, void *stream)
{
    (void)user;
    (void)bytes;
    (void)stream;
    return NULL;
}

static void no_free(void *user, void *memory, size_t bytes, void *stream)
{
    (void)user;
    (void)memory;
    (void)bytes;
    (void)stream;
}

static void refuse_ctx(largo_status status, const char *text, const largo_ctx_options *options)
{
    largo_ctx *ctx = (largo_ctx *)1;
    assert_refused(status, text, largo_ctx_create(options, &ctx));
    assert_null(ctx);
}

static void context_options(void **state)
{
    (void)state;
    const largo_ctx_options defaults = LARGO_CTX_OPTIONS;
    assert_refused(LARGO_ERR_ARGUMENT, "ctx is NULL", largo_ctx_create(NULL, NULL));
    largo_ctx_options o = defaults;
    const int backends[4] = {-1, 3, 0x7fffffff, -0x7fffffff};
    for (int i = 0; i < 4; i++) {
        o.backend = (largo_backend)backends[i];
        refuse_ctx(LARGO_ERR_ARGUMENT, "options.backend", &o);
    }
    o.backend = LARGO_BACKEND_CUDA;
    refuse_ctx(LARGO_ERR_UNSUPPORTED, "cuda", &o);
    const int threads[4] = {-1, 1025, 0x7fffffff, -0x7fffffff - 1};
    for (int i = 0; i < 4; i++) {
        o = defaults;
        o.threads = threads[i];
        refuse_ctx(LARGO_ERR_ARGUMENT, "options.threads", &o);
        test_assert_contains(largo_last_error(), "0 to 1024", __FILE__, __LINE__);
    }
    o = defaults;
    o.device = 1;
    refuse_ctx(LARGO_ERR_ARGUMENT, "options.device", &o);
    o = defaults;
    o.stream = &o;
    refuse_ctx(LARGO_ERR_ARGUMENT, "options.stream", &o);
    o = defaults;
    o.alloc = no_alloc;
    refuse_ctx(LARGO_ERR_ARGUMENT, "both", &o);
    o.free = no_free;
    refuse_ctx(LARGO_ERR_MEMORY, "no memory", &o);
    o.alloc = NULL;
    refuse_ctx(LARGO_ERR_ARGUMENT, "both", &o);
}

/* Structs of the future: larger, and zero beyond what this version knows. */
static void context_struct_size(void **state)
{
    (void)state;
    const largo_ctx_options defaults = LARGO_CTX_OPTIONS;
    struct {
        largo_ctx_options options;
        unsigned char tail[8200];
    } larger = {0};
    larger.options = defaults;
    larger.options.threads = 3;
    const size_t size = sizeof defaults, bad[5] = {0, 1, size - 1, size - 8, 8192};
    for (int i = 0; i < 5; i++) {
        larger.options.struct_size = bad[i];
        refuse_ctx(LARGO_ERR_ARGUMENT, "options.struct_size", &larger.options);
    }
    larger.options.struct_size = SIZE_MAX;
    refuse_ctx(LARGO_ERR_ARGUMENT, "options.struct_size", &larger.options);
    largo_ctx *ctx;
    larger.options.struct_size = size + 16;
    larger.tail[16] = 1; /* beyond what it says to have */
    assert_ok(largo_ctx_create(&larger.options, &ctx));
    test_assert_contains(largo_ctx_name(ctx), "3 threads", __FILE__, __LINE__);
    largo_ctx_destroy(ctx);
    larger.tail[15] = 1;
    refuse_ctx(LARGO_ERR_ARGUMENT, "options has a value", &larger.options);
}

static void context_defaults(void **state)
{
    (void)state;
    largo_ctx *ctx;
    assert_ok(largo_ctx_create(NULL, &ctx));
    assert_int_equal(largo_ctx_backend(ctx), LARGO_BACKEND_CPU);
    assert_int_equal(strncmp(largo_ctx_name(ctx), "cpu ", 4), 0);
    largo_ctx_destroy(ctx);
    largo_ctx_destroy(NULL);
    largo_optim_destroy(NULL);
    assert_non_null(largo_ctx_name(NULL));
    assert_int_equal(largo_ctx_backend(NULL), LARGO_BACKEND_AUTO);
}

static void outcome(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    struct {
        largo_outcome outcome;
        char tail[16];
    } o, before;
    memset(&o, 0x5a, sizeof o);
    o.outcome.struct_size = sizeof o.outcome;
    before = o;
    assert_refused(LARGO_ERR_STATE, "no step", largo_last_outcome(ctx, &o.outcome));
    assert_refused(LARGO_ERR_ARGUMENT, "ctx is NULL", largo_last_outcome(NULL, &o.outcome));
    assert_refused(LARGO_ERR_ARGUMENT, "outcome is NULL", largo_last_outcome(ctx, NULL));
    assert_memory_equal(&o, &before, sizeof o);
    largo_hyper h;
    float w[3] = {1, 2, 3}, g[3] = {1, 2, 2};
    assert_ok(largo_hyper_init(&h, LARGO_SGD));
    const largo_param p = largo_param_f32(w, g, 3, 1);
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    o.outcome.struct_size = sizeof o.outcome - 1;
    before = o;
    assert_refused(LARGO_ERR_ARGUMENT, "outcome.struct_size", largo_last_outcome(ctx, &o.outcome));
    assert_memory_equal(&o, &before, sizeof o);
    o.outcome.struct_size = sizeof o;
    assert_ok(largo_last_outcome(ctx, &o.outcome));
    assert_int_equal(o.outcome.struct_size, sizeof o);
    assert_int_equal(o.outcome.skipped, 0);
    assert_int_equal(o.outcome.scanned, 1);
    assert_int_equal(o.outcome.bad_param, -1);
    assert_int_equal(o.outcome.bad_element, -1);
    assert_true(o.outcome.grad_norm == 3.0 && o.outcome.clip == 1.0);
    h.non_finite = LARGO_NON_FINITE_PROPAGATE;
    assert_ok(largo_step(ctx, &h, 2, 1, &p));
    assert_ok(largo_last_outcome(ctx, &o.outcome));
    assert_int_equal(o.outcome.scanned, 0);
    assert_true(o.outcome.grad_norm != o.outcome.grad_norm); /* not looked at: NaN */
    largo_ctx_destroy(ctx);
}

/* Which parameter, counted over groups, and which element. */
static void outcome_of_a_skip(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    largo_hyper h;
    float x[8][6] = {{0}};
    assert_ok(largo_hyper_init(&h, LARGO_SGD));
    largo_optim *optim;
    assert_ok(largo_optim_create(ctx, &optim));
    for (int g = 0; g < 2; g++) {
        largo_param p[2] = {largo_param_f32(x[4 * g], x[4 * g + 1], 3, 2),
                            largo_param_f32(x[4 * g + 2], x[4 * g + 3], 3, 2)};
        p[1].segments = 3;
        if (g == 1) h.non_finite = LARGO_NON_FINITE_ERROR;
        assert_ok(largo_optim_add_group(optim, &h, 2, p, NULL));
    }
    x[7][5] = __builtin_nanf("");
    assert_refused(LARGO_ERR_NON_FINITE, "parameter 3", largo_optim_step(optim));
    largo_outcome o = {.struct_size = sizeof o};
    assert_ok(largo_last_outcome(ctx, &o));
    assert_int_equal(o.skipped, 1);
    assert_int_equal(o.bad_param, 3);
    assert_int_equal(o.bad_element, 5);
    assert_int_equal(largo_optim_step_count(optim), 0);
    x[7][5] = 0;
    x[1][4] = __builtin_inff();
    assert_refused(LARGO_SKIPPED, "parameter 0", largo_optim_step(optim));
    assert_ok(largo_last_outcome(ctx, &o));
    assert_int_equal(o.bad_param, 0);
    assert_int_equal(o.bad_element, 4);
    largo_optim_destroy(optim);
    largo_ctx_destroy(ctx);
}

static void slots(void **state)
{
    (void)state;
    largo_hyper h;
    float x[12];
    largo_slot slot[LARGO_MAX_SLOTS], before[LARGO_MAX_SLOTS];
    size_t n = 77;
    memset(slot, 0x5a, sizeof slot);
    memcpy(before, slot, sizeof slot);
    assert_ok(largo_hyper_init(&h, LARGO_LAMB));
    const largo_param p = largo_param_f32(x, x, 3, 4);
    assert_refused(LARGO_ERR_ARGUMENT, "hyper is NULL", largo_slots(NULL, &p, slot, &n));
    assert_refused(LARGO_ERR_ARGUMENT, "param is NULL", largo_slots(&h, NULL, slot, &n));
    assert_refused(LARGO_ERR_ARGUMENT, "slots is NULL", largo_slots(&h, &p, NULL, &n));
    assert_refused(LARGO_ERR_ARGUMENT, "n is NULL", largo_slots(&h, &p, slot, NULL));
    largo_param bad = p;
    bad.value.shape[1] = -1;
    assert_refused(LARGO_ERR_SHAPE, "shape[1]", largo_slots(&h, &bad, slot, &n));
    assert_memory_equal(slot, before, sizeof slot);
    assert_int_equal(n, 77);
    bad = p;
    bad.value.data = bad.grad.data = NULL; /* not looked at */
    assert_ok(largo_slots(&h, &bad, slot, &n));
    assert_int_equal(n, 2);
    assert_string_equal(slot[1].name, "exp_avg_sq");
    assert_int_equal(slot[1].bytes, 48);
    assert_int_equal(slot[1].like.ndim, 2);
    assert_int_equal(slot[1].like.dtype, LARGO_F32);
    assert_null(slot[1].like.data);
    assert_memory_equal(slot[1].like.shape, p.value.shape, 16);
    assert_ok(largo_hyper_init(&h, LARGO_SGD));
    assert_ok(largo_slots(&h, &p, slot, &n));
    assert_int_equal(n, 0);
    h.momentum = 0.5;
    assert_ok(largo_slots(&h, &p, slot, &n));
    assert_int_equal(n, 1);
    assert_string_equal(slot[0].name, "momentum_buffer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_names_and_sentences),
        cmocka_unit_test(last_error_is_of_this_thread),
        cmocka_unit_test(capabilities),
        cmocka_unit_test(context_options),
        cmocka_unit_test(context_struct_size),
        cmocka_unit_test(context_defaults),
        cmocka_unit_test(outcome),
        cmocka_unit_test(outcome_of_a_skip),
        cmocka_unit_test(slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
