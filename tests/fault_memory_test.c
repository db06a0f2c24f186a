/* labels: fault short
 *
 * The n-th allocation fails, n = 0, 1, ... until the call succeeds: LARGO_ERR_MEMORY, nothing
 * leaked, nothing changed, and the same call succeeds afterwards with the results of a world in
 * which nothing ever failed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

/* ---- an allocator that keeps books ---- */

enum { MOST_BLOCKS = 256 };

typedef struct books {
    void *block[MOST_BLOCKS];
    size_t bytes[MOST_BLOCKS];
    int live;
    long made, fail_at; /* -1: never */
} books;

static void *book_alloc(void *user, size_t bytes, void *stream)
{
    books *b = user;
    assert_null(stream);
    assert_true(bytes > 0);
    if (b->made++ == b->fail_at) return NULL;
    for (int i = 0; i < MOST_BLOCKS; i++) {
        if (b->block[i]) continue;
        b->block[i] = aligned_alloc(256, (bytes + 255) / 256 * 256);
        b->bytes[i] = bytes;
        b->live++;
        memset(b->block[i], 0xa5, bytes); /* nobody may take it for zeros */
        return b->block[i];
    }
    return NULL;
}

static void book_free(void *user, void *memory, size_t bytes, void *stream)
{
    books *b = user;
    assert_null(stream);
    for (int i = 0; i < MOST_BLOCKS; i++) {
        if (b->block[i] != memory) continue;
        assert_int_equal(b->bytes[i], bytes);
        memset(memory, 0xdd, bytes);
        free(memory);
        b->block[i] = NULL;
        b->live--;
        return;
    }
    fail_msg("free of %p, which is not live", memory);
}

/* ---- a world: a context, an object, three tensors ---- */

enum { LONG = 33000, SHORT = 100, ROWS = 60, COLS = 1000, FLOATS = 320000 };

typedef struct world {
    books books;
    largo_ctx_options options;
    largo_ctx *ctx;
    largo_optim *optim;
    largo_hyper lamb, came, sgd;
    largo_param flat[2], matrix, bare; /* with state; bare without */
    float *memory;
    size_t used;
} world;

static float *take(world *w, size_t n, int exponent)
{
    float *x = w->memory + w->used;
    w->used += n;
    assert_true(w->used <= FLOATS);
    if (exponent) test_fill(x, n, w->used, exponent, 3);
    return x;
}

static largo_param make_param(world *w, const largo_hyper *h, int64_t rows, int64_t cols)
{
    const size_t n = (size_t)(rows * cols);
    float *value = take(w, n, -1);
    largo_param p = largo_param_f32(value, take(w, n, -2), rows, cols);
    largo_slot slots[LARGO_MAX_SLOTS];
    size_t n_slots;
    assert_ok(largo_slots(h, &p, slots, &n_slots));
    for (size_t s = 0; s < n_slots; s++) p.state[s] = take(w, slots[s].bytes / sizeof(float), 0);
    return p;
}

static void make_world(world *w)
{
    memset(w, 0, sizeof *w);
    const largo_ctx_options defaults = LARGO_CTX_OPTIONS;
    w->options = defaults;
    w->options.threads = 2;
    w->options.alloc = book_alloc;
    w->options.free = book_free;
    w->options.alloc_user = &w->books;
    w->books.fail_at = -1;
    w->memory = test_floats(FLOATS);
    assert_ok(largo_hyper_init(&w->lamb, LARGO_LAMB));
    assert_ok(largo_hyper_init(&w->came, LARGO_CAME));
    assert_ok(largo_hyper_init(&w->sgd, LARGO_SGD));
    w->flat[0] = make_param(w, &w->lamb, LONG, 1);
    w->flat[1] = make_param(w, &w->lamb, SHORT, 1);
    w->matrix = make_param(w, &w->came, ROWS, COLS);
    w->bare = make_param(w, &w->sgd, SHORT, 1);
}

static void end_world(world *w)
{
    largo_optim_destroy(w->optim);
    largo_ctx_destroy(w->ctx);
    assert_int_equal(w->books.live, 0);
    free(w->memory);
}

static void with_ctx(world *w)
{
    assert_ok(largo_ctx_create(&w->options, &w->ctx));
}

static void with_step(world *w)
{
    with_ctx(w);
    assert_ok(largo_step(w->ctx, &w->lamb, 1, 1, w->flat));
}

static void with_optim(world *w)
{
    with_ctx(w);
    assert_ok(largo_optim_create(w->ctx, &w->optim));
}

static largo_param stateless(const largo_param *p)
{
    largo_param q = *p;
    memset(q.state, 0, sizeof q.state);
    return q;
}

static void with_group(world *w)
{
    with_optim(w);
    const largo_param p[2] = {stateless(&w->flat[0]), w->flat[1]};
    assert_ok(largo_optim_add_group(w->optim, &w->lamb, 2, p, NULL));
}

static void with_frozen(world *w)
{
    with_optim(w);
    largo_param p[2] = {stateless(&w->flat[0]), stateless(&w->flat[1])};
    p[0].flags = p[1].flags = LARGO_PARAM_FROZEN;
    assert_ok(largo_optim_add_group(w->optim, &w->lamb, 2, p, NULL));
}

static void with_sgd(world *w)
{
    with_group(w);
    const largo_param p[2] = {stateless(&w->bare), stateless(&w->matrix)};
    assert_ok(largo_optim_add_group(w->optim, &w->sgd, 2, p, NULL));
    assert_ok(largo_optim_step(w->optim));
}

/* ---- the calls that may run out of memory ---- */

static largo_status create_ctx(world *w)
{
    w->ctx = (largo_ctx *)w;
    const largo_status status = largo_ctx_create(&w->options, &w->ctx);
    if (status != LARGO_OK) assert_null(w->ctx);
    return status;
}

static largo_status first_step(world *w)
{
    return largo_step(w->ctx, &w->lamb, 1, 2, w->flat);
}

static largo_status replanned_step(world *w)
{
    return largo_step(w->ctx, &w->came, 1, 1, &w->matrix);
}

static largo_status create_optim(world *w)
{
    w->optim = (largo_optim *)w;
    const largo_status status = largo_optim_create(w->ctx, &w->optim);
    if (status != LARGO_OK) assert_null(w->optim);
    return status;
}

static largo_status add_first(world *w)
{
    const largo_param p[2] = {stateless(&w->flat[0]), stateless(&w->flat[1])};
    return largo_optim_add_group(w->optim, &w->lamb, 2, p, NULL);
}

static largo_status add_second(world *w)
{
    const largo_param p[2] = {stateless(&w->matrix), stateless(&w->bare)};
    size_t group = 77;
    const largo_status status = largo_optim_add_group(w->optim, &w->came, 2, p, &group);
    assert_int_equal(group, status == LARGO_OK ? 1 : 77);
    return status;
}

static largo_status rebind(world *w)
{
    const largo_param p[2] = {stateless(&w->flat[0]), w->flat[1]};
    return largo_optim_rebind(w->optim, 0, 2, p);
}

static largo_status unfreeze(world *w)
{
    const largo_param p[2] = {stateless(&w->flat[0]), stateless(&w->flat[1])};
    return largo_optim_rebind(w->optim, 0, 2, p);
}

static largo_status replan_by_hyper(world *w)
{
    largo_optim_hyper(w->optim, 1)->momentum = 0.9;
    return largo_optim_step(w->optim);
}

static largo_status set_milestones(world *w)
{
    static const int64_t milestones[] = {1, 2};
    largo_schedule s = LARGO_SCHEDULE;
    s.decay = LARGO_DECAY_MULTI_STEP;
    s.lr = 0.5;
    s.gamma = 0.5;
    s.milestones = milestones;
    s.n_milestones = 2;
    return largo_optim_set_schedule(w->optim, 0, &s);
}

static void with_milestones(world *w)
{
    with_group(w);
    assert_ok(set_milestones(w));
}

static const struct scenario {
    const char *name;
    void (*before)(world *w);
    largo_status (*call)(world *w);
    int at_least; /* allocations that must be met */
    int may_keep; /* blocks that a failure may leave with the context or object, which free them */
} scenarios[] = {
    {"create a context", NULL, create_ctx, 2, 0},
    {"first step", with_ctx, first_step, 4, 1},
    {"step with other shapes", with_step, replanned_step, 3, 0},
    {"create an object", with_ctx, create_optim, 1, 0},
    {"add a group", with_optim, add_first, 6, 0},
    {"add a second group", with_group, add_second, 6, 0},
    {"rebind", with_group, rebind, 3, 0},
    {"rebind that unfreezes", with_frozen, unfreeze, 5, 2},
    {"step with momentum changed from 0", with_sgd, replan_by_hyper, 4, 2},
    {"set other milestones", with_milestones, set_milestones, 1, 0},
};

/* What is left when the call has succeeded and, if there is an object, one more step. */
static uint64_t result(world *w)
{
    if (largo_optim_hyper(w->optim, 0)) assert_ok(largo_optim_step(w->optim));
    uint64_t hash = test_hash(0, w->memory, FLOATS);
    for (size_t g = 0; g < 2; g++)
        for (size_t i = 0; i < 2; i++)
            hash = hash * 31 + (uint64_t)largo_optim_param_step(w->optim, g, i);
    return hash * 31 + (uint64_t)largo_optim_step_count(w->optim);
}

static uint64_t undisturbed(const struct scenario *s)
{
    world w;
    make_world(&w);
    if (s->before) s->before(&w);
    assert_ok(s->call(&w));
    const uint64_t hash = result(&w);
    end_world(&w);
    return hash;
}

/* Fail the n-th allocation of the call; 0: there was none such. */
static int fail_nth(const struct scenario *s, long n, uint64_t want)
{
    world w;
    make_world(&w);
    if (s->before) s->before(&w);
    float *before = test_floats(FLOATS);
    memcpy(before, w.memory, FLOATS * sizeof(float));
    const int64_t steps = largo_optim_step_count(w.optim);
    const int64_t own = largo_optim_param_step(w.optim, 0, 0);
    w.books.fail_at = w.books.made + n;
    const largo_status status = s->call(&w);
    const int failed = status != LARGO_OK;
    if (failed) {
        assert_status(LARGO_ERR_MEMORY, status);
        test_assert_contains(largo_last_error(), "no memory", __FILE__, __LINE__);
        assert_memory_equal(before, w.memory, FLOATS * sizeof(float));
        if (w.optim) assert_int_equal(largo_optim_step_count(w.optim), steps);
        if (w.optim) assert_int_equal(largo_optim_param_step(w.optim, 0, 0), own);
        w.books.fail_at = -1;
        assert_ok(s->call(&w));
    }
    if (result(&w) != want) fail_msg("%s: allocation %ld: other results afterwards", s->name, n);
    end_world(&w);
    free(before);
    return failed;
}

static void each_allocation_fails_once(void **state)
{
    const struct scenario *s = *state;
    const uint64_t want = undisturbed(s);
    long n = 0;
    while (fail_nth(s, n, want)) n++;
    assert_true(n >= s->at_least);
}

/* A failure and no second try: all memory comes back, and the object steps as before. */
static void given_up(void **state)
{
    const struct scenario *s = *state;
    for (long n = 0; n < s->at_least; n++) {
        world w;
        make_world(&w);
        if (s->before) s->before(&w);
        const int live = w.books.live;
        w.books.fail_at = w.books.made + n;
        assert_status(LARGO_ERR_MEMORY, s->call(&w));
        w.books.fail_at = -1;
        assert_true(w.books.live <= live + s->may_keep);
        if (largo_optim_hyper(w.optim, 0)) assert_ok(largo_optim_step(w.optim));
        end_world(&w);
    }
}

/* Without an allocator of the host's. A sanitizer's own ends the program instead of failing. */
static void too_large_for_any_machine(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip();
#endif
    largo_ctx *ctx = test_ctx(1);
    largo_optim *o;
    largo_hyper h;
    float x[1] = {0};
    assert_ok(largo_hyper_init(&h, LARGO_LAMB));
    assert_ok(largo_optim_create(ctx, &o));
    const largo_param p = largo_param_f32(x, x, (int64_t)1 << 60, 1);
    assert_refused(LARGO_ERR_MEMORY, "bytes", largo_optim_add_group(o, &h, 1, &p, NULL));
    assert_int_equal(largo_optim_param_step(o, 0, 0), -1);
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    enum { N = sizeof scenarios / sizeof *scenarios };
    static char names[2 * N][80];
    struct CMUnitTest tests[2 * N + 1] = {{0}};
    for (size_t i = 0; i < N; i++) {
        snprintf(names[2 * i], sizeof names[0], "%s: each allocation fails once",
                 scenarios[i].name);
        snprintf(names[2 * i + 1], sizeof names[0], "%s: given up", scenarios[i].name);
        const struct CMUnitTest pair[2] = {
            {names[2 * i], each_allocation_fails_once, NULL, NULL, (void *)&scenarios[i]},
            {names[2 * i + 1], given_up, NULL, NULL, (void *)&scenarios[i]},
        };
        memcpy(&tests[2 * i], pair, sizeof pair);
    }
    const struct CMUnitTest last = cmocka_unit_test(too_large_for_any_machine);
    tests[2 * N] = last;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
