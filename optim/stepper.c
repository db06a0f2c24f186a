/* stepper.c - from checked parameters to units of work, and one step over them. */
#include <math.h>
#include <string.h>
#include "constants.h"
#include "stepper.h"
#include "../core/fpenv.h"
#include "../core/status.h"

static int32_t n_segments(const largo_param *p)
{
    return p->segments > 1 ? p->segments : 1;
}

static void count(size_t n_groups, const largo__group groups[], size_t *units, size_t *planned)
{
    *units = *planned = 0;
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++) {
            const largo_param *p = &groups[g].params[i];
            if (!largo__is_active(p)) continue;
            ++*planned;
            if (largo__numel(&p->value)) *units += (size_t)n_segments(p);
        }
}

/* The last two dimensions of a slice are a matrix, leading ones count matrices. */
static void set_view(largo__unit *unit, const largo_param *p)
{
    const largo_tensor *t = &p->value;
    unit->cols = t->shape[t->ndim - 1];
    unit->rows = t->shape[t->ndim - 2];
    if (t->ndim == 2) unit->rows /= n_segments(p);
    unit->matrices = unit->n / (unit->rows * unit->cols);
}

/* The units of one parameter. State of a segment begins where that of the segments before ends. */
static size_t add_units(largo__unit *out, const largo__group *group, const largo_param *p)
{
    const largo__family *family = largo__family_of(group->hyper, p->flags, p->value.ndim);
    const int64_t numel = largo__numel(&p->value);
    const int32_t segments = n_segments(p);
    if (!numel) return 0;
    for (int32_t s = 0; s < segments; s++) {
        largo__unit *unit = &out[s];
        memset(unit, 0, sizeof *unit);
        unit->family = family;
        unit->n = numel / segments;
        unit->first = unit->n * s;
        unit->p = (float *)p->value.data + unit->first;
        unit->g = (float *)p->grad.data + unit->first;
        unit->grad_scratch = (p->flags & LARGO_PARAM_GRAD_SCRATCH) != 0;
        for (int i = 0; i < largo__slots(family); i++) {
            const largo_tensor t = largo__slot_tensor(family, i, &p->value, p->segments);
            unit->state[i] = (float *)p->state[i] + largo__numel(&t) / segments * s;
        }
        if (family->is_matrix) set_view(unit, p);
    }
    return (size_t)segments;
}

static void fill(largo__stepper *s, size_t n_groups, const largo__group groups[])
{
    size_t unit = 0, planned = 0;
    uint32_t number = 0;
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++, number++) {
            const largo_param *p = &groups[g].params[i];
            if (!largo__is_active(p)) continue;
            largo__planned *q = &s->planned[planned++];
            q->step = p->step;
            q->param = number;
            q->group = (uint32_t)g;
            q->no_decay = (p->flags & LARGO_PARAM_NO_DECAY) != 0;
            q->unit_begin = unit;
            unit += add_units(&s->plan.unit[unit], &groups[g], p);
            q->unit_end = unit;
            for (size_t u = q->unit_begin; u < unit; u++) {
                s->plan.unit[u].group = (uint32_t)g;
                s->plan.unit[u].param = number;
            }
        }
}

static largo_status check_all(largo_ctx *ctx, size_t n_groups, const largo__group groups[])
{
    for (size_t g = 0; g < n_groups; g++)
        for (size_t i = 0; i < groups[g].n; i++) LARGO__TRY(largo__param_check(&groups[g], i, 1));
    return largo__overlap_check(ctx, n_groups, groups);
}

/* One block for all arrays, each at a multiple of 64 bytes. */
static largo_status allocate(largo_ctx *ctx, largo__stepper *s, size_t units, size_t groups,
                             size_t planned)
{
    const size_t sizes[4] = {largo__size(units, sizeof(largo__unit), 64),
                             largo__size(units, sizeof(largo__constants), 64),
                             largo__size(groups, sizeof(largo__group_scan), 64),
                             largo__size(planned, sizeof(largo__planned), 64)};
    size_t at[4], bytes = 0;
    for (int i = 0; i < 4; i++) {
        at[i] = bytes;
        bytes = largo__size(sizes[i] / 64, 64, bytes);
    }
    char *block = bytes == SIZE_MAX ? NULL : largo__host_alloc(ctx, bytes);
    if (!block) return largo__fail(LARGO_ERR_MEMORY, "no memory for a plan, %zu bytes", bytes);
    s->block = block;
    s->bytes = bytes;
    s->plan.unit = (largo__unit *)(block + at[0]);
    s->plan.constants = (largo__constants *)(block + at[1]);
    s->plan.group = (largo__group_scan *)(block + at[2]);
    s->planned = (largo__planned *)(block + at[3]);
    s->plan.units = units;
    s->plan.groups = groups;
    s->n_planned = planned;
    return LARGO_OK;
}

largo_status largo__stepper_make(largo_ctx *ctx, size_t n_groups, const largo__group groups[],
                                 largo__stepper *stepper)
{
    memset(stepper, 0, sizeof *stepper);
    LARGO__TRY(check_all(ctx, n_groups, groups));
    size_t units, planned;
    count(n_groups, groups, &units, &planned);
    largo__stepper s = {0};
    LARGO__TRY(allocate(ctx, &s, units, n_groups, planned));
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

/* The number of each parameter's step, checked: counts may have been changed since the plan. */
static largo_status number_steps(largo__stepper *s, int64_t step)
{
    for (size_t i = 0; i < s->n_planned; i++) {
        largo__planned *q = &s->planned[i];
        q->t = step;
        if (!q->step) continue;
        if (*q->step < 0 || *q->step == INT64_MAX)
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "step of parameter %u counts %lld; it must be >= 0 and < 2^63 - 1",
                               (unsigned)q->param, (long long)*q->step);
        q->t = *q->step + 1;
    }
    return LARGO_OK;
}

/* Constants for each distinct (group, decay, step). Parameters with the same are mostly neighbours,
 * so looking back a few entries finds nearly all. */
static void fill_constants(largo__stepper *s, const largo__group groups[])
{
    enum { LOOK_BACK = 4 };
    const largo__planned *made[LOOK_BACK] = {0};
    uint32_t index[LOOK_BACK] = {0};
    size_t n = 0, next = 0;
    for (size_t i = 0; i < s->n_planned; i++) {
        const largo__planned *q = &s->planned[i];
        if (q->unit_begin == q->unit_end) continue;
        size_t m = 0;
        while (m < LOOK_BACK && !(made[m] && made[m]->group == q->group && made[m]->t == q->t &&
                                  made[m]->no_decay == q->no_decay))
            m++;
        if (m == LOOK_BACK) {
            m = next++ % LOOK_BACK;
            made[m] = q;
            index[m] = (uint32_t)n;
            s->plan.constants[n].group = q->group;
            largo__constants_fill(groups[q->group].hyper, (int)q->no_decay, q->t,
                                  &s->plan.constants[n++]);
        }
        for (size_t u = q->unit_begin; u < q->unit_end; u++) s->plan.unit[u].constants = index[m];
    }
    s->plan.n_constants = n;
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

/* What largo_last_outcome tells, and the status. Counts move only if the step was applied. */
static largo_status conclude(largo_ctx *ctx, largo__stepper *s, const largo__result *result)
{
    largo_outcome *o = &ctx->outcome;
    memset(o, 0, sizeof *o);
    o->struct_size = sizeof *o;
    o->skipped = result->bad;
    o->scanned = s->plan.scan != NULL;
    o->bad_param = o->bad_element = -1;
    o->grad_norm = s->plan.scan ? result->grad_norm : NAN;
    o->clip = s->plan.groups ? s->plan.group[0].clip : 1.0;
    ctx->has_outcome = 1;
    if (!result->bad) {
        for (size_t i = 0; i < s->n_planned; i++)
            if (s->planned[i].step) *s->planned[i].step = s->planned[i].t;
        return LARGO_OK;
    }
    const largo__unit *unit = &s->plan.unit[result->bad_unit];
    o->bad_param = unit->param;
    o->bad_element = unit->first + result->bad_element;
    return largo__fail(
        result->error ? LARGO_ERR_NON_FINITE : LARGO_SKIPPED,
        "the gradient of parameter %lld is %g at element %lld; scaled and clipped it "
        "must be below %g in magnitude; nothing was written",
        (long long)o->bad_param, (double)result->bad_value, (long long)o->bad_element,
        s->plan.group[unit->group].limit);
}

largo_status largo__stepper_run(largo_ctx *ctx, largo__stepper *s, size_t n_groups,
                                const largo__group groups[], int64_t step)
{
    LARGO__TRY(number_steps(s, step));
    const largo__fpenv previous = largo__fpenv_enter();
    fill_constants(s, groups);
    fill_scan(s, n_groups, groups);
    largo__result result = {0};
    largo_status status = ctx->backend->step(ctx, &s->plan, &result);
    if (status == LARGO_OK) status = conclude(ctx, s, &result);
    largo__fpenv_leave(previous);
    return status;
}
