/* views.c - see views.h. */
#include <string.h>
#include "views.h"
#include "../core/canon.h"
#include "../core/context.h"

int64_t largo__numel(const largo_tensor *tensor)
{
    int64_t n = 1;
    for (int32_t d = 0; d < tensor->ndim; d++)
        if (tensor->shape[d] == 0) return 0; /* others may be too large to multiply */
    for (int32_t d = 0; d < tensor->ndim; d++) n *= tensor->shape[d];
    return n;
}

largo_tensor largo__whole(const largo_param *param)
{
    largo_tensor t = param->value;
    t.data = NULL;
    if (!largo__is_sharded(param)) return t;
    t.ndim = param->shard->ndim;
    memcpy(t.shape, param->shard->shape, sizeof t.shape);
    return t;
}

const largo__family *largo__param_family(const largo_hyper *hyper, const largo_param *param)
{
    return largo__family_of(hyper, param->flags, largo__whole(param).ndim);
}

largo__part largo__segment_part(const largo_param *param, int32_t segment)
{
    const largo_tensor whole = largo__whole(param);
    const int64_t here = largo__numel(&param->value);
    const int64_t offset = largo__is_sharded(param) ? param->shard->offset : 0;
    largo__part part = {0};
    part.count = largo__numel(&whole) / largo__segments(param);
    const int64_t begin = part.count * segment, end = begin + part.count;
    const int64_t low = begin > offset ? begin : offset;
    const int64_t high = end < offset + here ? end : offset + here;
    if (low >= high) return part;
    part.first = low - offset;
    part.n = high - low;
    part.lead = low - begin;
    return part;
}

largo__here largo__segments_here(const largo_param *param)
{
    const int64_t here = largo__numel(&param->value);
    const int64_t offset = largo__is_sharded(param) ? param->shard->offset : 0;
    largo__here span = {0, 0};
    if (!here) return span;
    const int64_t count = largo__segment_part(param, 0).count;
    span.first = (int32_t)(offset / count);
    span.end = (int32_t)((offset + here - 1) / count) + 1;
    return span;
}

largo__view largo__segment_view(const largo_param *param)
{
    const largo_tensor t = largo__whole(param);
    const int64_t count = largo__segment_part(param, 0).count;
    largo__view view = {0, t.shape[t.ndim - 2], t.shape[t.ndim - 1]};
    if (t.ndim == 2) view.rows /= largo__segments(param);
    if (count) view.matrices = count / (view.rows * view.cols);
    return view;
}

/* Matrices that a part has rows of. */
static int64_t held_matrices(const largo__view *view, const largo__part *part)
{
    if (!part->n) return 0;
    const int64_t first = part->lead / view->cols, end = first + part->n / view->cols;
    return (end - 1) / view->rows - first / view->rows + 1;
}

/* ---- state ---- */

/* Of a whole tensor, of which each of the `segments` slices of a matrix has columns of its own. */
static largo_tensor whole_slot(const largo__family *family, int slot, const largo_tensor *value,
                               int32_t segments)
{
    largo_tensor t = {NULL, LARGO_F32, value->ndim, {0}};
    for (int32_t d = 0; d < value->ndim; d++) t.shape[d] = value->shape[d];
    if (family->slot_shape[slot] == LARGO__LIKE) return t;
    if (largo__numel(value) == 0) { /* no work, no lines, however long they would be */
        t.ndim = 1;
        t.shape[0] = 0;
        return t;
    }
    if (family->slot_shape[slot] == LARGO__COLS_OF) { /* drop the last dimension but one */
        if (t.ndim == 2 && segments > 1) {
            t.shape[0] = segments;
            return t;
        }
        t.shape[t.ndim - 2] = t.shape[t.ndim - 1];
    }
    t.shape[--t.ndim] = 0;
    return t;
}

int64_t largo__slot_first(const largo__family *family, int slot, const largo_param *param,
                          int32_t segment)
{
    const largo__part part = largo__segment_part(param, segment);
    if (family->slot_shape[slot] == LARGO__LIKE) return part.first;
    const largo__view view = largo__segment_view(param);
    if (family->slot_shape[slot] == LARGO__ROWS_OF) return part.first / view.cols;
    /* Only the first and the last segment that are here may be so in part. */
    const largo__here here = largo__segments_here(param);
    const int32_t end = segment < here.end ? segment : here.end;
    if (end <= here.first) return 0;
    const largo__part first = largo__segment_part(param, here.first);
    const largo__part last = largo__segment_part(param, end - 1);
    int64_t matrices = held_matrices(&view, &first);
    if (end - 1 > here.first) matrices += held_matrices(&view, &last);
    if (end - 2 > here.first) matrices += (end - 2 - here.first) * view.matrices;
    return matrices * view.cols;
}

largo_tensor largo__slot_tensor(const largo__family *family, int slot, const largo_param *param)
{
    if (!largo__is_sharded(param) || family->slot_shape[slot] == LARGO__LIKE)
        return whole_slot(family, slot, &param->value, param->segments);
    largo_tensor t = {NULL, LARGO_F32, 1, {0}};
    const int64_t n = largo__numel(&param->value);
    if (!n) return t;
    const int is_rows = family->slot_shape[slot] == LARGO__ROWS_OF;
    t.shape[0] = is_rows ? n / largo__segment_view(param).cols
                         : largo__slot_first(family, slot, param, largo__segments(param));
    return t;
}

/* ---- cuts ---- */

/* Tensors are cut inside what has statistics of its own, a segment or a matrix, at chunks or super
 * tiles. */
typedef struct blocks {
    int64_t groups, elements; /* of one group */
    int64_t block;            /* elements */
    int64_t per_group;        /* blocks */
} blocks;

static blocks blocks_of(const largo__family *family, const largo_param *whole)
{
    const int64_t count = largo__segment_part(whole, 0).count;
    blocks b = {largo__segments(whole), count, LARGO__CHUNK, 0};
    if (family->is_matrix && count) {
        const largo__view view = largo__segment_view(whole);
        b.groups *= view.matrices;
        b.elements = view.rows * view.cols;
        b.block = (view.rows < LARGO__SUPER_ROWS ? view.rows : LARGO__SUPER_ROWS) * view.cols;
    }
    b.per_group = (b.elements + b.block - 1) / b.block;
    return b;
}

int64_t largo__cut(const largo__family *family, const largo_param *whole, int64_t rank,
                   int64_t world)
{
    const blocks b = blocks_of(family, whole);
    const int64_t count = largo__segment_part(whole, 0).count;
    if (!count) return 0;
    if (rank == world) return count * largo__segments(whole);
    for (int64_t i = largo__share(b.groups * b.per_group, rank, world);; i--) {
        const int64_t element = i / b.per_group * b.elements + i % b.per_group * b.block;
        /* The scan sums chunks of every tensor: a super tile may begin inside one. */
        if (element % count % LARGO__CHUNK == 0) return element;
    }
}
