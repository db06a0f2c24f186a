/* object.c - the optimizer object: groups, state of its own, a schedule for each group. */
#include <stdio.h>
#include <string.h>
#include "hyper.h"
#include "schedule.h"
#include "stepper.h"
#include "../core/fpenv.h"
#include "../core/status.h"

/* State that the object made for one parameter. */
typedef struct owned {
    void *memory; /* all its own slots; NULL: none */
    size_t bytes;
    uint32_t slots;        /* bit s: slot s is ours */
    uint32_t step_is_ours; /* its count, unless the caller brought one, is in group.counts */
} owned;

typedef struct group {
    largo_hyper hyper;   /* the caller reads and writes this one */
    largo_hyper planned; /* as of the plan */
    size_t n;
    largo_param *params; /* copies, with state and step filled in */
    int64_t *counts;     /* side by side: every step reads and writes them all */
    owned *own;
    size_t bytes;            /* of params, counts, own and shards, one block */
    largo_schedule schedule; /* its milestones are a copy of our own */
    int has_schedule;
    char where[32];
} group;

struct largo_optim {
    largo_ctx *ctx;
    group **groups;
    largo__group *views; /* what a stepper wants to see of them */
    size_t n, bytes;
    largo__stepper stepper;
    int64_t steps;
    int is_torn; /* a step ended in the middle of writing */
};

static largo_status no_memory(const char *what, size_t bytes)
{
    return largo__fail(LARGO_ERR_MEMORY, "no memory for %s, %zu bytes", what, bytes);
}

static void free_milestones(largo_ctx *ctx, largo_schedule *schedule)
{
    largo__host_free(ctx, (void *)schedule->milestones,
                     schedule->n_milestones * sizeof *schedule->milestones);
}

static void free_group(largo_ctx *ctx, group *g)
{
    if (!g) return;
    for (size_t i = 0; g->own && i < g->n; i++) largo__free(ctx, g->own[i].memory, g->own[i].bytes);
    free_milestones(ctx, &g->schedule);
    largo__host_free(ctx, g->params, g->bytes);
    largo__host_free(ctx, g, sizeof *g);
}

/* Make the state of parameter i that is not there yet. Slots of one parameter share a block, each
 * shifted against the last so that they do not meet at the same offset in a page. */
static largo_status make_state(largo_ctx *ctx, group *g, size_t i, const largo_hyper *hyper)
{
    enum { STAGGER = 320 };
    largo_param *p = &g->params[i];
    owned *own = &g->own[i];
    if (p->flags & LARGO_PARAM_FROZEN || own->memory) return LARGO_OK;
    const largo__family *family = largo__param_family(hyper, p);
    size_t at[LARGO__MAX_STATE] = {0}, bytes = 0;
    uint32_t slots = 0;
    for (int s = 0; s < largo__slots(family); s++) {
        if (p->state[s]) continue;
        const largo_tensor t = largo__slot_tensor(family, s, p);
        at[s] = bytes;
        bytes = largo__size((size_t)largo__numel(&t) * sizeof(float) / 64 + 1, 64, bytes + STAGGER);
        slots |= 1u << s;
    }
    if (!slots) return LARGO_OK;
    char *memory = largo__alloc(ctx, bytes);
    if (!memory) return no_memory("optimizer state", bytes);
    ctx->backend->zero(memory, bytes);
    own->memory = memory;
    own->bytes = bytes;
    own->slots = slots;
    for (int s = 0; s < largo__slots(family); s++)
        if (slots >> s & 1) p->state[s] = memory + at[s];
    return LARGO_OK;
}

/* A group with copies of the descriptors, checked, state made. */
static largo_status make_group(largo_ctx *ctx, const largo_hyper *hyper, size_t n,
                               const largo_param params[], size_t number, group **out)
{
    group *g = largo__host_alloc(ctx, sizeof *g);
    if (!g) return no_memory("a group", sizeof *g);
    memset(g, 0, sizeof *g);
    *out = g;
    snprintf(g->where, sizeof g->where, "group %zu: ", number);
    g->hyper = g->planned = *hyper;
    g->n = n;
    const largo__group view = {g->where, &g->hyper, n, params};
    for (size_t i = 0; i < n; i++) LARGO__TRY(largo__param_check(&view, i, 0));
    g->bytes = largo__size(
        n, sizeof *g->params + sizeof *g->counts + sizeof *g->own + sizeof(largo_shard), 0);
    g->params = largo__host_alloc(ctx, g->bytes);
    if (!g->params) return no_memory("a group", g->bytes);
    g->counts = (int64_t *)(g->params + n);
    g->own = (owned *)(g->counts + n);
    memset(g->counts, 0, n * (sizeof *g->counts + sizeof *g->own));
    largo__params_copy(g->params, (largo_shard *)(g->own + n), n, params);
    for (size_t i = 0; i < n; i++) {
        g->own[i].step_is_ours = !params[i].step;
        if (!params[i].step) g->params[i].step = &g->counts[i];
    }
    for (size_t i = 0; i < n; i++) LARGO__TRY(make_state(ctx, g, i, hyper));
    return LARGO_OK;
}

/* What the stepper sees of all groups; hyper as the plan has it. */
static void show(group *const groups[], size_t n, largo__group views[])
{
    for (size_t i = 0; i < n; i++) {
        const largo__group view = {groups[i]->where, &groups[i]->planned, groups[i]->n,
                                   groups[i]->params};
        views[i] = view;
    }
}

largo_status largo_optim_create(largo_ctx *ctx, largo_optim **optim)
{
    if (!optim) return largo__fail(LARGO_ERR_ARGUMENT, "optim is NULL");
    *optim = NULL;
    if (!ctx) return largo__fail(LARGO_ERR_ARGUMENT, "ctx is NULL");
    largo_optim *o = largo__host_alloc(ctx, sizeof *o);
    if (!o) return no_memory("an optimizer", sizeof *o);
    memset(o, 0, sizeof *o);
    const largo_status status = largo__stepper_make(ctx, 0, NULL, &o->stepper);
    if (status != LARGO_OK) {
        largo__host_free(ctx, o, sizeof *o);
        return status;
    }
    o->ctx = ctx;
    largo__ctx_hold(ctx);
    *optim = o;
    return LARGO_OK;
}

void largo_optim_destroy(largo_optim *o)
{
    if (!o) return;
    largo_ctx *ctx = o->ctx;
    largo__stepper_free(ctx, &o->stepper);
    for (size_t g = 0; g < o->n; g++) free_group(ctx, o->groups[g]);
    largo__host_free(ctx, o->groups, o->bytes);
    largo__host_free(ctx, o, sizeof *o);
    largo_ctx_destroy(ctx);
}

/* A new plan in the place of the old one. */
static void take_stepper(largo_optim *o, const largo__stepper *stepper)
{
    o->is_torn |= o->stepper.is_written;
    largo__stepper_free(o->ctx, &o->stepper);
    o->stepper = *stepper;
}

/* The object with one more group: new arrays and a new plan, or nothing changed. */
static largo_status append(largo_optim *o, group *g)
{
    const size_t n = o->n + 1;
    const size_t bytes = largo__size(n, sizeof(group *) + sizeof(largo__group), 0);
    group **groups = largo__host_alloc(o->ctx, bytes);
    if (!groups) return no_memory("a group", bytes);
    if (o->n) memcpy(groups, o->groups, o->n * sizeof *groups);
    groups[o->n] = g;
    largo__group *views = (largo__group *)(groups + n);
    show(groups, n, views);
    largo__stepper stepper;
    const largo_status status = largo__stepper_make(o->ctx, n, views, &stepper);
    if (status != LARGO_OK) {
        largo__host_free(o->ctx, groups, bytes);
        return status;
    }
    take_stepper(o, &stepper);
    largo__host_free(o->ctx, o->groups, o->bytes);
    o->groups = groups;
    o->views = views;
    o->bytes = bytes;
    o->n = n;
    return LARGO_OK;
}

largo_status largo_optim_add_group(largo_optim *o, const largo_hyper *hyper, size_t n,
                                   const largo_param params[], size_t *number)
{
    if (!o) return largo__fail(LARGO_ERR_ARGUMENT, "optim is NULL");
    if (n && !params) return largo__fail(LARGO_ERR_ARGUMENT, "params is NULL but n is %zu", n);
    if (n > UINT32_MAX)
        return largo__fail(LARGO_ERR_ARGUMENT, "n is %zu; it must be below 2^32", n);
    largo_hyper ours;
    LARGO__TRY(largo__hyper_read(hyper, "hyper", &ours));
    group *g = NULL;
    largo_status status = make_group(o->ctx, &ours, n, params, o->n, &g);
    if (status == LARGO_OK) status = append(o, g);
    if (status != LARGO_OK) {
        free_group(o->ctx, g);
        return status;
    }
    if (number) *number = o->n - 1;
    return LARGO_OK;
}

largo_hyper *largo_optim_hyper(largo_optim *o, size_t number)
{
    return o && number < o->n ? &o->groups[number]->hyper : NULL;
}

static largo_status find_group(const largo_optim *o, size_t number, group **g)
{
    if (!o) return largo__fail(LARGO_ERR_ARGUMENT, "optim is NULL");
    if (number >= o->n)
        return largo__fail(LARGO_ERR_ARGUMENT, "group is %zu; the object has %zu", number, o->n);
    *g = o->groups[number];
    return LARGO_OK;
}

static largo_status check_same_tensor(const group *g, size_t i, const largo_tensor *now)
{
    const largo_tensor *was = &g->params[i].value;
    int same = now->ndim == was->ndim && now->dtype == was->dtype;
    for (int32_t d = 0; same && d < was->ndim; d++) same = now->shape[d] == was->shape[d];
    if (same) return LARGO_OK;
    return largo__fail(LARGO_ERR_SHAPE,
                       "%sparams[%zu].value differs from the one added in dtype or shape", g->where,
                       i);
}

static largo_status check_same_shard(const group *g, size_t i, const largo_shard *now)
{
    if (largo__shard_same(g->params[i].shard, now)) return LARGO_OK;
    return largo__fail(LARGO_ERR_SHAPE, "%sparams[%zu].shard differs from the one added", g->where,
                       i);
}

/* Descriptor i with new addresses: state and count of ours stay. */
static largo_status rebind_param(const group *g, size_t i, const largo_param *given,
                                 largo_param *out)
{
    LARGO__TRY(check_same_tensor(g, i, &given->value));
    if (given->segments != g->params[i].segments)
        return largo__fail(LARGO_ERR_SHAPE, "%sparams[%zu].segments is %d; it must stay %d",
                           g->where, i, (int)given->segments, (int)g->params[i].segments);
    LARGO__TRY(check_same_shard(g, i, given->shard));
    *out = *given;
    out->shard = g->params[i].shard;
    for (int s = 0; s < LARGO__MAX_STATE; s++) {
        if (g->own[i].slots >> s & 1)
            out->state[s] = g->params[i].state[s];
        else if (g->params[i].state[s] && !given->state[s])
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "%sparams[%zu].state[%d] is NULL; it was the caller's and must stay "
                               "so",
                               g->where, i, s);
    }
    if (g->own[i].step_is_ours)
        out->step = g->params[i].step;
    else if (!out->step)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%sparams[%zu].step is NULL; it was the caller's and must stay so",
                           g->where, i);
    return LARGO_OK;
}

/* A new plan with other descriptors in group g; swaps them in, or changes nothing. */
static largo_status replan_with(largo_optim *o, group *g, largo_param *params)
{
    largo_param *before = g->params;
    largo__stepper stepper;
    g->params = params;
    largo_status status = LARGO_OK;
    for (size_t i = 0; status == LARGO_OK && i < g->n; i++) {
        const largo__group view = {g->where, &g->planned, g->n, params};
        status = largo__param_check(&view, i, 0);
        if (status == LARGO_OK) status = make_state(o->ctx, g, i, &g->planned); /* unfrozen now */
    }
    show(o->groups, o->n, o->views);
    if (status == LARGO_OK) status = largo__stepper_make(o->ctx, o->n, o->views, &stepper);
    g->params = before;
    for (size_t i = 0; i < g->n; i++) /* state that was made stays, for the next try */
        for (int s = 0; s < LARGO__MAX_STATE; s++)
            if (g->own[i].slots >> s & 1) before[i].state[s] = params[i].state[s];
    if (status == LARGO_OK) {
        memcpy(g->params, params, g->n * sizeof *params);
        take_stepper(o, &stepper);
    }
    show(o->groups, o->n, o->views);
    return status;
}

largo_status largo_optim_rebind(largo_optim *o, size_t number, size_t n, const largo_param params[])
{
    group *g = NULL;
    LARGO__TRY(find_group(o, number, &g));
    if (n != g->n)
        return largo__fail(LARGO_ERR_ARGUMENT, "n is %zu; the group has %zu parameters", n, g->n);
    if (n && !params) return largo__fail(LARGO_ERR_ARGUMENT, "params is NULL but n is %zu", n);
    const size_t bytes = largo__size(n, sizeof *params, 0);
    largo_param *made = largo__host_alloc(o->ctx, bytes);
    if (!made) return no_memory("descriptors", bytes);
    largo_status status = LARGO_OK;
    for (size_t i = 0; status == LARGO_OK && i < n; i++)
        status = rebind_param(g, i, &params[i], &made[i]);
    if (status == LARGO_OK) status = replan_with(o, g, made);
    largo__host_free(o->ctx, made, bytes);
    return status;
}

/* The group's hyper-parameters for the next step, checked. */
static largo_status take_hyper(const largo_optim *o, const group *g, largo_hyper *ours)
{
    char name[48];
    snprintf(name, sizeof name, "%shyper", g->where);
    if (g->hyper.struct_size != sizeof *ours)
        return largo__fail(LARGO_ERR_ARGUMENT, "%s.struct_size is %zu; it must stay %zu", name,
                           g->hyper.struct_size, sizeof *ours);
    largo_hyper next = g->hyper;
    if (g->has_schedule) next.lr = largo__schedule_at(&g->schedule, o->steps + 1);
    LARGO__TRY(largo__hyper_read(&next, name, ours));
    if (ours->algo != g->planned.algo)
        return largo__fail(LARGO_ERR_ARGUMENT, "%s.algo is %d; it must stay %d", name,
                           (int)ours->algo, (int)g->planned.algo);
    return LARGO_OK;
}

/* A plan for hyper-parameters that the last one does not fit. */
static largo_status replan(largo_optim *o)
{
    for (size_t i = 0; i < o->n; i++)
        for (size_t p = 0; p < o->groups[i]->n; p++)
            LARGO__TRY(make_state(o->ctx, o->groups[i], p, &o->groups[i]->hyper));
    for (size_t i = 0; i < o->n; i++) o->views[i].hyper = &o->groups[i]->hyper;
    largo__stepper stepper;
    const largo_status status = largo__stepper_make(o->ctx, o->n, o->views, &stepper);
    show(o->groups, o->n, o->views);
    if (status == LARGO_OK) take_stepper(o, &stepper);
    return status;
}

/* Take hyper-parameters that the caller may have changed, all or none. */
static largo_status take_hypers(largo_optim *o)
{
    int same = 1;
    largo_hyper ours;
    for (size_t i = 0; i < o->n; i++) {
        LARGO__TRY(take_hyper(o, o->groups[i], &ours));
        same &= largo__hyper_same_plan(&ours, &o->groups[i]->planned);
    }
    if (!same) LARGO__TRY(replan(o));
    for (size_t i = 0; i < o->n; i++) {
        group *g = o->groups[i];
        (void)take_hyper(o, g, &g->planned);
        g->hyper.lr = g->planned.lr;
    }
    return LARGO_OK;
}

/* May a step begin, and with which hyper-parameters? */
static largo_status prepare(largo_optim *o)
{
    o->is_torn |= o->stepper.is_written;
    if (o->is_torn)
        return largo__fail(LARGO_ERR_STATE, "an earlier step ended between two reductions, with "
                                            "moments written and values not; make the object anew");
    if (o->steps == INT64_MAX - 1)
        return largo__fail(LARGO_ERR_STATE, "2^63 - 2 steps were made, the most there can be");
    const largo__fpenv previous = largo__fpenv_enter();
    const largo_status status = take_hypers(o);
    largo__fpenv_leave(previous);
    return status;
}

largo_status largo_optim_step(largo_optim *o)
{
    if (!o) return largo__fail(LARGO_ERR_ARGUMENT, "optim is NULL");
    LARGO__TRY(prepare(o));
    const largo_status status =
        largo__stepper_run(o->ctx, &o->stepper, o->n, o->views, o->steps + 1);
    if (status == LARGO_OK) o->steps++;
    return status;
}

largo_status largo_optim_step_round(largo_optim *o, int32_t round, largo_reduction *reduction)
{
    if (!o) return largo__fail(LARGO_ERR_ARGUMENT, "optim is NULL");
    if (!reduction) return largo__fail(LARGO_ERR_ARGUMENT, "reduction is NULL");
    reduction->n = 0;
    if (round == 0) LARGO__TRY(prepare(o));
    const largo_status status =
        largo__stepper_round(o->ctx, &o->stepper, o->n, o->views, o->steps + 1, round, reduction);
    if (status == LARGO_OK && !reduction->n) o->steps++;
    return status;
}

int64_t largo_optim_step_count(const largo_optim *o)
{
    return o ? o->steps : -1;
}

int64_t largo_optim_param_step(const largo_optim *o, size_t number, size_t index)
{
    if (!o || number >= o->n || index >= o->groups[number]->n) return -1;
    return *o->groups[number]->params[index].step;
}

largo_status largo_optim_slot(largo_optim *o, size_t number, size_t index, const char *name,
                              largo_tensor *view)
{
    group *g = NULL;
    LARGO__TRY(find_group(o, number, &g));
    if (index >= g->n)
        return largo__fail(LARGO_ERR_ARGUMENT, "index is %zu; group %zu has %zu parameters", index,
                           number, g->n);
    if (!name) return largo__fail(LARGO_ERR_ARGUMENT, "name of the slot is NULL");
    if (!view) return largo__fail(LARGO_ERR_ARGUMENT, "view is NULL");
    const largo_param *p = &g->params[index];
    const largo__family *family = largo__param_family(&g->planned, p);
    for (int s = 0; s < largo__slots(family); s++) {
        if (strcmp(name, family->slot_name[s]) != 0) continue;
        *view = largo__slot_tensor(family, s, p);
        view->data = p->state[s];
        return LARGO_OK;
    }
    return largo__fail(LARGO_ERR_ARGUMENT, "\"%.40s\" is not a state slot of %s", name,
                       family->name);
}

/* Put a copy in the place of the caller's milestones. */
static largo_status copy_milestones(largo_ctx *ctx, largo_schedule *schedule)
{
    if (!schedule->milestones) return LARGO_OK;
    const size_t bytes = largo__size(schedule->n_milestones, sizeof *schedule->milestones, 0);
    int64_t *copy = largo__host_alloc(ctx, bytes);
    if (!copy) return no_memory("milestones", bytes);
    memcpy(copy, schedule->milestones, bytes);
    schedule->milestones = copy;
    return LARGO_OK;
}

largo_status largo_optim_set_schedule(largo_optim *o, size_t number, const largo_schedule *schedule)
{
    group *g = NULL;
    LARGO__TRY(find_group(o, number, &g));
    largo_schedule next = LARGO_SCHEDULE;
    if (schedule) {
        LARGO__TRY(largo__schedule_read(schedule, &next));
        LARGO__TRY(copy_milestones(o->ctx, &next));
    }
    free_milestones(o->ctx, &g->schedule);
    g->schedule = next;
    g->has_schedule = schedule != NULL;
    return LARGO_OK;
}
