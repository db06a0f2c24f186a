/* params.h - checks of what a caller says about its parameters. */
#ifndef LARGO_OPTIM_PARAMS_H
#define LARGO_OPTIM_PARAMS_H

#include "families.h"
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

/* Elements of a tensor that has passed its check. */
int64_t largo__numel(const largo_tensor *tensor);

/* Is a part of it here, the rest on other ranks? */
static inline int largo__is_sharded(const largo_param *param)
{
    return param->shard && param->shard->placement == LARGO_SHARDED;
}

/* The whole tensor that the value is, or is a part of; without data. */
largo_tensor largo__whole(const largo_param *param);

/* The family that carries out its step. */
const largo__family *largo__param_family(const largo_hyper *hyper, const largo_param *param);

static inline int32_t largo__segments(const largo_param *param)
{
    return param->segments > 1 ? param->segments : 1;
}

/* The elements of a segment that are here: [first, first + n) of the parameter, with `lead` elements
 * of the segment before them; count on all ranks together. */
typedef struct largo__part {
    int64_t first, n, lead, count;
} largo__part;
largo__part largo__segment_part(const largo_param *param, int32_t segment);

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

/* Memory that is written may not overlap other memory of the step. */
largo_status largo__overlap_check(largo_ctx *ctx, size_t n_groups, const largo__group groups[]);

#endif
