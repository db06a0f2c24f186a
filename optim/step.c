/* step.c - the functional face: step with the caller's state, and the question which state. */
#include <string.h>
#include "hyper.h"
#include "stepper.h"
#include "../core/status.h"

/* The plan of the last call, with what it was made from. */
typedef struct functional {
    largo__stepper stepper;
    largo_hyper hyper;
    largo_param *params; /* a copy of the descriptors */
    size_t n, bytes;
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
           (!f->n || memcmp(f->params, group->params, f->n * sizeof *f->params) == 0);
}

/* Plan for these descriptors and remember them. A failure leaves no plan, and nothing else. */
static largo_status replan(largo_ctx *ctx, functional *f, const largo__group *group)
{
    forget(ctx, f);
    functional made = {0};
    made.n = group->n;
    made.hyper = *group->hyper;
    made.bytes = largo__size(group->n, sizeof *made.params, 0);
    LARGO__TRY(largo__stepper_make(ctx, 1, group, &made.stepper));
    made.params = largo__host_alloc(ctx, made.bytes);
    if (!made.params) {
        largo__stepper_free(ctx, &made.stepper);
        return largo__fail(LARGO_ERR_MEMORY, "no memory for descriptors, %zu bytes", made.bytes);
    }
    if (group->n) memcpy(made.params, group->params, made.bytes);
    *f = made;
    return LARGO_OK;
}

largo_status largo_step(largo_ctx *ctx, const largo_hyper *hyper, int64_t step, size_t n,
                        const largo_param params[])
{
    if (!ctx) return largo__fail(LARGO_ERR_ARGUMENT, "ctx is NULL");
    if (step < 1)
        return largo__fail(LARGO_ERR_ARGUMENT, "step is %lld; it counts from 1", (long long)step);
    if (n && !params) return largo__fail(LARGO_ERR_ARGUMENT, "params is NULL but n is %zu", n);
    if (n > UINT32_MAX)
        return largo__fail(LARGO_ERR_ARGUMENT, "n is %zu; it must be below 2^32", n);
    largo_hyper ours;
    LARGO__TRY(largo__hyper_read(hyper, "hyper", &ours));
    functional *f = NULL;
    LARGO__TRY(get_functional(ctx, &f));
    const largo__group group = {"", &ours, n, params};
    if (!is_same(f, &group)) LARGO__TRY(replan(ctx, f, &group));
    return largo__stepper_run(ctx, &f->stepper, 1, &group, step);
}

largo_status largo_slots(const largo_hyper *hyper, const largo_param *param,
                         largo_slot slots[LARGO_MAX_SLOTS], size_t *n)
{
    largo_hyper ours;
    LARGO__TRY(largo__hyper_read(hyper, "hyper", &ours));
    if (!param) return largo__fail(LARGO_ERR_ARGUMENT, "param is NULL");
    if (!slots) return largo__fail(LARGO_ERR_ARGUMENT, "slots is NULL");
    if (!n) return largo__fail(LARGO_ERR_ARGUMENT, "n is NULL");
    largo_param shape_only = {0};
    shape_only.value = param->value;
    shape_only.value.data = &shape_only; /* not NULL */
    shape_only.segments = param->segments;
    shape_only.flags = param->flags;
    const largo__group group = {"", &ours, 1, &shape_only};
    LARGO__TRY(largo__param_check(&group, 0, 0));
    const largo__family *family = largo__family_of(&ours, param->flags, param->value.ndim);
    *n = (size_t)largo__slots(family);
    for (int s = 0; s < largo__slots(family); s++) {
        slots[s].name = family->slot_name[s];
        slots[s].like = largo__slot_tensor(family, s, &param->value, param->segments);
        slots[s].bytes = (size_t)largo__numel(&slots[s].like) * sizeof(float);
    }
    return LARGO_OK;
}
