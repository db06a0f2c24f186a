/* stepper.h - groups of parameters made into a plan, and the plan stepped. Both public faces, the
 * functional step and the optimizer object, are this. */
#ifndef LARGO_OPTIM_STEPPER_H
#define LARGO_OPTIM_STEPPER_H

#include "params.h"

/* Parameters that count steps: one, or several in a row of one group and decay, with one unit each
 * and counts side by side. Nearly always all of them count alike. Units follow those of the one
 * before. */
typedef struct largo__planned {
    int64_t *step;   /* [params], their own counts; or NULL */
    int64_t t;       /* the number of the step being made, if they count alike; */
    int64_t *each_t; /* [params], if not */
    int is_alike;
    uint32_t param, group, no_decay; /* param: the first one, counted over all groups */
    uint32_t params, units;
    uint32_t constants; /* if they count alike: which */
    int has_constants;  /* units have been told that already */
} largo__planned;

/* Statistics that are wanted and that no pass makes: of a tensor without elements, or of an algorithm
 * without a ratio. */
typedef struct largo__untold {
    largo_param_stats *stats;
    largo_param_stats told;
    int32_t segments;
} largo__untold;

typedef struct largo__stepper {
    largo__plan plan;
    largo__planned *planned;
    largo__untold *untold;
    int64_t *each_t; /* memory of planned.each_t */
    size_t n_planned, n_untold;
    int is_sharded; /* a parameter is: its number follows */
    uint32_t sharded_param;
    int32_t round;        /* the one that is expected next, after 0; 0: no step is under way */
    int is_written;       /* the step under way has written something */
    largo__result result; /* of the step under way */
    void *block;          /* all arrays of the plan */
    size_t bytes;
} largo__stepper;

/* Check everything about the groups and lay out the work. On failure *stepper is empty. */
largo_status largo__stepper_make(largo_ctx *ctx, size_t n_groups, const largo__group groups[],
                                 largo__stepper *stepper);
void largo__stepper_free(largo_ctx *ctx, largo__stepper *stepper);

/* One step; hyper[g] are checked and fit the plan. `step` is for parameters without a count. Fills
 * ctx->outcome. stepper->is_written after a failure: it left something half-written. */
largo_status largo__stepper_run(largo_ctx *ctx, largo__stepper *stepper, size_t n_groups,
                                const largo__group groups[], int64_t step);

/* The same round by round, reduced by the caller. */
largo_status largo__stepper_round(largo_ctx *ctx, largo__stepper *stepper, size_t n_groups,
                                  const largo__group groups[], int64_t step, int32_t round,
                                  largo_reduction *reduction);

#endif
