/* support_ranks.c - see support_ranks.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support_ranks.h"

const rank_spec ranks_mixed[] = {
    {LARGO_SHARDED, 0, 1, {1}, 0, 0},
    {LARGO_SHARDED, 0, 1, {4095}, LARGO_PARAM_NO_DECAY, 0},
    {LARGO_REPLICATED, 0, 1, {300}, 0, 0},
    {LARGO_SHARDED, 0, 1, {70001}, 0, 0},
    {LARGO_SHARDED, 0, 1, {12288}, 0, 2},
    {LARGO_LOCAL, 0, 1, {5000}, 0, 0},
    {LARGO_SHARDED, 3, 1, {3 * 9001}, 0, 0},
    {LARGO_SHARDED, 0, 1, {0}, 0, 0},
    {LARGO_REPLICATED, 2, 1, {80000}, 0, 3},
    {LARGO_SHARDED, 0, 1, {8192}, LARGO_PARAM_GRAD_SCRATCH, 0},
    {LARGO_SHARDED, 0, 1, {40000}, LARGO_PARAM_NO_TRUST, 0},
    {LARGO_LOCAL, 0, 1, {33000}, 0, 0},
    {LARGO_SHARDED, 0, 1, {20000}, LARGO_PARAM_FROZEN, 0},
    {LARGO_SHARDED, 0, 2, {700, 48}, 0, 0},
    {LARGO_SHARDED, 0, 2, {255, 130}, 0, 3},
    {LARGO_SHARDED, 2, 2, {1040, 32}, LARGO_PARAM_NO_DECAY, 0},
    {LARGO_SHARDED, 0, 3, {5, 300, 64}, 0, 0},
    {LARGO_REPLICATED, 0, 2, {300, 150}, 0, 0},
    {LARGO_LOCAL, 0, 2, {64, 50}, 0, 0},
};
const size_t n_ranks_mixed = sizeof ranks_mixed / sizeof *ranks_mixed;

const ranks_option ranks_options[] = {
    {LARGO_LAMB, ""},
    {LARGO_LAMB, "max_grad_norm=1 l2=1 weight_decay=0.1"},
    {LARGO_LARS, "weight_decay=0.01 lr=2"},
    {LARGO_LARS, "denominator=3 velocity=3 nesterov=1 max_grad_norm=2"},
    {LARGO_LARS, "denominator=2 momentum=0 non_finite=3"},
    {LARGO_ADAMW, "max_grad_norm=0.5"},
    {LARGO_SGD, "momentum=0.9 grad_scale=0.125"},
    {LARGO_MERIT, ""},
    {LARGO_CAME, "max_grad_norm=3"},
    {LARGO_CAME, "weight_decay=0.1 clip_threshold=0.3 non_finite=3"},
};
const size_t n_ranks_options = sizeof ranks_options / sizeof *ranks_options;

largo_tensor ranks_tensor(const rank_spec *spec)
{
    largo_tensor t = {NULL, LARGO_F32, spec->ndim, {0}};
    memcpy(t.shape, spec->shape, sizeof spec->shape);
    return t;
}

size_t ranks_numel(const rank_spec *spec)
{
    const largo_tensor t = ranks_tensor(spec);
    return (size_t)test_numel(&t);
}

static int is_by(const largo_slot *slot, const char *lines)
{
    return strstr(slot->name, lines) != NULL;
}

/* State of parameter i, whose part begins at element `begin`. By columns it is everybody's own. */
static void add_state(world *w, rank *me, size_t i, const rank *from, size_t first, int64_t begin)
{
    const rank_spec *s = &w->setup.specs[me->which[i]];
    largo_slot slots[LARGO_MAX_SLOTS];
    size_t n;
    assert_ok(largo_slots(&w->hyper, &me->params[i], slots, &n));
    const int64_t cols = s->ndim > 1 ? s->shape[s->ndim - 1] : 1;
    for (size_t k = 0; k < n; k++) {
        const int by_cols = is_by(&slots[k], "_col");
        if (from && !by_cols)
            me->state[i][k] = from->state[first][k];
        else
            me->state[i][k] =
                test_floats(by_cols ? slots[k].bytes / sizeof(float) + 1 : ranks_numel(s) + 1);
        const int64_t at = by_cols ? 0 : is_by(&slots[k], "_row") ? begin / cols : begin;
        me->params[i].state[k] = me->state[i][k] + at;
    }
    int64_t rows = s->ndim > 1 ? s->shape[s->ndim - 2] : 1;
    if (s->ndim == 2 && s->segments > 1) rows /= s->segments;
    me->first_col[i] = begin / cols / rows * cols;
}

/* A parameter of rank r. Memory is whole on every owner; sharded parts of all ranks share that of
 * rank 0, so that together they are what one rank would have. */
static void add(world *w, int r, int which)
{
    const rank_spec *s = &w->setup.specs[which];
    rank *me = &w->rank[r];
    const size_t i = me->n++, n = ranks_numel(s);
    largo_param *p = &me->params[i];
    me->which[i] = which;
    p->value = p->grad = ranks_tensor(s);
    p->segments = s->segments;
    p->flags = s->flags;
    p->step = &me->counts[i];
    p->stats = me->stats[i];
    p->shard = &me->shards[i];
    me->shards[i].placement = s->placement;
    int64_t begin = 0, end = (int64_t)n;
    const int is_part = s->placement == LARGO_SHARDED;
    if (is_part) {
        largo_param whole = {0};
        whole.value = p->value;
        whole.segments = s->segments;
        ranks_cut_fn *cut = w->setup.cut ? w->setup.cut : largo_shard_cut;
        assert_ok(cut(&w->hyper, &whole, w->n, r, &begin, &end));
        me->shards[i].ndim = s->ndim;
        memcpy(me->shards[i].shape, s->shape, sizeof s->shape);
        me->shards[i].offset = begin;
        p->value.ndim = p->grad.ndim = 1;
        p->value.shape[0] = p->grad.shape[0] = end - begin;
    }
    me->is_owner[i] = r == 0 || !is_part;
    size_t first = 0;
    while (r && is_part && w->rank[0].which[first] != which) first++;
    const rank *from = me->is_owner[i] ? NULL : &w->rank[0];
    me->value[i] = from ? from->value[first] : test_floats(n + 1);
    me->grad[i] = from ? from->grad[first] : test_floats(n + 1);
    add_state(w, me, i, from, first, begin);
    p->value.data = me->value[i] + begin;
    if (me->is_owner[i]) test_fill(me->value[i], n, 100 + (uint64_t)which, 0, 5);
}

/* MERIT takes no more than two dimensions as yet. */
static int is_taken(const largo_hyper *hyper, const rank_spec *spec)
{
    return hyper->algo != LARGO_MERIT || spec->ndim <= 2;
}

static largo_all_reduce_fn meet;

static void open_rank(world *w, int r)
{
    const ranks_setup *setup = &w->setup;
    rank *me = &w->rank[r];
    me->world = w;
    me->number = r;
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = setup->threads ? setup->threads : 1 + r % 3;
    if (setup->callback) {
        options.all_reduce = meet;
        options.all_reduce_user = me;
    }
    me->ctx = test_ctx_of(&options);
    for (int i = 0; i < (int)setup->n_specs; i++) {
        const rank_spec *spec = &setup->specs[i];
        if ((spec->placement != LARGO_LOCAL || i % w->n == r) && is_taken(&w->hyper, spec))
            add(w, r, i);
    }
    if (!setup->object) return;
    assert_ok(largo_optim_create(me->ctx, &me->optim));
    assert_ok(largo_optim_add_group(me->optim, &w->hyper, me->n, me->params, NULL));
}

void world_open(world *w, const ranks_setup *setup, const largo_hyper *hyper)
{
    memset(w, 0, sizeof *w);
    assert_true(setup->n <= RANKS_MOST && setup->n_specs <= RANKS_PARAMS);
    w->setup = *setup;
    w->n = setup->n;
    w->hyper = *hyper;
    assert_int_equal(pthread_barrier_init(&w->barrier, NULL, (unsigned)w->n), 0);
    for (int r = 0; r < w->n; r++) open_rank(w, r);
}

static int is_shared_state(const rank *first, const float *state)
{
    for (size_t i = 0; i < first->n; i++)
        for (int k = 0; k < RANKS_SLOTS; k++)
            if (first->state[i][k] == state) return 1;
    return 0;
}

/* From the last rank on: the first one's memory is in the others. */
void world_close(world *w)
{
    for (int r = w->n - 1; r >= 0; r--) {
        rank *me = &w->rank[r];
        for (size_t i = 0; i < me->n; i++) {
            const rank *first = me->is_owner[i] ? NULL : &w->rank[0];
            for (int k = 0; k < RANKS_SLOTS; k++)
                if (!first || !is_shared_state(first, me->state[i][k])) free(me->state[i][k]);
            if (first) continue;
            free(me->value[i]);
            free(me->grad[i]);
        }
        largo_optim_destroy(me->optim);
        largo_ctx_destroy(me->ctx);
    }
    pthread_barrier_destroy(&w->barrier);
}

void world_gradients(world *w, int t, float bad)
{
    for (int r = 0; r < w->n; r++) {
        rank *me = &w->rank[r];
        for (size_t i = 0; i < me->n; i++) {
            const int which = me->which[i];
            const size_t n = ranks_numel(&w->setup.specs[which]);
            if (me->is_owner[i])
                test_fill(me->grad[i], n, (uint64_t)(1000 * t + which), -2, 3 + which);
            if (bad != 0.0f && which == 3) me->grad[i][n - 1] = bad;
            const int64_t offset = me->shards[i].offset;
            me->params[i].grad.data =
                w->setup.specs[which].no_grad_at == t ? NULL : me->grad[i] + offset;
        }
        if (me->optim) assert_ok(largo_optim_rebind(me->optim, 0, me->n, me->params));
    }
}

/* ---- stepping ---- */

static void shuffle(int order[], int n, unsigned *seed)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        *seed = *seed * 1664525u + 1013904223u;
        const int j = (int)(*seed >> 8) % (i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static const largo_reduction *last_call(const rank *me)
{
    return &me->calls[me->n_calls - 1];
}

/* What all ranks have asked for last, if that is the same, in a random order of ranks. */
static int reduce(world *w)
{
    int order[RANKS_MOST];
    shuffle(order, w->n, &w->setup.seed);
    const largo_reduction first = *last_call(&w->rank[0]);
    for (int r = 1; r < w->n; r++) {
        const largo_reduction *c = last_call(&w->rank[r]);
        if (c->n != first.n || c->dtype != first.dtype || c->op != first.op) return 1;
    }
    for (size_t i = 0; i < first.n; i++) {
        int64_t sum = 0;
        uint32_t max = 0;
        double slots = 0.0;
        for (int k = 0; k < w->n; k++) {
            const void *values = last_call(&w->rank[order[k]])->values;
            if (first.dtype == LARGO_I64) sum += ((const int64_t *)values)[i];
            if (first.dtype == LARGO_F64) slots += ((const double *)values)[i];
            const uint32_t x = first.dtype == LARGO_U32 ? ((const uint32_t *)values)[i] : 0;
            if (x > max) max = x;
        }
        for (int k = 0; k < w->n; k++) {
            void *values = last_call(&w->rank[k])->values;
            if (first.dtype == LARGO_I64) ((int64_t *)values)[i] = sum;
            if (first.dtype == LARGO_F64) ((double *)values)[i] = slots;
            if (first.dtype == LARGO_U32) ((uint32_t *)values)[i] = max;
        }
    }
    return 0;
}

/* The callback: the last rank to come reduces, and the others go on after it. Where ranks ask for
 * different things nobody's values are as they should be, and compare_calls tells. */
static int meet(void *user, void *values, size_t n, largo_dtype dtype, largo_reduce_op op,
                void *stream)
{
    rank *me = user;
    if (stream || me->n_calls == RANKS_CALLS) return 1;
    me->calls[me->n_calls++] = (largo_reduction){values, n, dtype, op};
    if (pthread_barrier_wait(&me->world->barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        reduce(me->world);
    pthread_barrier_wait(&me->world->barrier);
    return 0;
}

static void *whole_step(void *arg)
{
    rank *me = arg;
    const world *w = me->world;
    me->status = me->optim ? largo_optim_step(me->optim)
                           : largo_step(me->ctx, &w->hyper, w->t, me->n, me->params);
    return NULL;
}

static void step_by_callback(world *w)
{
    pthread_t thread[RANKS_MOST];
    for (int r = 0; r < w->n; r++)
        assert_int_equal(pthread_create(&thread[r], NULL, whole_step, &w->rank[r]), 0);
    for (int r = 0; r < w->n; r++) pthread_join(thread[r], NULL);
}

static largo_status round_of(rank *me, int32_t round, largo_reduction *out)
{
    const world *w = me->world;
    if (me->optim) return largo_optim_step_round(me->optim, round, out);
    return largo_step_round(me->ctx, &w->hyper, w->t, me->n, me->params, round, out);
}

static void step_by_rounds(world *w)
{
    for (int32_t round = 0;; round++) {
        int going = 0;
        for (int r = 0; r < w->n; r++) {
            rank *me = &w->rank[r];
            largo_reduction next;
            me->status = round_of(me, round, &next);
            if (!next.n) continue;
            assert_ok(me->status);
            assert_true(me->n_calls < RANKS_CALLS);
            me->calls[me->n_calls++] = next;
            going++;
        }
        if (!going) return;
        assert_int_equal(going, w->n);
        assert_int_equal(reduce(w), 0);
    }
}

/* Integers to be summed, maxima, or slots; the same ones on every rank. */
static void compare_calls(const world *w)
{
    for (int r = 0; r < w->n; r++) {
        assert_int_equal(w->rank[r].n_calls, w->rank[0].n_calls);
        for (int i = 0; i < w->rank[r].n_calls; i++) {
            const largo_reduction *a = &w->rank[0].calls[i], *b = &w->rank[r].calls[i];
            assert_non_null(b->values);
            assert_true(b->n > 0 && b->n == a->n && b->dtype == a->dtype && b->op == a->op);
            assert_int_equal(b->op, b->dtype == LARGO_U32 ? LARGO_MAX : LARGO_SUM);
            assert_true(b->dtype == LARGO_I64 || b->dtype == LARGO_F64 || b->dtype == LARGO_U32);
        }
    }
}

int world_step(world *w, int64_t t, largo_status expected)
{
    w->t = t;
    for (int r = 0; r < w->n; r++) w->rank[r].n_calls = 0;
    w->setup.callback ? step_by_callback(w) : step_by_rounds(w);
    for (int r = 0; r < w->n; r++) assert_status(expected, w->rank[r].status);
    compare_calls(w);
    return w->rank[0].n_calls;
}

/* ---- comparing ---- */

void world_compare_param(const world *w, int r, size_t i, const rank *one)
{
    const rank *me = &w->rank[r];
    const int which = me->which[i];
    size_t k = 0; /* the one rank lists all, in order */
    while (one->which[k] != which) k++;
    const size_t n = ranks_numel(&w->setup.specs[which]);
    assert_int_equal(me->counts[i], one->counts[k]);
    assert_memory_equal(me->stats[i], one->stats[k], sizeof me->stats[i]);
    if (me->is_owner[i] && memcmp(me->value[i], one->value[k], n * sizeof(float)) != 0)
        fail_msg("%d ranks, parameter %d: other values", w->n, which);
    largo_slot slots[LARGO_MAX_SLOTS];
    size_t count;
    assert_ok(largo_slots(&w->hyper, &me->params[i], slots, &count));
    for (size_t s = 0; s < count; s++) {
        const int by_cols = is_by(&slots[s], "_col");
        if (!by_cols && !me->is_owner[i]) continue;
        const float *want = one->state[k][s] + (by_cols ? me->first_col[i] : 0);
        if (memcmp(me->state[i][s], want, by_cols ? slots[s].bytes : n * sizeof(float)) != 0)
            fail_msg("%d ranks, parameter %d: other %s", w->n, which, slots[s].name);
    }
}

void world_compare(const world *w, const world *single)
{
    largo_outcome a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    assert_ok(largo_last_outcome(single->rank[0].ctx, &a));
    for (int r = 0; r < w->n; r++) {
        assert_ok(largo_last_outcome(w->rank[r].ctx, &b));
        assert_memory_equal(&a.grad_norm, &b.grad_norm, sizeof a.grad_norm);
        assert_memory_equal(&a.clip, &b.clip, sizeof a.clip);
        for (size_t i = 0; i < w->rank[r].n; i++) world_compare_param(w, r, i, &single->rank[0]);
    }
}

void world_compare_steps(const ranks_setup *alone, const ranks_setup *together,
                         const ranks_option *option, int steps)
{
    const largo_hyper hyper = test_hyper(option->algo, option->set);
    world one, many;
    world_open(&one, alone, &hyper);
    world_open(&many, together, &hyper);
    for (int t = 1; t <= steps; t++) {
        world_gradients(&one, t, 0.0f);
        world_gradients(&many, t, 0.0f);
        const int reductions = world_step(&one, t, LARGO_OK);
        assert_int_equal(world_step(&many, t, LARGO_OK), reductions);
        world_compare(&many, &one);
    }
    world_close(&one);
    world_close(&many);
}
