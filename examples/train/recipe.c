#include "recipe.h"

#include <math.h>

#include "message.h"

const struct optimizer_kind optimizer_kinds[OPTIMIZERS] = {
    {"sgd", LARGO_SGD, LR0_SGD},
    {"adamw", LARGO_ADAMW, LR0_ADAMW},
    {"lamb", LARGO_LAMB, LR0_LAMB},
};

static double scaled_lr(const struct recipe *recipe)
{
    const double k = (double)recipe->batch / BASE_BATCH;
    switch (recipe->scaling) {
    case SCALING_SQRT:
        return recipe->lr0 * sqrt(k);
    case SCALING_LINEAR:
        return recipe->lr0 * k;
    default:
        return recipe->lr0;
    }
}

/* LEGW (You et al., SC 2019): warm-up epochs in proportion to the batch, so that the number of
 * warm-up steps hardly depends on it. */
struct plan recipe_plan(const struct recipe *recipe, int64_t n_train)
{
    struct plan plan = {.schedule = LARGO_SCHEDULE};
    const double k = (double)recipe->batch / BASE_BATCH;
    plan.steps_per_epoch = n_train / recipe->batch;
    plan.steps = plan.steps_per_epoch * recipe->epochs;

    const double wanted = recipe->warmup * k * (double)plan.steps_per_epoch;
    const int64_t third = plan.steps / 3;
    plan.warmup_cut = wanted > (double)third + 0.5;
    plan.schedule.warmup = plan.warmup_cut ? third : llround(wanted);
    plan.schedule.decay = recipe->decay;
    plan.schedule.lr = scaled_lr(recipe);
    /* The rate reaches 0 one step after the last, which would otherwise do nothing. */
    plan.schedule.total = plan.steps + 1;
    return plan;
}

static largo_status prepare(const struct recipe *recipe, const struct plan *plan,
                            const struct model *model, const struct pass *pass, largo_optim *optim)
{
    largo_hyper hyper;
    largo_status status = largo_hyper_init(&hyper, recipe->optimizer->algo);
    if (largo_failed(status)) return status;
    hyper.lr = plan->schedule.lr;
    hyper.weight_decay = recipe->weight_decay;
    if (hyper.algo == LARGO_SGD) hyper.momentum = 0.9;

    largo_param params[2 * MODEL_LAYERS];
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const int64_t in = model->size[l], out = model->size[l + 1];
        params[2 * l] = largo_param_f32(model->weight[l], pass->weight_grad[l], out, in);
        params[2 * l + 1] = largo_param_f32(model->bias[l], pass->bias_grad[l], out, 1);
    }
    largo_params_exempt_vectors(2 * MODEL_LAYERS, params);
    status = largo_optim_add_group(optim, &hyper, 2 * MODEL_LAYERS, params, 0);
    if (largo_failed(status)) return status;
    return largo_optim_set_schedule(optim, 0, &plan->schedule);
}

bool recipe_optimizer(const struct recipe *recipe, const struct plan *plan, largo_ctx *ctx,
                      const struct model *model, const struct pass *pass, largo_optim **optim)
{
    largo_status status = largo_optim_create(ctx, optim);
    if (!largo_failed(status)) status = prepare(recipe, plan, model, pass, *optim);
    if (!largo_failed(status)) return true;
    largo_optim_destroy(*optim);
    *optim = 0;
    return complain("%s: %s", recipe->optimizer->name, largo_last_error());
}
