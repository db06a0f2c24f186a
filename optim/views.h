/* views.h - what is here of a tensor: segments, shards, lines of matrices, shapes of state. */
#ifndef LARGO_OPTIM_VIEWS_H
#define LARGO_OPTIM_VIEWS_H

#include "families.h"

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

/* Segments [first, end) have elements here. The others may be many more than a loop should see. */
typedef struct largo__here {
    int32_t first, end;
} largo__here;
largo__here largo__segments_here(const largo_param *param);

/* A segment as matrices: the last two dimensions are one, leading ones count them. */
typedef struct largo__view {
    int64_t matrices, rows, cols;
} largo__view;
largo__view largo__segment_view(const largo_param *param);

/* A state slot of what is here. Rows have an entry for each row of the part; columns one for each column
 * of each matrix that it has a row of. */
largo_tensor largo__slot_tensor(const largo__family *family, int slot, const largo_param *param);

/* Where a segment begins in it, in elements. */
int64_t largo__slot_first(const largo__family *family, int slot, const largo_param *param,
                          int32_t segment);

/* Where part `rank` of `world` begins, about equal parts that cut no chunk, and no super tile of a
 * matrix: every number of ranks gives the same bits. */
int64_t largo__cut(const largo__family *family, const largo_param *whole, int64_t rank,
                   int64_t world);

#endif
