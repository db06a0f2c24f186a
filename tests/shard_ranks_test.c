/* labels: property short
 *
 * 1, 2, 3, 5 and 8 ranks in one process, stepped round by round with reductions in shuffled order:
 * value, state, counts and statistics have the bits of one rank that holds everything. Sharded,
 * replicated and local parameters mixed; parts that are empty; parameters without a gradient. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { STEPS = 3, MOST_RANKS = 8, SLOTS = 5 };

static const struct spec {
    largo_placement placement;
    int32_t segments, ndim;
    int64_t shape[3];
    uint32_t flags;
    int no_grad_at; /* this step has no gradient of it; 0: all have */
} specs[] = {
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
enum { PARAMS = sizeof specs / sizeof *specs, MOST_SEGMENTS = 3 };

/* One rank: its descriptors, over memory of its own for what it replicates. */
typedef struct rank {
    largo_ctx *ctx;
    largo_optim *optim;
    size_t n;
    int which[PARAMS]; /* of specs */
    largo_param params[PARAMS];
    largo_shard shards[PARAMS];
    int64_t counts[PARAMS];
    largo_param_stats stats[PARAMS][MOST_SEGMENTS];
    float *value[PARAMS], *grad[PARAMS], *state[PARAMS][SLOTS]; /* whole; parts point inside */
    int is_owner[PARAMS];
    int64_t first_col[PARAMS]; /* of its state by columns, which every rank has of its own */
} rank;

typedef struct world {
    int n;
    largo_hyper hyper;
    rank rank[MOST_RANKS];
} world;

static int64_t numel(const struct spec *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->ndim; d++) n *= s->shape[d];
    return n;
}

static largo_tensor tensor(const struct spec *s)
{
    largo_tensor t = {NULL, LARGO_F32, s->ndim, {0}};
    memcpy(t.shape, s->shape, sizeof s->shape);
    return t;
}

static int is_by(const largo_slot *slot, const char *lines)
{
    return strstr(slot->name, lines) != NULL;
}

/* State of parameter i, whose part begins at element `begin`. By columns it is everybody's own. */
static void add_state(world *w, rank *me, size_t i, const rank *from, size_t first, int64_t begin)
{
    const struct spec *s = &specs[me->which[i]];
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
                test_floats(by_cols ? slots[k].bytes / sizeof(float) + 1 : (size_t)numel(s) + 1);
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
    const struct spec *s = &specs[which];
    rank *me = &w->rank[r];
    const size_t i = me->n++, n = (size_t)numel(s);
    largo_param *p = &me->params[i];
    me->which[i] = which;
    p->value = p->grad = tensor(s);
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
        assert_ok(largo_shard_cut(&w->hyper, &whole, w->n, r, &begin, &end));
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

static largo_hyper make_hyper(largo_algo algo, const char *set)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algo));
    test_hyper_set(&h, set);
    return h;
}

/* MERIT takes no more than two dimensions as yet. */
static int is_taken(const largo_hyper *hyper, int which)
{
    return hyper->algo != LARGO_MERIT || specs[which].ndim <= 2;
}

static void open_world(world *w, int n, const largo_hyper *hyper, int object)
{
    memset(w, 0, sizeof *w);
    w->n = n;
    w->hyper = *hyper;
    for (int r = 0; r < n; r++) {
        rank *me = &w->rank[r];
        me->ctx = test_ctx(1 + r % 3);
        for (int i = 0; i < PARAMS; i++)
            if ((specs[i].placement != LARGO_LOCAL || i % n == r) && is_taken(hyper, i))
                add(w, r, i);
        if (!object) continue;
        assert_ok(largo_optim_create(me->ctx, &me->optim));
        assert_ok(largo_optim_add_group(me->optim, hyper, me->n, me->params, NULL));
    }
}

static int is_shared_state(const rank *first, const float *state)
{
    for (size_t i = 0; i < first->n; i++)
        for (int k = 0; k < SLOTS; k++)
            if (first->state[i][k] == state) return 1;
    return 0;
}

/* From the last rank on: the first one's memory is in the others. */
static void close_world(world *w)
{
    for (int r = w->n - 1; r >= 0; r--) {
        rank *me = &w->rank[r];
        for (size_t i = 0; i < me->n; i++) {
            const rank *first = me->is_owner[i] ? NULL : &w->rank[0];
            for (int k = 0; k < SLOTS; k++)
                if (!first || !is_shared_state(first, me->state[i][k])) free(me->state[i][k]);
            if (first) continue;
            free(me->value[i]);
            free(me->grad[i]);
        }
        largo_optim_destroy(me->optim);
        largo_ctx_destroy(me->ctx);
    }
}

/* Gradients of step t, and which parameters have one. */
static void set_gradients(world *w, int t, float bad)
{
    for (int r = 0; r < w->n; r++) {
        rank *me = &w->rank[r];
        for (size_t i = 0; i < me->n; i++) {
            const int which = me->which[i];
            const size_t n = (size_t)numel(&specs[which]);
            if (me->is_owner[i])
                test_fill(me->grad[i], n, (uint64_t)(1000 * t + which), -2, 3 + which);
            if (bad != 0.0f && which == 3) me->grad[i][n - 1] = bad;
            const int64_t offset = me->shards[i].offset;
            me->params[i].grad.data = specs[which].no_grad_at == t ? NULL : me->grad[i] + offset;
        }
        if (me->optim) assert_ok(largo_optim_rebind(me->optim, 0, me->n, me->params));
    }
}

/* ---- reducing ---- */

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

/* In a random order of ranks, and what each rank sends is its own memory. */
static void reduce(const largo_reduction each[], int n, unsigned *seed)
{
    int order[MOST_RANKS];
    shuffle(order, n, seed);
    const size_t count = each[0].n;
    for (size_t i = 0; i < count; i++) {
        int64_t sum = 0;
        uint32_t max = 0;
        double slots = 0.0;
        for (int k = 0; k < n; k++) {
            const void *values = each[order[k]].values;
            if (each[0].dtype == LARGO_I64) sum += ((const int64_t *)values)[i];
            if (each[0].dtype == LARGO_F64) slots += ((const double *)values)[i];
            const uint32_t x = each[0].dtype == LARGO_U32 ? ((const uint32_t *)values)[i] : 0;
            if (x > max) max = x;
        }
        for (int k = 0; k < n; k++) {
            if (each[0].dtype == LARGO_I64) ((int64_t *)each[k].values)[i] = sum;
            if (each[0].dtype == LARGO_F64) ((double *)each[k].values)[i] = slots;
            if (each[0].dtype == LARGO_U32) ((uint32_t *)each[k].values)[i] = max;
        }
    }
}

static largo_status round_of(world *w, int r, int64_t t, int32_t round, largo_reduction *out)
{
    rank *me = &w->rank[r];
    if (me->optim) return largo_optim_step_round(me->optim, round, out);
    return largo_step_round(me->ctx, &w->hyper, t, me->n, me->params, round, out);
}

/* One step of all ranks; every rank must say the same. Returns the number of reductions. */
static int step(world *w, int64_t t, largo_status expected, unsigned *seed)
{
    for (int32_t round = 0;; round++) {
        largo_reduction each[MOST_RANKS] = {0};
        for (int r = 0; r < w->n; r++) {
            const largo_status status = round_of(w, r, t, round, &each[r]);
            assert_int_equal(each[r].n, each[0].n);
            assert_status(each[r].n ? LARGO_OK : expected, status);
            if (!each[r].n) continue;
            assert_int_equal(each[r].dtype, each[0].dtype);
            assert_int_equal(each[r].op, each[0].dtype == LARGO_U32 ? LARGO_MAX : LARGO_SUM);
        }
        if (!each[0].n) return round;
        reduce(each, w->n, seed);
    }
}

/* ---- comparing ---- */

static void compare_param(const world *w, int r, size_t i, const rank *one)
{
    const rank *me = &w->rank[r];
    const int which = me->which[i];
    size_t k = 0; /* the one rank lists all, in order */
    while (one->which[k] != which) k++;
    const size_t n = (size_t)numel(&specs[which]);
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

static void compare(const world *w, const world *single)
{
    largo_outcome a = {.struct_size = sizeof a}, b = {.struct_size = sizeof b};
    assert_ok(largo_last_outcome(single->rank[0].ctx, &a));
    for (int r = 0; r < w->n; r++) {
        assert_ok(largo_last_outcome(w->rank[r].ctx, &b));
        assert_memory_equal(&a.grad_norm, &b.grad_norm, sizeof a.grad_norm);
        assert_memory_equal(&a.clip, &b.clip, sizeof a.clip);
        for (size_t i = 0; i < w->rank[r].n; i++) compare_param(w, r, i, &single->rank[0]);
    }
}

static const struct options {
    largo_algo algo;
    const char *set;
} options[] = {
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

static void run(const struct options *o, int n, int object, unsigned seed)
{
    const largo_hyper hyper = make_hyper(o->algo, o->set);
    world one, many;
    open_world(&one, 1, &hyper, 0);
    open_world(&many, n, &hyper, object);
    for (int t = 1; t <= STEPS; t++) {
        set_gradients(&one, t, 0.0f);
        set_gradients(&many, t, 0.0f);
        const int rounds = step(&one, t, LARGO_OK, &seed);
        assert_int_equal(step(&many, t, LARGO_OK, &seed), rounds);
        compare(&many, &one);
    }
    close_world(&one);
    close_world(&many);
}

static void bits_of_one_rank(void **state)
{
    (void)state;
    static const int worlds[] = {1, 2, 3, 5, 8};
    for (size_t o = 0; o < sizeof options / sizeof *options; o++)
        for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
            run(&options[o], worlds[i], (o + i) % 2 == 1, (unsigned)(7 * o + i));
}

/* What is in parts, all of which are here, as one tensor. */
static void make_whole(largo_param *p, int which)
{
    largo_tensor t = tensor(&specs[which]);
    p->shard = NULL;
    t.data = p->value.data;
    p->value = t;
    t.data = p->grad.data;
    p->grad = t;
}

/* The one rank by rounds is the plain step. */
static void rounds_are_a_step(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (size_t o = 0; o < sizeof options / sizeof *options; o++) {
        const largo_hyper hyper = make_hyper(options[o].algo, options[o].set);
        world a, b;
        open_world(&a, 1, &hyper, 0);
        open_world(&b, 1, &hyper, 0);
        for (int t = 1; t <= STEPS; t++) {
            set_gradients(&a, t, 0.0f);
            set_gradients(&b, t, 0.0f);
            rank *plain = &b.rank[0];
            for (size_t i = 0; i < plain->n; i++) make_whole(&plain->params[i], plain->which[i]);
            step(&a, t, LARGO_OK, &seed);
            assert_ok(largo_step(plain->ctx, &hyper, t, plain->n, plain->params));
            compare(&a, &b);
        }
        close_world(&a);
        close_world(&b);
    }
}

/* A bad value on the last rank: all skip, nothing is written, and only that rank knows where. */
static void all_skip_together(void **state)
{
    (void)state;
    unsigned seed = 3;
    for (int n = 1; n <= 5; n += 2) {
        const largo_hyper hyper = make_hyper(LARGO_LAMB, "");
        world w, before;
        open_world(&w, n, &hyper, 0);
        open_world(&before, 1, &hyper, 0);
        set_gradients(&w, 1, NAN);
        step(&w, 1, LARGO_SKIPPED, &seed);
        for (int r = 0; r < n; r++) {
            largo_outcome o = {.struct_size = sizeof o};
            assert_ok(largo_last_outcome(w.rank[r].ctx, &o));
            assert_int_equal(o.skipped, 1);
            assert_int_equal(o.bad_param, r == n - 1 ? 3 : -1);
            for (size_t i = 0; i < w.rank[r].n; i++) compare_param(&w, r, i, &before.rank[0]);
        }
        close_world(&w);
        close_world(&before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_one_rank),
        cmocka_unit_test(rounds_are_a_step),
        cmocka_unit_test(all_skip_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
