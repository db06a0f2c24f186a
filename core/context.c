/* context.c - choosing a backend, life of a context, its memory, the capability call. */
#include <stdlib.h>
#include <string.h>
#include "context.h"
#include "status.h"

#define BACKEND(name, id, symbol) extern const largo__backend symbol;
#define MISSING(name, id, why)
#include "backends.def"
#undef BACKEND
#undef MISSING

const largo__backend_row largo__backends[] = {
#define BACKEND(name, id, symbol) {name, id, &symbol, ""},
#define MISSING(name, id, why) {name, id, NULL, why},
#include "backends.def"
};
const size_t largo__n_backends = sizeof largo__backends / sizeof *largo__backends;

enum { ALIGNMENT = 256, MAX_THREADS = 1024 };

/* 0 and a reason, or the backend's score. */
static int score(const largo__backend_row *row, const char **reason)
{
    *reason = row->reason;
    if (!row->backend) return 0;
    if (row->backend->api_version != LARGO__BACKEND_API) {
        *reason = "its interface is of another version than this library's core";
        return 0;
    }
    return row->backend->score(reason);
}

static largo_status choose(largo_backend wanted, const largo__backend **chosen)
{
    int best = 0;
    for (size_t i = 0; i < largo__n_backends; i++) {
        const largo__backend_row *row = &largo__backends[i];
        if (wanted != LARGO_BACKEND_AUTO && wanted != row->id) continue;
        const char *reason;
        const int s = score(row, &reason);
        if (s <= 0 && wanted == row->id)
            return largo__fail(LARGO_ERR_UNSUPPORTED,
                               "options.backend is %s, which is not here: %s", row->name, reason);
        if (s > best) best = s, *chosen = row->backend;
    }
    if (best > 0) return LARGO_OK;
    if (wanted == LARGO_BACKEND_AUTO)
        return largo__fail(LARGO_ERR_UNSUPPORTED, "no backend of this build works here");
    return largo__fail(LARGO_ERR_ARGUMENT,
                       "options.backend is %d; it must be AUTO, CPU or CUDA (0 to 2)", (int)wanted);
}

/* Options of any accepted size as ours: a longer struct must be zero beyond what we know. */
static largo_status read_options(const largo_ctx_options *given, largo_ctx_options *options)
{
    const largo_ctx_options defaults = LARGO_CTX_OPTIONS;
    *options = defaults;
    if (!given) return LARGO_OK;
    LARGO__TRY(largo__check_sized("options", "LARGO_CTX_OPTIONS", given, sizeof defaults));
    memcpy(options, given, sizeof defaults);
    options->struct_size = sizeof defaults;
    if (options->threads < 0 || options->threads > MAX_THREADS)
        return largo__fail(LARGO_ERR_ARGUMENT, "options.threads is %d; it must be 0 to %d",
                           (int)options->threads, MAX_THREADS);
    if (!options->alloc != !options->free)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "options.alloc and options.free must both be given or both be NULL");
    return LARGO_OK;
}

/* What is asked of the allocator for so many bytes, and told to it again when they are freed. */
static size_t whole_size(size_t bytes)
{
    return (bytes ? bytes + ALIGNMENT - 1 : ALIGNMENT) / ALIGNMENT * ALIGNMENT;
}

void *largo__alloc(largo_ctx *ctx, size_t bytes)
{
    if (bytes > SIZE_MAX - ALIGNMENT) return NULL;
    const size_t whole = whole_size(bytes);
    if (ctx->options.alloc)
        return ctx->options.alloc(ctx->options.alloc_user, whole, ctx->options.stream);
    return ctx->backend->alloc(whole);
}

void largo__free(largo_ctx *ctx, void *memory, size_t bytes)
{
    if (!memory) return;
    if (ctx->options.free)
        ctx->options.free(ctx->options.alloc_user, memory, whole_size(bytes), ctx->options.stream);
    else
        ctx->backend->free(memory);
}

void *largo__host_alloc(largo_ctx *ctx, size_t bytes)
{
    return ctx->backend->host_memory ? largo__alloc(ctx, bytes) : malloc(bytes ? bytes : 1);
}

void largo__host_free(largo_ctx *ctx, void *memory, size_t bytes)
{
    if (ctx->backend->host_memory)
        largo__free(ctx, memory, bytes);
    else
        free(memory);
}

largo_status largo_ctx_create(const largo_ctx_options *given, largo_ctx **ctx)
{
    if (!ctx) return largo__fail(LARGO_ERR_ARGUMENT, "ctx is NULL; it must say where to put it");
    *ctx = NULL;
    largo_ctx made = {0};
    LARGO__TRY(read_options(given, &made.options));
    LARGO__TRY(choose(made.options.backend, &made.backend));
    made.references = 1;
    LARGO__TRY(made.backend->open(&made, &made.options));
    largo_ctx *memory = largo__host_alloc(&made, sizeof *memory);
    if (!memory) {
        made.backend->close(&made);
        return largo__fail(LARGO_ERR_MEMORY, "no memory for a context, %zu bytes", sizeof *memory);
    }
    *memory = made;
    *ctx = memory;
    return LARGO_OK;
}

void largo__ctx_hold(largo_ctx *ctx)
{
    ctx->references++;
}

void largo_ctx_destroy(largo_ctx *ctx)
{
    if (!ctx || --ctx->references) return;
    if (ctx->drop_functional) ctx->drop_functional(ctx);
    ctx->backend->close(ctx);
    largo_ctx copy = *ctx; /* the callbacks are needed to free what holds them */
    largo__host_free(&copy, ctx, sizeof *ctx);
}

largo_backend largo_ctx_backend(const largo_ctx *ctx)
{
    return ctx ? ctx->backend->id : LARGO_BACKEND_AUTO;
}

const char *largo_ctx_name(const largo_ctx *ctx)
{
    return ctx ? ctx->name : "";
}

largo_status largo_last_outcome(const largo_ctx *ctx, largo_outcome *outcome)
{
    if (!ctx) return largo__fail(LARGO_ERR_ARGUMENT, "ctx is NULL");
    if (!outcome) return largo__fail(LARGO_ERR_ARGUMENT, "outcome is NULL");
    LARGO__TRY(largo__check_size("outcome", "sizeof(largo_outcome)", outcome->struct_size,
                                 sizeof *outcome));
    if (!ctx->has_outcome)
        return largo__fail(LARGO_ERR_STATE, "no step was made with this context yet");
    const size_t size = outcome->struct_size;
    *outcome = ctx->outcome;
    outcome->struct_size = size;
    return LARGO_OK;
}

largo_status largo_capabilities(size_t capacity, largo_capability list[], size_t *n)
{
    if (!n) return largo__fail(LARGO_ERR_ARGUMENT, "n is NULL");
    if (capacity && !list)
        return largo__fail(LARGO_ERR_ARGUMENT, "list is NULL but capacity is %zu", capacity);
    size_t found = 0;
    for (size_t i = 0; i < largo__n_backends; i++, found++) {
        const char *reason;
        const int usable = score(&largo__backends[i], &reason) > 0;
        if (found >= capacity) continue;
        const largo_capability c = {"backend", largo__backends[i].name, usable, 0,
                                    usable ? "" : reason};
        list[found] = c;
    }
    for (size_t b = 0; b < largo__n_backends; b++) {
        const largo__backend *backend = largo__backends[b].backend;
        const char *missing, *name;
        for (size_t i = 0; backend && (name = backend->isa(i, &missing)); i++, found++) {
            if (found >= capacity) continue;
            const largo_capability c = {"isa", name, !*missing, 0, missing};
            list[found] = c;
        }
    }
    *n = found;
    return LARGO_OK;
}
