/* labels: bits short
 *
 * The promise of the library: the same inputs give the same bits. One hash of values and state for
 * each (options, shapes) in golden/bits.txt, which every instruction set that is here, number of
 * threads, entry and order of work must meet.
 *
 * LARGO_ISA restricts it to one instruction set. LARGO_BITS_WRITE=path writes hashes to that file
 * instead of comparing them; all ways must still agree. A change of bits is reviewed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support_guest.h"
#include "support_options.h"
#include "optim/families.h"

typedef struct shape {
    int32_t segments, ndim;
    int64_t d[4];
} shape;

static const shape small[] = {
    {0, 1, {1}},    {0, 1, {31}},         {0, 1, {32}},     {0, 1, {33}},
    {0, 1, {127}},  {0, 1, {128}},        {0, 1, {129}},    {0, 1, {1000}},
    {0, 1, {4095}}, {0, 1, {4097}},       {0, 2, {33, 7}},  {0, 0, {0}},
    {0, 1, {0}},    {0, 4, {3, 5, 7, 9}}, {0, 2, {1, 300}}, {0, 2, {300, 1}},
};
static const shape middle[] = {
    {0, 1, {32768}},    {0, 1, {32769}},   {0, 1, {65537}},
    {0, 2, {257, 769}}, {0, 2, {3, 8191}}, {0, 2, {50, 4097}},
};
static const shape segmented[] = {
    {4, 2, {4, 1000}}, {3, 2, {96, 769}},       {2, 1, {66000}}, {2, 3, {4, 35, 300}},
    {3, 2, {3, 5}},    {2, 4, {2, 3, 130, 70}}, {7, 1, {700}},
};
static const shape huge[] = {{0, 1, {1000003}}};

typedef struct shape_set {
    const char *name;
    const shape *shape;
    size_t n;
    int64_t steps;
} shape_set;
static const shape_set sets[] = {
    {"small", small, sizeof small / sizeof *small, 3},
    {"middle", middle, sizeof middle / sizeof *middle, 2},
    {"segments", segmented, sizeof segmented / sizeof *segmented, 2},
    {"huge", huge, 1, 2},
};
enum { SETS = 4, MOST_STEPS = 3, MOST_TENSORS = 16 };

static void reversed(void *user, size_t n, void (*body)(void *arg, size_t i), void *arg)
{
    (void)user;
    while (n--) body(arg, n);
}

static const struct way {
    int threads, object, scratch;
    largo_parallel_fn *parallel; /* NULL: OpenMP */
    size_t cache; /* 0: the machine's. Small: many waves, and directions made again */
    int for_huge;
} ways[] = {
    {1, 0, 0, NULL, 0, 1},           {2, 0, 1, NULL, 0, 0},       {3, 0, 0, NULL, 1 << 20, 0},
    {7, 0, 0, NULL, 0, 0},           {2, 1, 0, NULL, 0, 0},       {3, 1, 1, guest_pool_run, 0, 1},
    {7, 0, 1, reversed, 0, 0},       {2, 0, 0, NULL, 1 << 14, 0}, {1, 1, 1, NULL, 1 << 14, 0},
    {3, 1, 0, reversed, 1 << 20, 0},
};
enum { WAYS = sizeof ways / sizeof *ways };

static guest_pool pool; /* of three threads */

static largo_ctx *make_ctx(const struct way *way)
{
    largo_ctx_options o = LARGO_CTX_OPTIONS;
    o.threads = way->threads;
    o.parallel = way->parallel;
    o.parallel_user = &pool;
    largo_ctx *ctx;
    assert_ok(largo_ctx_create(&o, &ctx));
    if (way->cache) test_set_cache(ctx, way->cache);
    return ctx;
}

static int64_t numel(const shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->ndim; d++) n *= s->d[d];
    return n;
}

/* Exponents far apart, so that chunks need a second look; a chunk of zeros; subnormals. */
static void fill(float *x, size_t n, uint64_t seed, size_t tensor, int is_grad)
{
    static const int grads[5][2] = {{0, 7}, {-66, 5}, {58, 9}, {-3, 3}, {20, 60}};
    static const int values[3][2] = {{0, 3}, {-58, 3}, {52, 4}};
    const int *how = is_grad ? grads[tensor % 5] : values[tensor % 3]; /* exponent, spread */
    test_fill(x, n, seed, how[0], how[1]);
    for (size_t i = 0; i < n; i++) {
        if (tensor % 5 == 3 && i % 7 == 2) x[i] = ldexpf((float)(i % 97) - 48.0f, -145);
        if (is_grad && i / 4096 == 1) x[i] = 0.0f;
        if (!is_grad && i / 4096 == 2) x[i] = 0.0f;
    }
}

typedef struct inputs {
    size_t total;
    float *value, *grad[MOST_STEPS];
} inputs;

static inputs make_inputs(const shape_set *set)
{
    inputs in = {0};
    for (size_t i = 0; i < set->n; i++) in.total += (size_t)numel(&set->shape[i]);
    in.value = test_floats(in.total);
    for (int64_t t = 0; t < set->steps; t++) in.grad[t] = test_floats(in.total);
    size_t at = 0;
    for (size_t i = 0; i < set->n; i++) {
        const size_t n = (size_t)numel(&set->shape[i]);
        fill(in.value + at, n, 1000 + i, i, 0);
        for (int64_t t = 0; t < set->steps; t++)
            fill(in.grad[t] + at, n, 2000 + 50 * (uint64_t)t + i, i, 1);
        at += n;
    }
    return in;
}

typedef struct run {
    largo_hyper hyper;
    size_t n;
    largo_param params[MOST_TENSORS];
    float *value, *grad, *state;
} run;

static void make_run(run *r, const test_option *o, const shape_set *set, const inputs *in,
                     const struct way *way)
{
    memset(r, 0, sizeof *r);
    r->hyper = test_option_hyper(o);
    r->n = set->n;
    r->value = test_floats(in->total);
    r->grad = test_floats(in->total);
    r->state = test_floats(5 * in->total + 1024);
    memcpy(r->value, in->value, in->total * sizeof(float));
    size_t at = 0;
    for (size_t i = 0; i < set->n; i++) {
        const shape *s = &set->shape[i];
        largo_tensor t = {r->value + at, LARGO_F32, s->ndim, {s->d[0], s->d[1], s->d[2], s->d[3]}};
        if (o->algo == LARGO_MERIT && t.ndim > 2) { /* takes no more */
            t.shape[1] = numel(s) / t.shape[0];
            t.ndim = 2;
        }
        r->params[i].value = t;
        t.data = r->grad + at;
        r->params[i].grad = t;
        r->params[i].segments = s->segments;
        r->params[i].flags = o->flags | (way->scratch ? LARGO_PARAM_GRAD_SCRATCH : 0);
        at += (size_t)numel(s);
    }
}

static void give_state(run *r)
{
    float *next = r->state;
    for (size_t i = 0; i < r->n; i++) {
        largo_slot slots[LARGO_MAX_SLOTS];
        size_t n;
        assert_ok(largo_slots(&r->hyper, &r->params[i], slots, &n));
        for (size_t s = 0; s < n; s++) {
            r->params[i].state[s] = next;
            next += slots[s].bytes / sizeof(float);
        }
    }
}

static uint64_t hash_run(const run *r, const shape_set *set, largo_optim *optim)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < r->n; i++) {
        const size_t numel_i = (size_t)numel(&set->shape[i]);
        const float *value = r->params[i].value.data;
        size_t odd = 0, n;
        for (size_t e = 0; e < numel_i; e++) odd += isfinite(value[e]) ? 0 : 1;
        assert_int_equal(odd, 0);
        hash = test_hash(hash, value, numel_i);
        largo_slot slots[LARGO_MAX_SLOTS];
        assert_ok(largo_slots(&r->hyper, &r->params[i], slots, &n));
        for (size_t s = 0; s < n; s++) {
            largo_tensor view = {.data = r->params[i].state[s]};
            if (optim) assert_ok(largo_optim_slot(optim, 0, i, slots[s].name, &view));
            hash = test_hash(hash, view.data, slots[s].bytes / sizeof(float));
        }
    }
    return hash;
}

static uint64_t compute(largo_ctx *ctx, const test_option *o, const shape_set *set,
                        const inputs *in, const struct way *way)
{
    run r;
    make_run(&r, o, set, in, way);
    largo_optim *optim = NULL;
    if (way->object) {
        assert_ok(largo_optim_create(ctx, &optim));
        assert_ok(largo_optim_add_group(optim, &r.hyper, r.n, r.params, NULL));
    } else {
        give_state(&r);
    }
    for (int64_t t = 0; t < set->steps; t++) {
        memcpy(r.grad, in->grad[t], in->total * sizeof(float));
        assert_ok(optim ? largo_optim_step(optim)
                        : largo_step(ctx, &r.hyper, t + 1, r.n, r.params));
        if (!way->scratch) assert_false(memcmp(r.grad, in->grad[t], in->total * sizeof(float)));
    }
    const uint64_t hash = hash_run(&r, set, optim);
    largo_optim_destroy(optim);
    free(r.value);
    free(r.grad);
    free(r.state);
    return hash;
}

static uint64_t golden[TEST_OPTIONS][SETS];
static int known[TEST_OPTIONS][SETS], wrong;

static void read_golden(void)
{
    FILE *file = fopen(LARGO_GOLDEN "/bits.txt", "r");
    assert_non_null(file);
    char line[200], name[80], set[20];
    uint64_t hash;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%79s %19s %" SCNx64, name, set, &hash) != 3 || *name == '#') continue;
        int o = 0, s = 0;
        while (o < TEST_OPTIONS && strcmp(test_options[o].name, name) != 0) o++;
        while (s < SETS && strcmp(sets[s].name, set) != 0) s++;
        if (o == TEST_OPTIONS || s == SETS) fail_msg("nobody computes %s %s", name, set);
        golden[o][s] = hash;
        known[o][s] = 1;
    }
    fclose(file);
}

static void write_golden(const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "# options, shape set, hash of values and state; made by tests/bits_test.c\n");
    for (int o = 0; o < TEST_OPTIONS; o++)
        for (int s = 0; s < SETS; s++)
            fprintf(file, "%s %s %016" PRIx64 "\n", test_options[o].name, sets[s].name,
                    golden[o][s]);
    fclose(file);
}

static void check(int o, int s, const char *isa, int w, uint64_t hash)
{
    if (!known[o][s] && getenv("LARGO_BITS_WRITE")) golden[o][s] = hash, known[o][s] = 1;
    if (!known[o][s])
        fail_msg("golden/bits.txt has no line %s %s", test_options[o].name, sets[s].name);
    if (hash == golden[o][s]) return;
    if (wrong++ < 20)
        print_error("%s, %s, %s, ways[%d]: %016" PRIx64 ", not %016" PRIx64 "\n",
                    test_options[o].name, sets[s].name, isa, w, hash, golden[o][s]);
}

/* Under an emulator, which takes a hundred times as long: only so many of the ways. */
static int n_ways(void)
{
    const char *most = getenv("LARGO_BITS_WAYS");
    return most && atoi(most) > 0 && atoi(most) < WAYS ? atoi(most) : WAYS;
}

static void one_isa(const char *isa, const inputs in[])
{
    setenv("LARGO_ISA", isa, 1);
    for (int w = 0; w < n_ways(); w++) {
        largo_ctx *ctx = make_ctx(&ways[w]);
        for (int s = 0; s < SETS; s++)
            for (int o = 0; o < TEST_OPTIONS; o++) {
                if (sets[s].shape == huge && !ways[w].for_huge) continue;
                check(o, s, isa, w, compute(ctx, &test_options[o], &sets[s], &in[s], &ways[w]));
            }
        largo_ctx_destroy(ctx);
    }
}

static void same_bits_in_every_way(void **state)
{
    (void)state;
    char only[16] = "";
    if (getenv("LARGO_ISA")) strncpy(only, getenv("LARGO_ISA"), sizeof only - 1);
    const char *path = getenv("LARGO_BITS_WRITE");
    largo_ctx_destroy(test_ctx(1)); /* skips if LARGO_ISA is not here */
    if (!path) read_golden();
    guest_pool_open(&pool, 3);
    static inputs in[SETS]; /* kept to the end */
    for (int s = 0; s < SETS; s++) in[s] = make_inputs(&sets[s]);
    for (const char *const *isa = test_isas(); *isa; isa++)
        if (!*only || strcmp(only, *isa) == 0) {
            one_isa(*isa, in);
            print_message("compared: %s, in %d of %d ways\n", *isa, n_ways(), WAYS);
        }
    guest_pool_close(&pool);
    if (wrong) fail_msg("%d hashes differ", wrong);
    if (path) write_golden(path);
}

/* A row added to optim/algos.def needs a line here. */
static void every_family_has_a_line(void **state)
{
    (void)state;
    int seen[LARGO__FAMILIES] = {0};
    seen[LARGO__FAMILY_scan] = 1; /* part of every step but adamw/unscanned */
    for (int o = 0; o < TEST_OPTIONS; o++)
        for (int32_t ndim = 1; ndim <= 2; ndim++) {
            const largo_hyper h = test_option_hyper(&test_options[o]);
            const largo__family *f = largo__family_of(&h, test_options[o].flags, ndim);
            for (; f; f = f->kept) seen[f - largo__families] = 1;
        }
    for (int f = 0; f < LARGO__FAMILIES; f++)
        if (!seen[f]) fail_msg("no options lead to family %s", largo__families[f].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family_has_a_line),
        cmocka_unit_test(same_bits_in_every_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
