/* backend.h - the vtable of a backend. Adding one: CONTRIBUTING.md. */
#ifndef LARGO_CORE_BACKEND_H
#define LARGO_CORE_BACKEND_H

#include "plan.h"

enum { LARGO__BACKEND_API = 2, LARGO__REASON = 160 };

typedef struct largo__backend {
    uint32_t api_version; /* LARGO__BACKEND_API; another one is refused */
    largo_backend id;
    const char *name;
    int host_memory; /* the device's memory is the host's */

    /* How good is it here? 0: not usable, and *reason (static or per thread) says why. */
    int (*score)(const char **reason);

    /* Instruction set i, for the capability call: its name, and why it is missing ("" if it is
     * here). NULL past the last. */
    const char *(*isa)(size_t i, const char **missing);

    /* Make ctx->device and ctx->name; undo. */
    largo_status (*open)(largo_ctx *ctx, const largo_ctx_options *options);
    void (*close)(largo_ctx *ctx);

    /* Memory of the device, where the host gave no functions of its own. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *memory);
    void (*zero)(void *memory, size_t bytes);

    /* Lay out a plan's work: plan->backend. Frees nothing of an earlier one; unplan does. */
    largo_status (*plan)(largo_ctx *ctx, largo__plan *plan);
    void (*unplan)(largo_ctx *ctx, largo__plan *plan);

    /* Carry it out with plan->constants, up to the next thing to reduce across ranks; *next says what,
     * and n = 0 that the step is done. first: the first such round of a step; later ones find what
     * *next pointed at reduced. result->bad: nothing was written. */
    largo_status (*round)(largo_ctx *ctx, largo__plan *plan, int first, largo__result *result,
                          largo_reduction *next);
} largo__backend;

/* In order of definition; backends that this build lacks have rows with a reason. */
typedef struct largo__backend_row {
    const char *name;
    largo_backend id;
    const largo__backend *backend; /* NULL: not in this build */
    const char *reason;            /* why not */
} largo__backend_row;

extern const largo__backend_row largo__backends[];
extern const size_t largo__n_backends;

#endif
