/* stepper.c - from checked parameters to units of work, and one step over them. */
#include <math.h>
#include <string.h>
#include "constants.h"
#include "counts.h"
#include "../core/fpenv.h"
#include "../core/status.h"

typedef struct sizes {
    size_t units, planned, shared, untold;
} sizes;

/* Its pass with statistics of the segment; NULL: it has none. */
static const largo__pass *segment_pass_of(const largo__group *group, const largo_param *p)
{
    return largo__segment_pass(largo__param_family(group->hyper, p), LARGO__MAX_PASSES);
}

/* Does a statistic of it cross ranks? Also where this rank has no element of it, or no gradient. */
static int is_shared(const largo__group *group, const largo_param *p)
{
    if (!largo__is_sharded(p) || p->flags & LARGO_PARAM_FROZEN) return 0;
    return segment_pass_of(group, p) != NULL;
}

static int is_untold(const largo__group *group, const largo_param *p)
{
    if (!p->stats) return 0;
    return !segment_pass_of(group, p) || (!largo__numel(&p->value) && !is_shared(group, p));
}

static sizes count(size_t n_groups, const largo__group groups[])
{
    sizes n = {0, 0, 0, 0};
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++) {
            const largo_param *p = &groups[g].params[i];
            if (is_shared(&groups[g], p)) n.shared += (size_t)largo__segments(p);
            if (!largo__is_active(p)) continue;
            n.planned++;
            n.untold += (size_t)is_untold(&groups[g], p);
            const largo__here here = largo__segments_here(p);
            n.units += (size_t)(here.end - here.first);
        }
    return n;
}

/* What is here of one segment. */
static void set_unit(largo__unit *unit, const largo__family *family, const largo_param *p,
                     int32_t segment)
{
    const largo__part part = largo__segment_part(p, segment);
    memset(unit, 0, sizeof *unit);
    unit->family = family;
    unit->n = part.n;
    unit->first = part.first;
    unit->lead = part.lead;
    unit->count = part.count;
    unit->p = (float *)p->value.data + part.first;
    unit->g = (float *)p->grad.data + part.first;
    unit->grad_scratch = (p->flags & LARGO_PARAM_GRAD_SCRATCH) != 0;
    unit->placement = p->shard ? p->shard->placement : LARGO_LOCAL;
    unit->report = p->stats ? &p->stats[segment] : NULL;
    for (int i = 0; i < largo__slots(family); i++)
        unit->state[i] = (float *)p->state[i] + largo__slot_first(family, i, p, segment);
    if (!family->is_matrix) return;
    const largo__view view = largo__segment_view(p);
    unit->matrices = view.matrices;
    unit->rows = view.rows;
    unit->cols = view.cols;
    unit->first_row = part.lead / view.cols;
}

/* The units of an active parameter, the next planned one; shared: its first place in plan.shared, if it
 * has any. */
static size_t add_units(largo__stepper *s, size_t unit, size_t shared, const largo__group *group,
                        const largo_param *p)
{
    const largo__planned *q = &s->planned[s->n_planned];
    const largo__family *family = largo__param_family(group->hyper, p);
    const int shares = is_shared(group, p);
    for (int32_t i = 0; shares && i < largo__segments(p); i++) {
        largo__shared *of = &s->plan.shared[shared + (size_t)i];
        of->planned = s->n_planned;
        if (p->stats) of->report = &p->stats[i];
    }
    const largo__here here = largo__segments_here(p);
    for (int32_t i = here.first; i < here.end; i++) {
        const size_t place = shared + (size_t)i;
        if (shares) s->plan.shared[place].unit = unit;
        set_unit(&s->plan.unit[unit], family, p, i);
        s->plan.unit[unit].shared = shares ? place + 1 : 0;
        s->plan.unit[unit].group = q->group;
        s->plan.unit[unit++].param = q->param;
    }
    return unit;
}

/* Can the next planned parameter be one with those before it? */
static int joins(const largo__planned *row, const largo__planned *next, int shares)
{
    if (shares || next->units != 1 || row->units != row->params) return 0;
    if (row->group != next->group || row->no_decay != next->no_decay) return 0;
    if (row->param + row->params != next->param) return 0;
    return row->step ? next->step == row->step + row->params : !next->step;
}

/* The next planned parameter is complete: it joins those before it, or begins a row. A parameter whose
 * statistics cross ranks stays alone, and what they are finished by is found through it. */
static void end_planned(largo__stepper *s, uint32_t units, int shares, int *was_shared)
{
    largo__planned *q = &s->planned[s->n_planned];
    q->units = units;
    if (s->n_planned && !*was_shared && joins(q - 1, q, shares)) {
        q[-1].params++;
        q[-1].units++;
    } else {
        s->n_planned++;
    }
    *was_shared = shares;
}

static size_t add_shared(largo__stepper *s, size_t at, const largo__group *group,
                         const largo_param *p)
{
    if (!is_shared(group, p)) return at;
    for (int32_t i = 0; i < largo__segments(p); i++) {
        largo__shared *shared = &s->plan.shared[at++];
        memset(shared, 0, sizeof *shared);
        shared->family = largo__param_family(group->hyper, p);
        shared->count = largo__segment_part(p, i).count;
        shared->unit = LARGO__NO_UNIT;
        if (!shared->family->is_matrix || !shared->count) continue;
        const largo__view view = largo__segment_view(p);
        shared->matrices = view.matrices;
        shared->rows = view.rows;
        shared->cols = view.cols;
    }
    return at;
}

static void add_untold(largo__stepper *s, const largo__group *group, const largo_param *p)
{
    if (!is_untold(group, p)) return;
    const largo__pass *pass = segment_pass_of(group, p);
    const double weight = pass && pass->terms > 1 ? 0.0 : (double)NAN;
    const double update = pass ? 0.0 : (double)NAN;
    const largo__untold untold = {p->stats, {weight, update, 1.0, 0.0}, largo__segments(p)};
    s->untold[s->n_untold++] = untold;
}

static void fill(largo__stepper *s, size_t n_groups, const largo__group groups[])
{
    size_t unit = 0, shared = 0, active = 0;
    uint32_t number = 0;
    int was_shared = 0;
    s->n_planned = s->n_untold = 0;
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++, number++) {
            const largo_param *p = &groups[g].params[i];
            const size_t first_shared = shared, first = unit;
            const int is_sharded = largo__is_sharded(p) && !(p->flags & LARGO_PARAM_FROZEN);
            if (is_sharded && !s->is_sharded) s->sharded_param = number;
            s->is_sharded |= is_sharded;
            shared = add_shared(s, shared, &groups[g], p);
            if (!largo__is_active(p)) continue;
            const uint32_t no_decay = (p->flags & LARGO_PARAM_NO_DECAY) != 0;
            const largo__planned planned = {
                p->step, 0, &s->each_t[active++], 1, number, (uint32_t)g, no_decay, 1, 0, 0, 0};
            s->planned[s->n_planned] = planned;
            unit = add_units(s, unit, first_shared, &groups[g], p);
            end_planned(s, (uint32_t)(unit - first), is_shared(&groups[g], p), &was_shared);
            add_untold(s, &groups[g], p);
        }
}

static largo_status check_all(largo_ctx *ctx, size_t n_groups, const largo__group groups[])
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++) LARGO__TRY(largo__param_check(&groups[g], i, 1));
    return largo__overlap_check(ctx, n_groups, groups);
}

/* One block for all arrays, each at a multiple of 64 bytes. */
static largo_status allocate(largo_ctx *ctx, largo__stepper *s, const sizes *n, size_t groups)
{
    enum { ARRAYS = 8 };
    const size_t size[ARRAYS] = {largo__size(n->units, sizeof(largo__unit), 64),
                                 largo__size(n->planned, sizeof(largo__constants), 64),
                                 largo__size(groups, sizeof(largo__group_scan), 64),
                                 largo__size(n->planned, sizeof(largo__planned), 64),
                                 largo__size(n->shared, sizeof(largo__shared), 64),
                                 largo__size(n->untold, sizeof(largo__untold), 64),
                                 largo__size(n->units, sizeof(uint32_t), 64),
                                 largo__size(n->planned, sizeof(int64_t), 64)};
    size_t at[ARRAYS], bytes = 0;
    for (int i = 0; i < ARRAYS; i++) {
        at[i] = bytes;
        bytes = largo__size(size[i] / 64, 64, bytes);
    }
    char *block = bytes == SIZE_MAX ? NULL : largo__host_alloc(ctx, bytes);
    if (!block) return largo__fail(LARGO_ERR_MEMORY, "no memory for a plan, %zu bytes", bytes);
    s->block = block;
    s->bytes = bytes;
    s->plan.unit = (largo__unit *)(block + at[0]);
    s->plan.constants = (largo__constants *)(block + at[1]);
    s->plan.group = (largo__group_scan *)(block + at[2]);
    s->planned = (largo__planned *)(block + at[3]);
    s->plan.shared = (largo__shared *)(block + at[4]);
    s->untold = (largo__untold *)(block + at[5]);
    s->plan.constants_of = (uint32_t *)(block + at[6]);
    s->each_t = (int64_t *)(block + at[7]);
    s->plan.units = n->units;
    s->plan.groups = groups;
    s->plan.n_shared = n->shared;
    return LARGO_OK;
}

largo_status largo__stepper_make(largo_ctx *ctx, size_t n_groups, const largo__group groups[],
                                 largo__stepper *stepper)
{
    memset(stepper, 0, sizeof *stepper);
    LARGO__TRY(check_all(ctx, n_groups, groups));
    const sizes n = count(n_groups, groups);
    largo__stepper s = {0};
    LARGO__TRY(allocate(ctx, &s, &n, n_groups));
    fill(&s, n_groups, groups);
    const largo_status status = ctx->backend->plan(ctx, &s.plan);
    if (status != LARGO_OK) {
        largo__host_free(ctx, s.block, s.bytes);
        return status;
    }
    *stepper = s;
    return LARGO_OK;
}

void largo__stepper_free(largo_ctx *ctx, largo__stepper *stepper)
{
    if (!stepper->block) return;
    ctx->backend->unplan(ctx, &stepper->plan);
    largo__host_free(ctx, stepper->block, stepper->bytes);
    memset(stepper, 0, sizeof *stepper);
}

static void fill_scan(largo__stepper *s, size_t n_groups, const largo__group groups[])
{
    s->plan.scan = NULL;
    for (size_t g = 0; g < n_groups; g++) {
        largo__group_scan *scan = &s->plan.group[g];
        largo__group_scan_fill(groups[g].hyper, scan);
        if (scan->non_finite != LARGO_NON_FINITE_PROPAGATE || scan->max_grad_norm < INFINITY)
            s->plan.scan = &largo__families[LARGO__FAMILY_scan].pass[0];
    }
}

/* Why a step was not applied. */
static largo_status refused(const largo__stepper *s, const largo__result *result, int64_t param,
                            int64_t element)
{
    const largo_status status = result->error ? LARGO_ERR_NON_FINITE : LARGO_SKIPPED;
    if (result->bad_factor)
        return largo__fail(status,
                           "*grad_factor of group %u is %g; it must be > 0 and finite; nothing was "
                           "written",
                           (unsigned)result->bad_group, (double)result->bad_value);
    if (param < 0)
        return largo__fail(status, "a gradient on another rank is not finite or too large; nothing "
                                   "was written");
    const double limit = s->plan.group[s->plan.unit[result->bad_unit].group].limit;
    return largo__fail(
        status,
        "the gradient of parameter %lld is %g at element %lld; scaled and clipped it "
        "must be below %g in magnitude; nothing was written",
        (long long)param, (double)result->bad_value, (long long)element, limit);
}

/* What largo_last_outcome tells, and the status. Counts move only if the step was applied. */
static largo_status conclude(largo_ctx *ctx, largo__stepper *s)
{
    const largo__result *result = &s->result;
    largo_outcome *o = &ctx->outcome;
    memset(o, 0, sizeof *o);
    o->struct_size = sizeof *o;
    o->skipped = result->bad;
    o->scanned = s->plan.scan != NULL && !result->bad_factor;
    o->bad_param = o->bad_element = -1;
    o->grad_norm = o->scanned ? result->grad_norm : NAN;
    o->clip = s->plan.groups ? s->plan.group[0].clip : 1.0;
    ctx->has_outcome = 1;
    if (!result->bad) {
        largo__count_steps(s);
        for (size_t i = 0; i < s->n_untold; i++)
            for (int32_t k = 0; k < s->untold[i].segments; k++)
                s->untold[i].stats[k] = s->untold[i].told;
        return LARGO_OK;
    }
    if (!result->bad_factor && result->bad_unit != LARGO__NO_UNIT) {
        const largo__unit *unit = &s->plan.unit[result->bad_unit];
        o->bad_param = unit->param;
        o->bad_element = unit->first + result->bad_element;
    }
    return refused(s, result, o->bad_param, o->bad_element);
}

/* A factor that forbids the step, as a loss scaler leaves it after an overflow. */
static void check_factors(largo__stepper *s, size_t n_groups, const largo__group groups[])
{
    for (size_t g = 0; g < n_groups; g++) {
        const float *factor = groups[g].hyper->grad_factor;
        if (!factor || (*factor > 0.0f && isfinite(*factor))) continue;
        if (!s->result.bad_factor) {
            s->result.bad_group = g;
            s->result.bad_value = *factor;
        }
        s->result.bad = s->result.bad_factor = 1;
        s->result.error |= groups[g].hyper->non_finite == LARGO_NON_FINITE_ERROR;
    }
}

/* Everything before the first round. `joint`: the caller or the context's callback reduces. */
static largo_status begin(largo__stepper *s, size_t n_groups, const largo__group groups[],
                          int64_t step, int joint)
{
    s->round = 0;
    s->is_written = 0;
    LARGO__TRY(largo__number_steps(s, groups, step));
    memset(&s->result, 0, sizeof s->result);
    s->plan.joint = joint;
    fill_scan(s, n_groups, groups);
    check_factors(s, n_groups, groups);
    if (joint || !s->is_sharded || !(s->plan.n_shared || s->plan.scan)) return LARGO_OK;
    return largo__fail(LARGO_ERR_STATE,
                       "parameter %u is SHARDED and a statistic of it must be reduced, but the "
                       "context has no all_reduce; give it one, or step by rounds",
                       (unsigned)s->sharded_param);
}

/* The next stretch of work, and what it asks to reduce. */
static largo_status advance(largo_ctx *ctx, largo__stepper *s, largo_reduction *next)
{
    if (!s->result.bad)
        LARGO__TRY(ctx->backend->round(ctx, &s->plan, s->round == 0, &s->result, next));
    s->is_written = next->n && s->result.written;
    s->round = next->n ? s->round + 1 : 0;
    return next->n ? LARGO_OK : conclude(ctx, s);
}

static largo_status make_round(largo_ctx *ctx, largo__stepper *s, size_t n_groups,
                               const largo__group groups[], int64_t step, int32_t round, int joint,
                               largo_reduction *next)
{
    memset(next, 0, sizeof *next);
    const largo__fpenv previous = largo__fpenv_enter();
    largo_status status = round ? LARGO_OK : begin(s, n_groups, groups, step, joint);
    if (status == LARGO_OK) status = advance(ctx, s, next);
    largo__fpenv_leave(previous);
    return status;
}

largo_status largo__stepper_run(largo_ctx *ctx, largo__stepper *s, size_t n_groups,
                                const largo__group groups[], int64_t step)
{
    const largo_ctx_options *host = &ctx->options;
    for (int32_t round = 0;; round++) {
        largo_reduction r;
        const largo_status status =
            make_round(ctx, s, n_groups, groups, step, round, host->all_reduce != NULL, &r);
        if (!r.n) return status;
        const int failure =
            host->all_reduce(host->all_reduce_user, r.values, r.n, r.dtype, r.op, host->stream);
        if (!failure) continue;
        s->round = 0;
        return largo__fail(
            LARGO_ERR_CALLBACK, "all_reduce of %zu values returned %d; %s", r.n, failure,
            s->is_written ? "moments are written, values are not" : "nothing was written");
    }
}

largo_status largo__stepper_round(largo_ctx *ctx, largo__stepper *s, size_t n_groups,
                                  const largo__group groups[], int64_t step, int32_t round,
                                  largo_reduction *reduction)
{
    if (round && round != s->round)
        return largo__fail(LARGO_ERR_STATE, "round is %d; the next one is %d", (int)round,
                           (int)s->round);
    return make_round(ctx, s, n_groups, groups, step, round, 1, reduction);
}
