/* step.c - the functional face: step with the caller's state, and the question which state. */
#include <string.h>
#include "hyper.h"
#include "stepper.h"
#include "../core/status.h"

/* The plan of the last call, with what it was made from. */
typedef struct functional {
    largo__stepper stepper;
    largo_hyper hyper;
    largo_param *params; /* copies of the descriptors, and of shards behind them */
    size_t n, bytes;
    largo_hyper round_hyper; /* of the step that is being made by rounds */
    int64_t round_step;
} functional;

static void forget(largo_ctx *ctx, functional *f)
{
    largo__stepper_free(ctx, &f->stepper);
    largo__host_free(ctx, f->params, f->bytes);
    memset(f, 0, sizeof *f);
}

static void drop_functional(largo_ctx *ctx)
{
    functional *f = ctx->functional;
    forget(ctx, f);
    largo__host_free(ctx, f, sizeof *f);
    ctx->functional = NULL;
}

static largo_status get_functional(largo_ctx *ctx, functional **f)
{
    if (!ctx->functional) {
        functional *made = largo__host_alloc(ctx, sizeof *made);
        if (!made)
            return largo__fail(LARGO_ERR_MEMORY, "no memory for a plan, %zu bytes", sizeof *made);
        memset(made, 0, sizeof *made);
        ctx->functional = made;
        ctx->drop_functional = drop_functional;
    }
    *f = ctx->functional;
    return LARGO_OK;
}

static int is_same(const functional *f, const largo__group *group)
{
    return f->stepper.block && f->n == group->n &&
           largo__hyper_same_plan(&f->hyper, group->hyper) &&
           largo__params_same(f->params, f->n, group->params);
}

/* Plan for these descriptors and remember them. A failure leaves no plan, and nothing else. */
static largo_status replan(largo_ctx *ctx, functional *f, const largo__group *group)
{
    forget(ctx, f);
    functional made = {0};
    made.n = group->n;
    made.hyper = *group->hyper;
    made.bytes = largo__size(group->n, sizeof *made.params + sizeof(largo_shard), 0);
    LARGO__TRY(largo__stepper_make(ctx, 1, group, &made.stepper));
    made.params = largo__host_alloc(ctx, made.bytes);
    if (!made.params) {
        largo__stepper_free(ctx, &made.stepper);
        return largo__fail(LARGO_ERR_MEMORY, "no memory for descriptors, %zu bytes", made.bytes);
    }
    largo__params_copy(made.params, (largo_shard *)(made.params + group->n), group->n,
                       group->params);
    *f = made;
    return LARGO_OK;
}

/* Hyper-parameters, and what a parameter is without its memory. */
static largo_status check_form(const largo_hyper *hyper, const char *name, const largo_param *param,
                               largo_hyper *ours)
{
    LARGO__TRY(largo__hyper_read(hyper, "hyper", ours));
    if (!param) return largo__fail(LARGO_ERR_ARGUMENT, "%s is NULL", name);
    largo_param form = {0};
    form.value = param->value;
    form.value.data = &form; /* not NULL */
    form.segments = param->segments;
    form.flags = param->flags;
    form.shard = param->shard;
    const largo__group group = {"", ours, 1, &form};
    return largo__param_check(&group, 0, 0);
}

/* The arguments of a call: *group is what the stepper takes. */
static largo_status take(largo_ctx *ctx, const largo_hyper *hyper, int64_t step, size_t n,
                         const largo_param params[], largo_hyper *ours, largo__group *group,
                         functional **f)
{
    if (!ctx) return largo__fail(LARGO_ERR_ARGUMENT, "ctx is NULL");
    if (step < 1)
        return largo__fail(LARGO_ERR_ARGUMENT, "step is %lld; it counts from 1", (long long)step);
    if (n && !params) return largo__fail(LARGO_ERR_ARGUMENT, "params is NULL but n is %zu", n);
    if (n > UINT32_MAX)
        return largo__fail(LARGO_ERR_ARGUMENT, "n is %zu; it must be below 2^32", n);
    LARGO__TRY(largo__hyper_read(hyper, "hyper", ours));
    LARGO__TRY(get_functional(ctx, f));
    const largo__group made = {"", ours, n, params};
    *group = made;
    return LARGO_OK;
}

/* The plan for a step that begins: the last one, or a new one. */
static largo_status prepare(largo_ctx *ctx, functional *f, const largo__group *group)
{
    return is_same(f, group) ? LARGO_OK : replan(ctx, f, group);
}

/* A later round of the step under way, if there is one. */
static largo_status check_round(const functional *f, const largo__group *group, int64_t step)
{
    if (!f->stepper.round) return LARGO_OK; /* the stepper has more to say */
    if (is_same(f, group) && step == f->round_step &&
        memcmp(&f->round_hyper, group->hyper, sizeof *group->hyper) == 0)
        return LARGO_OK;
    return largo__fail(LARGO_ERR_STATE,
                       "the arguments are not those of round 0; the next round is %d of that step",
                       (int)f->stepper.round);
}

largo_status largo_step(largo_ctx *ctx, const largo_hyper *hyper, int64_t step, size_t n,
                        const largo_param params[])
{
    largo_hyper ours;
    largo__group group;
    functional *f = NULL;
    LARGO__TRY(take(ctx, hyper, step, n, params, &ours, &group, &f));
    LARGO__TRY(prepare(ctx, f, &group));
    return largo__stepper_run(ctx, &f->stepper, 1, &group, step);
}

largo_status largo_step_round(largo_ctx *ctx, const largo_hyper *hyper, int64_t step, size_t n,
                              const largo_param params[], int32_t round, largo_reduction *reduction)
{
    if (!reduction) return largo__fail(LARGO_ERR_ARGUMENT, "reduction is NULL");
    reduction->n = 0;
    largo_hyper ours;
    largo__group group;
    functional *f = NULL;
    LARGO__TRY(take(ctx, hyper, step, n, params, &ours, &group, &f));
    LARGO__TRY(round ? check_round(f, &group, step) : prepare(ctx, f, &group));
    f->round_hyper = ours;
    f->round_step = step;
    return largo__stepper_round(ctx, &f->stepper, 1, &group, step, round, reduction);
}

largo_status largo_shard_cut(const largo_hyper *hyper, const largo_param *whole, int32_t world,
                             int32_t rank, int64_t *begin, int64_t *end)
{
    if (!begin || !end)
        return largo__fail(LARGO_ERR_ARGUMENT, "%s is NULL", begin ? "end" : "begin");
    if (world < 1 || rank < 0 || rank >= world)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "rank is %d and world %d; they must be 0 <= rank < world", (int)rank,
                           (int)world);
    largo_hyper ours;
    LARGO__TRY(check_form(hyper, "whole", whole, &ours));
    if (largo__is_sharded(whole))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "whole.shard is SHARDED; it must be the whole tensor");
    const largo__family *family = largo__param_family(&ours, whole);
    *begin = largo__cut(family, whole, rank, world);
    *end = largo__cut(family, whole, rank + 1, world);
    return LARGO_OK;
}

largo_status largo_slots(const largo_hyper *hyper, const largo_param *param,
                         largo_slot slots[LARGO_MAX_SLOTS], size_t *n)
{
    if (!slots) return largo__fail(LARGO_ERR_ARGUMENT, "slots is NULL");
    if (!n) return largo__fail(LARGO_ERR_ARGUMENT, "n is NULL");
    largo_hyper ours;
    LARGO__TRY(check_form(hyper, "param", param, &ours));
    const largo__family *family = largo__param_family(&ours, param);
    *n = (size_t)largo__slots(family);
    for (int s = 0; s < largo__slots(family); s++) {
        slots[s].name = family->slot_name[s];
        slots[s].like = largo__slot_tensor(family, s, param);
        slots[s].bytes = (size_t)largo__numel(&slots[s].like) * sizeof(float);
    }
    return LARGO_OK;
}
