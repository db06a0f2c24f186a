/* control.c - what loading, a context and steps leave as it was (H71): the floating-point control of the
 * thread, products of subnormals, the number of threads, the environment. Prints the control at the start
 * and a hash of results, which may not depend on it.
 *
 *   control LIBRARY */
#include "guest.h"
#include <xmmintrin.h>

extern char **environ;

/* Rounding, masks, FTZ and DAZ. The other bits are flags that arithmetic leaves. */
enum { CONTROL = 0xffc0, MASKS = 0x1f80 };

/* 1e-40f * 0.5f as bits, without traps: 35681 * 2^-149, which is 5e-41f, unless subnormals are flushed. */
static uint32_t product(void)
{
    const uint32_t tiny = 71362; /* 1e-40f */
    volatile float x;
    memcpy((void *)&x, &tiny, sizeof x);
    const unsigned control = _mm_getcsr();
    _mm_setcsr(control | MASKS);
    x = x * 0.5f;
    _mm_setcsr(control);
    uint32_t result;
    memcpy(&result, (const void *)&x, sizeof result);
    return result;
}

typedef struct surroundings {
    unsigned control;
    uint32_t product;
    int threads;
    uint64_t environment;
} surroundings;

static surroundings look(void)
{
    surroundings s = {_mm_getcsr() & CONTROL, product(), guest_threads(), 0};
    for (char **entry = environ; *entry; entry++)
        for (const char *c = *entry;; c++) {
            s.environment = (s.environment ^ (unsigned char)*c) * 1099511628211u;
            if (!*c) break;
        }
    return s;
}

static void same(surroundings then, int threads, const char *after)
{
    const surroundings now = look();
    REQUIRE(now.control == then.control, "MXCSR was %04x and is %04x after %s", then.control,
            now.control, after);
    REQUIRE(now.product == then.product, "1e-40 * 0.5 was %08x and is %08x after %s", then.product,
            now.product, after);
    REQUIRE(now.environment == then.environment, "the environment changed by %s", after);
    REQUIRE(now.threads <= then.threads + threads, "%d threads, and %d after %s", then.threads,
            now.threads, after);
}

/* Three steps from the start; the hash of values and state. */
static uint64_t three_steps(guest_work *w, largo_ctx *ctx)
{
    guest_fill(w->value, 1, 0, 128);
    for (size_t s = 0; s < w->slots; s++) memset(w->state[s], 0, w->bytes[s]);
    for (int64_t t = 1; t <= 3; t++)
        REQUIRE(guest.largo_step(ctx, &w->hyper, t, 1, &w->param) == LARGO_OK, "algorithm %d: %s",
                (int)w->hyper.algo, guest.largo_last_error());
    uint64_t hash = guest_hash(0, w->value, GUEST_N);
    for (size_t s = 0; s < w->slots; s++)
        hash = guest_hash(hash, w->state[s], w->bytes[s] / sizeof(uint32_t));
    return hash;
}

/* Every algorithm under one control, with one, two and three threads. */
static uint64_t run(unsigned control)
{
    static const largo_algo algo[] = {LARGO_SGD,  LARGO_ADAMW, LARGO_LARS,
                                      LARGO_LAMB, LARGO_CAME,  LARGO_MERIT};
    uint64_t all = 0;
    _mm_setcsr(control);
    for (size_t i = 0; i < sizeof algo / sizeof *algo; i++) {
        guest_work w;
        guest_open(&w, algo[i]);
        const surroundings before = look();
        uint64_t first = 0;
        for (int threads = 1; threads <= 3; threads++) {
            largo_ctx *ctx = guest_ctx(threads);
            if (threads == 1) same(before, 0, "a context");
            const uint64_t hash = three_steps(&w, ctx);
            if (threads == 1) first = hash;
            REQUIRE(hash == first, "algorithm %d: other bits with %d threads", (int)algo[i],
                    threads);
            same(before, 2, "steps");
            guest.largo_ctx_destroy(ctx);
        }
        all = guest_hash(all, (const uint32_t *)&first, 2);
        guest_close(&w);
    }
    return all;
}

int main(int argc, char **argv)
{
    REQUIRE(argc == 2, "usage: control LIBRARY");
    const unsigned start = _mm_getcsr() & CONTROL;
    const surroundings before = look();
    REQUIRE(before.product == (start & 0x8040 ? 0u : 35681u), "1e-40 * 0.5 is %08x under %04x",
            before.product, start);
    REQUIRE(before.threads == 1, "%d threads at the start", before.threads);
    guest_load(argv[1], 0);
    same(before, 0, "dlopen");
    guest.largo_ctx_destroy(guest_ctx(4));
    same(before, 0, "a context");
    const uint64_t hash = run(start);
    /* Other roundings; no exception masked, and each alone. */
    static const unsigned flips[] = {0x2000, 0x4000, 0x6000, 0x1f80, 0x0080, 0x0100,
                                     0x0200, 0x0400, 0x0800, 0x1000, 0x7f80, 0x8040};
    for (size_t i = 0; i < sizeof flips / sizeof *flips; i++) {
        const uint64_t other = run(start ^ flips[i]);
        REQUIRE(other == hash, "other bits under MXCSR %04x", start ^ flips[i]);
        _mm_setcsr(start);
    }
    printf("%04x %016llx\n", start, (unsigned long long)hash);
    return 0;
}
