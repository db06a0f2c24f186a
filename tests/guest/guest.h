/* guest.h - a host that loads largo's shared library while it runs: its functions, and steps whose inputs
 * and hashes are made with integers alone, so that no flag of the host's compiler can change them. */
#ifndef LARGO_TESTS_GUEST_H
#define LARGO_TESTS_GUEST_H

#define LARGO_EXPERIMENTAL
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "largo.h"

#define GUEST_FUNCTIONS(X)                                                                         \
    X(largo_ctx_create)                                                                            \
    X(largo_ctx_destroy)                                                                           \
    X(largo_hyper_init_sized)                                                                      \
    X(largo_last_error)                                                                            \
    X(largo_slots)                                                                                 \
    X(largo_step)

static struct {
#define GUEST_MEMBER(name) __typeof__(&(name)) name;
    GUEST_FUNCTIONS(GUEST_MEMBER)
#undef GUEST_MEMBER
} guest;

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)

static void *guest_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    REQUIRE(symbol, "no function %s", name);
    return symbol;
}

static void guest_load(const char *path, int flags)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | flags);
    REQUIRE(library, "%s", dlerror());
#define GUEST_FIND(name) *(void **)&guest.name = guest_symbol(library, #name);
    GUEST_FUNCTIONS(GUEST_FIND)
#undef GUEST_FIND
}

/* Threads of this process. */
static int guest_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    REQUIRE(tasks, "no /proc/self/task");
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(tasks));) n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

enum { GUEST_ROWS = 300, GUEST_COLS = 130, GUEST_N = GUEST_ROWS * GUEST_COLS };

/* Floats with exponents from `low` on, 0 being that of subnormals. */
static void guest_fill(uint32_t *bits, uint64_t seed, uint32_t low, uint32_t spread)
{
    for (size_t i = 0; i < GUEST_N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const uint32_t random = (uint32_t)(seed >> 32);
        const uint32_t exponent = low + (uint32_t)i % spread;
        bits[i] = (random & 0x80000000u) | exponent << 23 | (random >> 4 & 0x7fffffu);
    }
}

static uint64_t guest_hash(uint64_t hash, const uint32_t *bits, size_t n)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ bits[i]) * 1099511628211u;
    return hash;
}

static largo_ctx *guest_ctx(int threads)
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = threads;
    largo_ctx *ctx;
    REQUIRE(guest.largo_ctx_create(&options, &ctx) == LARGO_OK, "%s", guest.largo_last_error());
    return ctx;
}

/* A matrix, its gradient and state; weights, gradients and what becomes of them are partly subnormal. */
typedef struct guest_work {
    largo_hyper hyper;
    largo_param param;
    uint32_t *value, *grad, *state[LARGO_MAX_SLOTS];
    size_t slots, bytes[LARGO_MAX_SLOTS];
} guest_work;

static void *guest_alloc(size_t bytes)
{
    void *memory = calloc(1, bytes);
    REQUIRE(memory, "no memory");
    return memory;
}

static void guest_open(guest_work *w, largo_algo algo)
{
    REQUIRE(guest.largo_hyper_init_sized(&w->hyper, sizeof w->hyper, algo) == LARGO_OK, "%s",
            guest.largo_last_error());
    w->value = guest_alloc(GUEST_N * sizeof *w->value);
    w->grad = guest_alloc(GUEST_N * sizeof *w->grad);
    w->param = largo_param_f32((float *)w->value, (float *)w->grad, GUEST_ROWS, GUEST_COLS);
    guest_fill(w->grad, 2, 0, 130);
    largo_slot slot[LARGO_MAX_SLOTS];
    REQUIRE(guest.largo_slots(&w->hyper, &w->param, slot, &w->slots) == LARGO_OK, "%s",
            guest.largo_last_error());
    for (size_t s = 0; s < w->slots; s++) {
        w->bytes[s] = slot[s].bytes;
        w->param.state[s] = w->state[s] = guest_alloc(slot[s].bytes);
    }
}

static void guest_close(guest_work *w)
{
    free(w->value);
    free(w->grad);
    for (size_t s = 0; s < w->slots; s++) free(w->state[s]);
}

#endif
