/* support.c - see support.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
/* By memcpy: gcc makes use of it that floats may not be read as u64. */
#define XXH_FORCE_MEMORY_ACCESS 0
#include <xxhash.h>
#include "support.h"
#include "core/context.h"
#include "cpu/layout.h"

largo_ctx *test_ctx_of(const largo_ctx_options *given)
{
    largo_ctx_options options = *given;
    const char *backend = getenv("LARGO_TEST_BACKEND");
    options.backend =
        backend && strcmp(backend, "cuda") == 0 ? LARGO_BACKEND_CUDA : LARGO_BACKEND_CPU;
    largo_ctx *ctx;
    const largo_status status = largo_ctx_create(&options, &ctx);
    if (status == LARGO_ERR_UNSUPPORTED) {
        fprintf(stderr, "skipped: %s\n", largo_last_error());
        exit(77);
    }
    assert_ok(status);
    return ctx;
}

largo_ctx *test_ctx(int threads)
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = threads;
    return test_ctx_of(&options);
}

static largo__backend cached; /* the CPU backend, but for its plan */
static size_t cache;

static largo_status plan_with_cache(largo_ctx *ctx, largo__plan *plan)
{
    size_t bytes;
    plan->backend = largo__layout_make(ctx, plan, (size_t)ctx->options.threads, cache, &bytes);
    return plan->backend ? LARGO_OK : LARGO_ERR_MEMORY;
}

void test_set_cache(largo_ctx *ctx, size_t bytes)
{
    cached = *ctx->backend;
    cached.plan = plan_with_cache;
    cache = bytes;
    ctx->backend = &cached;
}

void test_assert_status(largo_status status, largo_status expected, const char *call,
                        const char *file, int line)
{
    if (status == expected) return;
    print_error("%s: %s, expected %s\n  %s\n", call, largo_status_name(status),
                largo_status_name(expected), largo_last_error());
    _fail(file, line);
}

void test_assert_contains(const char *string, const char *part, const char *file, int line)
{
    if (strstr(string, part)) return;
    print_error("\"%s\" does not hold \"%s\"\n", string, part);
    _fail(file, line);
}

int64_t test_numel(const largo_tensor *tensor)
{
    int64_t n = 1;
    for (int32_t d = 0; d < tensor->ndim; d++) n *= tensor->shape[d];
    return n;
}

void test_fill(float *out, size_t n, uint64_t seed, int exponent, int spread)
{
    uint64_t s = seed;
    for (size_t i = 0; i < n; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        const double x = (double)((int64_t)(s >> 40) - 8388608) * 0x1p-23;
        out[i] = (float)ldexp(x, exponent - (int)(i % (size_t)spread));
    }
}

float *test_floats(size_t n)
{
    const size_t bytes = (n * sizeof(float) + 63) / 64 * 64 + 64;
    float *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    return memory;
}

uint64_t test_hash(uint64_t seed, const float *x, size_t n)
{
    enum { BLOCK = 1024 };
    float block[BLOCK];
    XXH64_hash_t hash = seed;
    for (size_t at = 0; at < n; at += BLOCK) {
        const size_t m = n - at < BLOCK ? n - at : BLOCK;
        for (size_t i = 0; i < m; i++) block[i] = isnan(x[at + i]) ? NAN : x[at + i];
        hash = XXH3_64bits_withSeed(block, m * sizeof *block, hash);
    }
    return hash;
}

uint64_t test_hash_doubles(const double *x, size_t n)
{
    return XXH3_64bits(x, n * sizeof *x);
}

const char *const *test_isas(void)
{
    static const char *names[16];
    static largo_capability list[32];
    size_t n, found = 0;
    assert_ok(largo_capabilities(32, list, &n));
    for (size_t i = 0; i < n && i < 32; i++)
        if (strcmp(list[i].kind, "isa") == 0 && list[i].available) names[found++] = list[i].name;
    names[found] = NULL;
    return names;
}

void test_hyper_set(largo_hyper *hyper, const char *fields)
{
    char name[40];
    double x;
    int k;
    for (const char *at = fields; sscanf(at, " %39[^=]=%lf%n", name, &x, &k) == 2; at += k)
        assert_ok(largo_hyper_set(hyper, name, x));
}

largo_hyper test_hyper(largo_algo algo, const char *fields)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algo));
    test_hyper_set(&h, fields);
    return h;
}

void test_close(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want))) fail_msg("%.9g, not %.9g", got, want);
}

void test_near(int n, const float got[], const double want[])
{
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 1e-6 * fmax(1e-3, fabs(want[i]))))
            fail_msg("[%d] is %.9g, not %.9g", i, (double)got[i], want[i]);
}

double test_distance(const float *x, const float *y, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - (y ? (double)y[i] : 0.0);
        sum += d * d;
    }
    return sqrt(sum);
}
