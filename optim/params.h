/* params.h - checks of what a caller says about its parameters. */
#ifndef LARGO_OPTIM_PARAMS_H
#define LARGO_OPTIM_PARAMS_H

#include "views.h"
#include "../core/context.h"

/* One group of parameters as a step sees it. */
typedef struct largo__group {
    const char *where;        /* begins messages: "" or "group 2: " */
    const largo_hyper *hyper; /* checked */
    size_t n;
    const largo_param *params;
} largo__group;

/* All flags of a parameter that this version knows. */
#define LARGO__FLAGS                                                                               \
    (LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST | LARGO_PARAM_FROZEN | LARGO_PARAM_GRAD_SCRATCH)

/* What is wrong with a shape, 0 to MAX_DIMS dimensions, none negative, at most 2^60 elements: the end
 * of a sentence that begins with the tensor's name. 0: nothing. */
enum { LARGO__FAULT = 80 }; /* bytes of the text */
int largo__shape_fault(int32_t ndim, const int64_t shape[], char *text, size_t size);

/* Does a step touch it? Not if it is frozen or has no gradient. */
static inline int largo__is_active(const largo_param *param)
{
    return !(param->flags & LARGO_PARAM_FROZEN) && param->grad.data;
}

/* Everything about parameter i but overlaps. need_state: active parameters must have theirs. */
largo_status largo__param_check(const largo__group *group, size_t i, int need_state);

/* Copies of n descriptors, with the shards that they point at; both arrays have room for n. */
void largo__params_copy(largo_param *out, largo_shard *shards, size_t n,
                        const largo_param params[]);

/* Do they say the same as such copies? */
int largo__params_same(const largo_param *copies, size_t n, const largo_param params[]);

/* Entries of the shape from ndim on are ignored. One of them has been checked. */
int largo__shard_same(const largo_shard *a, const largo_shard *b);

/* Memory that is written may not overlap other memory of the step. */
largo_status largo__overlap_check(largo_ctx *ctx, size_t n_groups, const largo__group groups[]);

#endif
