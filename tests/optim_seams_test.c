/* labels: oracle short every-isa
 *
 * Sizes at the seams of chunks, waves, tiles and threads against the reference of
 * support_probe.h, whose error bounds count roundings. The step on 1, 2, 3 and 7 threads, with
 * GRAD_SCRATCH and without, must agree to the bit; without it the gradient is not written.
 *
 * LAMB and LARS have lr 0.5: half of p moves, so an error of the trust ratio is seen in p
 * undiminished. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support_probe.h"

/* The library asks for the last-level cache when a context is made; a small one makes many waves.
 */
static long cache_bytes;
long sysconf(int name)
{
    static long (*real)(int);
    if (name == _SC_LEVEL3_CACHE_SIZE && cache_bytes) return cache_bytes;
    if (!real) {
        void *found = dlsym(RTLD_NEXT, "sysconf");
        memcpy(&real, &found, sizeof real);
    }
    return real(name);
}

static int is_slow(void)
{
    const char *isa = getenv("LARGO_ISA");
    return isa && strcmp(isa, "scalar") == 0;
}

static largo_hyper hyper(largo_algo algo)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algo));
    h.weight_decay = 0.125;
    h.lr = algo == LARGO_LAMB || algo == LARGO_LARS ? 0.5 : 0.0625;
    return h;
}

/* Every family of passes, but two of LARS without momentum that optim_lars_test.c has. */
enum { FAMILIES = 16, LARS = 10 };
static largo_hyper family(int i)
{
    static const largo_algo algo[FAMILIES] = {LARGO_SGD,  LARGO_SGD,  LARGO_SGD,  LARGO_ADAMW,
                                              LARGO_LAMB, LARGO_LAMB, LARGO_LAMB, LARGO_LAMB,
                                              LARGO_LAMB, LARGO_CAME, LARGO_LARS, LARGO_LARS,
                                              LARGO_LARS, LARGO_LARS, LARGO_LARS, LARGO_LARS};
    static const char *const lars[] = {"",
                                       "denominator=2 velocity=2 nesterov=1",
                                       "denominator=3 velocity=3 nesterov=1",
                                       "momentum=0",
                                       "momentum=0 denominator=3 velocity=3 clip_threshold=0.0625",
                                       "adapt=3 velocity=3 clip_threshold=0.0625"};
    largo_hyper h = hyper(algo[i]);
    if (i == 1) h.momentum = 0.9, h.dampening = 0.25;
    if (i == 2) h.momentum = 0.9, h.nesterov = LARGO_ON;
    if (i == 5 || i == 7) h.l2 = LARGO_ON;
    if (i == 6 || i == 7) h.adapt = LARGO_ADAPT_NEVER;
    if (i == 8) h.grad_averaging = LARGO_OFF, h.weight_decay = 0.0;
    if (i < LARS) return h;
    h.trust_coefficient = 1.0;
    test_hyper_set(&h, lars[i - LARS]);
    return h;
}

/* ---- one step of some probes ---- */

static void step(int threads, uint32_t flags, size_t groups, const largo_hyper h[], size_t n,
                 probe q[])
{
    enum { MOST = 18 };
    largo_param params[MOST];
    assert_true(n <= MOST);
    largo_ctx *ctx = test_ctx(threads);
    largo_optim *optim = NULL;
    for (size_t i = 0; i < n; i++) {
        probe_reset(&q[i]);
        params[i] = probe_param(&q[i], flags);
    }
    if (groups == 1) {
        assert_ok(largo_step(ctx, h, 1, n, params));
    } else {
        assert_ok(largo_optim_create(ctx, &optim));
        for (size_t g = 0, at = 0; g < groups; g++) {
            size_t m = 0;
            while (at + m < n && q[at + m].group == g) m++;
            assert_ok(largo_optim_add_group(optim, &h[g], m, &params[at], NULL));
            at += m;
        }
        assert_ok(largo_optim_step(optim));
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(q[i].step, PROBE_STEP);
        if (!flags) assert_memory_equal(q[i].g, q[i].g0, q[i].n * sizeof(float));
    }
    largo_optim_destroy(optim);
    largo_ctx_destroy(ctx);
}

static uint64_t hash(size_t n, const probe q[])
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++) all = probe_hash(all, &q[i]);
    return all;
}

typedef struct way {
    int threads;
    uint32_t flags;
} way;

/* In order of interest: the first three do for few elements, which one thread takes anyway; only
 * LAMB makes use of GRAD_SCRATCH, others shall ignore it. */
enum { S = LARGO_PARAM_GRAD_SCRATCH, FEW = 3, OTHERS = 5, ALL = 8 };
static const way ways[ALL] = {{1, 0}, {1, S}, {7, 0}, {2, 0}, {3, S}, {3, 0}, {2, S}, {7, S}};

static void check(size_t groups, const largo_hyper h[], size_t n, probe q[])
{
    const double norm = probe_norm(n, q), max = h[0].max_grad_norm;
    size_t elements = 0;
    for (size_t k = 0; k < n; k++) elements += q[k].n;
    const int runs = elements < 16000 ? FEW : h[0].algo == LARGO_LAMB ? ALL : OTHERS;
    uint64_t first = 0;
    for (int i = 0; i < runs; i++) {
        step(ways[i].threads, ways[i].flags, groups, h, n, q);
        if (i == 0) {
            first = hash(n, q);
            for (size_t k = 0; k < n; k++)
                probe_check(&q[k], &h[q[k].group], norm > max ? max / norm : 1.0);
        }
        if (hash(n, q) == first) continue;
        fail_msg("algorithm %d, n %zu: %d threads%s give other bits than 1", (int)h[0].algo, q[0].n,
                 ways[i].threads, ways[i].flags ? " with GRAD_SCRATCH" : "");
    }
}

static void check_one(const largo_hyper *h, int32_t ndim, const int64_t shape[], int32_t segments,
                      uint32_t flags, content what)
{
    probe q;
    probe_open(&q, h, ndim, shape, segments, flags);
    probe_fill(&q, what, 11);
    check(1, h, 1, &q);
    probe_close(&q);
}

/* ---- tests ---- */

static void sizes(void **state)
{
    (void)state;
    static const int64_t all[] = {1,     2,     127,   128,    129,    4095,  4096,
                                  4097,  8191,  8192,  8193,   12289,  32767, 32768,
                                  32769, 36864, 61441, 262144, 262145, 524287};
    for (int f = 0; f < FAMILIES; f++) {
        const largo_hyper h = family(f);
        const size_t n = sizeof all / sizeof *all - (is_slow() || f > LARS + 1 ? 3 : 0);
        for (size_t i = 0; i < n; i++) check_one(&h, 1, &all[i], 0, 0, NORMAL);
    }
}

static void contents(void **state)
{
    (void)state;
    static const int64_t all[] = {100, 12288, 20000, 40000};
    for (int f = 0; f < FAMILIES; f++) {
        const largo_hyper h = family(f);
        for (int what = ZERO_CHUNK; what <= TINY; what++)
            for (int i = 0; i < 4; i++) check_one(&h, 1, &all[i], 0, 0, (content)what);
    }
}

static const int64_t shapes[][3] = {
    {257, 4097}, {513, 130},    {1, 4097},    {4097, 1},    {1, 1},       {31, 129},
    {32, 128},   {33, 127},     {255, 33},    {256, 128},   {257, 128},   {2, 40000},
    {3, 5, 7},   {3, 300, 150}, {70, 33, 20}, {1000, 3, 3}, {300, 1, 200}};

static int32_t rank(const int64_t shape[3])
{
    return shape[2] ? 3 : 2;
}

static void matrices(void **state)
{
    (void)state;
    const largo_hyper came = family(9), lamb = family(4), lars = family(LARS + 1);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check_one(&came, rank(shapes[i]), shapes[i], 0, 0, NORMAL);
        if (i >= 3 && rank(shapes[i]) == 2) continue;
        check_one(&lamb, rank(shapes[i]), shapes[i], 0, 0, NORMAL);
        check_one(&lars, rank(shapes[i]), shapes[i], 0, 0, NORMAL);
    }
}

/* Trap T4 is ZERO_LINES_BIG: a row and a column without gradient beside 2^30. */
static void matrix_contents(void **state)
{
    (void)state;
    static const int64_t some[][3] = {{40, 300}, {513, 130}, {3, 5, 7}, {3, 300, 150}};
    const largo_hyper h = family(9);
    for (int i = 0; i < 4; i++)
        for (int what = ZERO_CHUNK; what <= ZERO_LINES_BIG; what++)
            check_one(&h, rank(some[i]), some[i], 0, 0, (content)what);
}

/* Many small segments, few large ones, and flags. */
static void segments(void **state)
{
    (void)state;
    static const int64_t shape[][3] = {{3000, 17}, {8, 5000}, {4, 40000}, {12, 50, 30}, {5120}};
    static const int32_t cuts[] = {3000, 8, 4, 3, 5};
    static const int families[] = {3, 4, 5, 9, LARS + 2};
    for (int f = 0; f < 5; f++)
        for (int i = 0; i < 5; i++) {
            const largo_hyper h = family(families[f]);
            const int32_t ndim = i == 4 ? 1 : rank(shape[i]);
            check_one(&h, ndim, shape[i], cuts[i], 0, NORMAL);
            check_one(&h, ndim, shape[i], cuts[i], LARGO_PARAM_NO_DECAY, ZERO_CHUNK);
            check_one(&h, ndim, shape[i], cuts[i], LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST,
                      NORMAL);
        }
}

/* The scan and the clip see every element too. */
static void clipped(void **state)
{
    (void)state;
    static const int64_t all[] = {100, 4097, 32769, 50000};
    for (int f = 1; f < FAMILIES; f += 2)
        for (int i = 0; i < 4; i++) {
            largo_hyper h = family(f);
            h.max_grad_norm = 0.5;
            check_one(&h, 1, &all[i], 0, 0, NORMAL);
            const int64_t shape[2] = {all[i] / 50, 50};
            check_one(&h, 2, shape, 0, 0, NORMAL);
        }
}

/* Waves of a cache of 1 MiB: 98304 elements. The third tensor is larger than a wave and has its
 * direction made again; small ones lie between. */
static void waves(void **state)
{
    (void)state;
    static const int64_t all[] = {40000, 50000, 120001, 7,     98304,
                                  33000, 32769, 60000,  32768, 98305};
    enum { N = sizeof all / sizeof *all };
    cache_bytes = 1 << 20;
    for (int f = 3; f < LARS + 3; f++) {
        const largo_hyper h = family(f);
        probe q[N];
        for (size_t i = 0; i < N; i++) {
            probe_open(&q[i], &h, 1, &all[i], 0, i == 5 ? LARGO_PARAM_NO_TRUST : 0);
            probe_fill(&q[i], i == 6 ? ZERO_CHUNK : NORMAL, 20 + i);
        }
        check(1, &h, N, q);
        for (size_t i = 0; i < N; i++) probe_close(&q[i]);
    }
    cache_bytes = 0;
}

/* All algorithms in one step of the object, in waves: their phases must not meet. */
static void together(void **state)
{
    (void)state;
    static const int64_t shape[][2] = {{90000, 1}, {300, 1}, {300, 200}, {20, 30}};
    enum { GROUPS = 6 };
    static const int order[GROUPS] = {9, 4, 3, 2, LARS, 5};
    largo_hyper h[GROUPS];
    probe q[3 * GROUPS];
    size_t n = 0;
    cache_bytes = 1 << 20;
    for (size_t g = 0; g < GROUPS; g++) {
        h[g] = family(order[g]);
        for (int i = 0; i < 3; i++, n++) {
            const int64_t *s = shape[(g + (size_t)i) % 4];
            probe_open(&q[n], &h[g], s[1] == 1 ? 1 : 2, s, 0, 0);
            probe_fill(&q[n], NORMAL, 50 + n);
            q[n].group = g;
        }
    }
    check(GROUPS, h, n, q);
    for (size_t i = 0; i < n; i++) probe_close(&q[i]);
    cache_bytes = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),           cmocka_unit_test(contents), cmocka_unit_test(matrices),
        cmocka_unit_test(matrix_contents), cmocka_unit_test(segments), cmocka_unit_test(clipped),
        cmocka_unit_test(waves),           cmocka_unit_test(together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
