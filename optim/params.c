/* params.c - checks of parameters: shapes, pointers, flags, state, overlaps. */
#define LARGO_EXPERIMENTAL /* knows all algorithms */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include "params.h"
#include "../core/status.h"

static const int64_t MAX_ELEMENTS = (int64_t)1 << 60;

void largo__params_copy(largo_param *out, largo_shard *shards, size_t n, const largo_param params[])
{
    for (size_t i = 0; i < n; i++) {
        out[i] = params[i];
        if (!params[i].shard) continue;
        shards[i] = *params[i].shard;
        out[i].shard = &shards[i];
    }
}

int largo__shard_same(const largo_shard *a, const largo_shard *b)
{
    if (!a || !b) return a == b;
    int same = a->placement == b->placement && a->ndim == b->ndim && a->offset == b->offset;
    for (int32_t d = 0; same && d < a->ndim; d++) same = a->shape[d] == b->shape[d];
    return same;
}

int largo__params_same(const largo_param *copies, size_t n, const largo_param params[])
{
    enum { AT = offsetof(largo_param, shard), AFTER = AT + sizeof(const largo_shard *) };
    for (size_t i = 0; i < n; i++) {
        const char *a = (const char *)&copies[i], *b = (const char *)&params[i];
        if (memcmp(a, b, AT) || memcmp(a + AFTER, b + AFTER, sizeof *copies - AFTER) ||
            !largo__shard_same(copies[i].shard, params[i].shard))
            return 0;
    }
    return 1;
}

int largo__shape_fault(int32_t ndim, const int64_t shape[], char *text, size_t size)
{
    if (ndim < 0 || ndim > LARGO_MAX_DIMS) {
        snprintf(text, size, ".ndim is %d; it must be 0 to %d", (int)ndim, LARGO_MAX_DIMS);
        return 1;
    }
    int64_t n = 1;
    int overflow = 0, zero = 0;
    for (int32_t d = 0; d < ndim; d++) {
        if (shape[d] < 0) {
            snprintf(text, size, ".shape[%d] is %lld; it must be >= 0", (int)d,
                     (long long)shape[d]);
            return 1;
        }
        zero |= shape[d] == 0;
        overflow |= __builtin_mul_overflow(n, shape[d], &n) || n > MAX_ELEMENTS;
    }
    if (overflow && !zero)
        snprintf(text, size, " has more than 2^60 elements, the most a tensor may have");
    return overflow && !zero;
}

static largo_status check_shape(const largo__group *group, size_t i, const char *what, int32_t ndim,
                                const int64_t shape[])
{
    char text[LARGO__FAULT];
    if (!largo__shape_fault(ndim, shape, text, sizeof text)) return LARGO_OK;
    return largo__fail(LARGO_ERR_SHAPE, "%sparams[%zu].%s%s", group->where, i, what, text);
}

/* Shape and dtype; what = "value" or "grad". A dimension of 0 makes any other one legal. */
static largo_status check_tensor(const largo__group *group, size_t i, const char *what,
                                 const largo_tensor *t)
{
    if (t->dtype != LARGO_F32)
        return largo__fail(LARGO_ERR_DTYPE,
                           "%sparams[%zu].%s.dtype is %d; it must be LARGO_F32, %d", group->where,
                           i, what, (int)t->dtype, LARGO_F32);
    LARGO__TRY(check_shape(group, i, what, t->ndim, t->shape));
    if (!t->data && what[0] == 'v' && largo__numel(t))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].%s.data is NULL; it must hold %lld elements",
                           group->where, i, what, (long long)largo__numel(t));
    if ((uintptr_t)t->data % sizeof(float))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].%s.data is %p; it must be aligned to 4 bytes",
                           group->where, i, what, t->data);
    return LARGO_OK;
}

static largo_status check_same_shape(const largo__group *group, size_t i, const largo_param *p)
{
    if (p->grad.ndim != p->value.ndim)
        return largo__fail(LARGO_ERR_SHAPE,
                           "%sparams[%zu].grad.ndim is %d; it must be that of value, %d",
                           group->where, i, (int)p->grad.ndim, (int)p->value.ndim);
    for (int32_t d = 0; d < p->value.ndim; d++)
        if (p->grad.shape[d] != p->value.shape[d])
            return largo__fail(
                LARGO_ERR_SHAPE,
                "%sparams[%zu].grad.shape[%d] is %lld; it must be that of value, %lld",
                group->where, i, (int)d, (long long)p->grad.shape[d], (long long)p->value.shape[d]);
    return LARGO_OK;
}

static largo_status check_shard(const largo__group *group, size_t i, const largo_param *p)
{
    const largo_shard *s = p->shard;
    if (!s) return LARGO_OK;
    if (s->placement < LARGO_LOCAL || s->placement > LARGO_REPLICATED)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].shard.placement is %d; it must be LOCAL, SHARDED or "
                           "REPLICATED (1 to 3)",
                           group->where, i, (int)s->placement);
    if (!largo__is_sharded(p)) {
        if (s->ndim == 0 && s->offset == 0) return LARGO_OK;
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].shard.ndim is %d and offset %lld; without SHARDED both "
                           "must be 0",
                           group->where, i, (int)s->ndim, (long long)s->offset);
    }
    LARGO__TRY(check_shape(group, i, "shard", s->ndim, s->shape));
    const largo_tensor whole = largo__whole(p);
    const int64_t n = largo__numel(&whole), here = largo__numel(&p->value);
    if (s->offset < 0 || s->offset > n - here)
        return largo__fail(LARGO_ERR_SHAPE,
                           "%sparams[%zu].shard.offset is %lld with %lld elements here; together "
                           "they must be within the %lld of the whole tensor",
                           group->where, i, (long long)s->offset, (long long)here, (long long)n);
    const largo__family *family = largo__param_family(group->hyper, p);
    const int64_t cols = family->is_matrix && n ? s->shape[s->ndim - 1] : 1;
    if (s->offset % cols || here % cols)
        return largo__fail(LARGO_ERR_SHAPE,
                           "%sparams[%zu].shard.offset is %lld with %lld elements here; %s takes "
                           "whole rows of %lld",
                           group->where, i, (long long)s->offset, (long long)here, family->name,
                           (long long)cols);
    return LARGO_OK;
}

static largo_status check_options(const largo__group *group, size_t i, const largo_param *p)
{
    if (p->flags & ~LARGO__FLAGS)
        return largo__fail(
            LARGO_ERR_ARGUMENT,
            "%sparams[%zu].flags is 0x%x; it has bits that this version does not know, 0x%x",
            group->where, i, (unsigned)p->flags, (unsigned)(p->flags & ~LARGO__FLAGS));
    for (size_t r = 0; r < sizeof p->reserved / sizeof *p->reserved; r++)
        if (p->reserved[r] || p->pad)
            return largo__fail(
                LARGO_ERR_ARGUMENT,
                "%sparams[%zu].reserved[%zu] is 0x%llx and pad 0x%x; reserved and pad "
                "must be 0: zero the struct before you fill it",
                group->where, i, r, (unsigned long long)p->reserved[r], (unsigned)p->pad);
    if (p->segments < 0)
        return largo__fail(LARGO_ERR_ARGUMENT, "%sparams[%zu].segments is %d; it must be >= 0",
                           group->where, i, (int)p->segments);
    const largo_tensor whole = largo__whole(p);
    const int64_t first = whole.ndim ? whole.shape[0] : 1;
    if (p->segments > 1 && first % p->segments)
        return largo__fail(LARGO_ERR_SHAPE,
                           "%sparams[%zu].segments is %d; it must divide shape[0], %lld",
                           group->where, i, (int)p->segments, (long long)first);
    if (group->hyper->algo == LARGO_MERIT && whole.ndim > 2)
        return largo__fail(LARGO_ERR_SHAPE,
                           "%sparams[%zu].value.ndim is %d; LARGO_MERIT takes at most 2 as yet",
                           group->where, i, (int)whole.ndim);
    if ((uintptr_t)p->stats % sizeof(double))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].stats is %p; it must be aligned to 8 bytes", group->where,
                           i, (void *)p->stats);
    if ((uintptr_t)p->step % sizeof *p->step)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].step is %p; it must be aligned to 8 bytes", group->where,
                           i, (void *)p->step);
    if (p->step && (*p->step < 0 || *p->step == INT64_MAX))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].step counts %lld; it must be >= 0 and < 2^63 - 1",
                           group->where, i, (long long)*p->step);
    return LARGO_OK;
}

static largo_status check_state(const largo__group *group, size_t i, const largo_param *p)
{
    const largo__family *family = largo__param_family(group->hyper, p);
    for (int s = 0; s < largo__slots(family); s++) {
        const largo_tensor t = largo__slot_tensor(family, s, p);
        const long long bytes = (long long)largo__numel(&t) * (long long)sizeof(float);
        if (bytes && !p->state[s])
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "%sparams[%zu].state[%d] is NULL; %s needs slot %d (%s), %lld bytes",
                               group->where, i, s, family->name, s, family->slot_name[s], bytes);
        if ((uintptr_t)p->state[s] % sizeof(float))
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "%sparams[%zu].state[%d] is %p; it must be aligned to 4 bytes",
                               group->where, i, s, p->state[s]);
    }
    return LARGO_OK;
}

largo_status largo__param_check(const largo__group *group, size_t i, int need_state)
{
    const largo_param *p = &group->params[i];
    LARGO__TRY(check_tensor(group, i, "value", &p->value));
    LARGO__TRY(check_shard(group, i, p));
    LARGO__TRY(check_options(group, i, p));
    if (p->grad.data) {
        LARGO__TRY(check_tensor(group, i, "grad", &p->grad));
        LARGO__TRY(check_same_shape(group, i, p));
    }
    if (need_state && largo__is_active(p)) LARGO__TRY(check_state(group, i, p));
    return LARGO_OK;
}

enum { STATS = -4, COUNT = -3, VALUE = -2, GRAD = -1 };

/* Memory that a step touches. */
typedef struct range {
    uintptr_t begin, end;
    int written;
    int slot; /* VALUE, GRAD, COUNT, STATS, or of the state */
    size_t group, param;
} range;

static int by_begin(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static size_t add_range(range *out, const void *memory, int64_t elements, range what)
{
    if (!elements) return 0;
    what.begin = (uintptr_t)memory;
    what.end = what.begin + (uintptr_t)elements * sizeof(float);
    *out = what;
    return 1;
}

static size_t param_ranges(const largo__group *group, size_t g, size_t i, range *out)
{
    const largo_param *p = &group->params[i];
    if (!largo__is_active(p)) return 0;
    const int64_t n = largo__numel(&p->value);
    range what = {0, 0, 1, VALUE, g, i};
    size_t made = add_range(out, p->value.data, n, what);
    const largo__family *family = largo__param_family(group->hyper, p);
    for (int s = 0; s < largo__slots(family); s++) {
        const largo_tensor t = largo__slot_tensor(family, s, p);
        what.slot = s;
        made += add_range(out + made, p->state[s], largo__numel(&t), what);
    }
    what.slot = COUNT;
    if (p->step) made += add_range(out + made, p->step, sizeof *p->step / sizeof(float), what);
    what.slot = STATS;
    if (p->stats)
        made += add_range(out + made, p->stats,
                          (int64_t)(sizeof *p->stats / sizeof(float)) * largo__segments(p), what);
    what.slot = GRAD;
    what.written = (p->flags & LARGO_PARAM_GRAD_SCRATCH) != 0;
    return made + add_range(out + made, p->grad.data, n, what);
}

static const char *range_name(const range *r, char *text, size_t size, const largo__group groups[])
{
    const char *where = groups[r->group].where;
    if (r->slot == VALUE)
        snprintf(text, size, "%sparams[%zu].value", where, r->param);
    else if (r->slot == COUNT)
        snprintf(text, size, "%sparams[%zu].step", where, r->param);
    else if (r->slot == STATS)
        snprintf(text, size, "%sparams[%zu].stats", where, r->param);
    else if (r->slot == GRAD)
        snprintf(text, size, "%sparams[%zu].grad", where, r->param);
    else
        snprintf(text, size, "%sparams[%zu].state[%d]", where, r->param, r->slot);
    return text;
}

/* Parameters may share a count. */
static int is_shared_count(const range *a, const range *b)
{
    return a->slot == COUNT && b->slot == COUNT && a->begin == b->begin;
}

static largo_status sweep(range *ranges, size_t n, const largo__group groups[])
{
    qsort(ranges, n, sizeof *ranges, by_begin);
    const range *last = NULL, *last_written = NULL; /* those that reach furthest */
    for (size_t i = 0; i < n; i++) {
        const range *r = &ranges[i], *before = r->written ? last : last_written;
        if (before && r->begin < before->end && !is_shared_count(r, before)) {
            char a[96], b[96];
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "%s overlaps %s; memory that a step writes may be listed only once",
                               range_name(r, a, sizeof a, groups),
                               range_name(before, b, sizeof b, groups));
        }
        if (!last || r->end > last->end) last = r;
        if (r->written && (!last_written || r->end > last_written->end)) last_written = r;
    }
    return LARGO_OK;
}

largo_status largo__overlap_check(largo_ctx *ctx, size_t n_groups, const largo__group groups[])
{
    size_t room = 0;
    for (size_t g = 0; g < n_groups; g++)
        room = largo__size(groups[g].n, 4 + LARGO__MAX_STATE, room);
    const size_t bytes = largo__size(room, sizeof(range), 0);
    range *ranges = largo__host_alloc(ctx, bytes);
    if (!ranges)
        return largo__fail(LARGO_ERR_MEMORY, "no memory to check for overlaps, %zu bytes", bytes);
    size_t n = 0;
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++) n += param_ranges(&groups[g], g, i, ranges + n);
    const largo_status status = sweep(ranges, n, groups);
    largo__host_free(ctx, ranges, bytes);
    return status;
}
