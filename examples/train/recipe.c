#include "recipe.h"

#include "message.h"

const struct optimizer_kind optimizer_kinds[OPTIMIZERS] = {
    {"sgd", LARGO_SGD, LR0_SGD},
    {"adamw", LARGO_ADAMW, LR0_ADAMW},
    {"lamb", LARGO_LAMB, LR0_LAMB},
};

int64_t recipe_steps(const struct recipe *recipe, int64_t n_train)
{
    return n_train / recipe->batch * recipe->epochs;
}

static largo_status make_plan(const struct recipe *recipe, int64_t n_train, struct plan *plan)
{
    *plan = (struct plan){.schedule = LARGO_SCHEDULE};
    plan->steps_per_epoch = n_train / recipe->batch;
    plan->steps = recipe_steps(recipe, n_train);

    largo_legw legw;
    const int64_t used = plan->steps_per_epoch * recipe->batch;
    largo_status status =
        largo_legw_scale(recipe->lr0, recipe->warmup, used, BASE_BATCH, recipe->batch, &legw);
    if (largo_failed(status)) return status;
    const int64_t third = plan->steps / 3;
    plan->warmup_cut = legw.warmup > third;
    plan->schedule.warmup = plan->warmup_cut ? third : legw.warmup;
    plan->schedule.decay = recipe->decay;
    /* The rate reaches 0 one step after the last, which would otherwise do nothing. */
    if (recipe->decay != LARGO_DECAY_CONSTANT) plan->schedule.total = plan->steps + 1;
    return largo_lr_scale(recipe->scaling, recipe->lr0, BASE_BATCH, recipe->batch,
                          &plan->schedule.lr);
}

bool recipe_plan(const struct recipe *recipe, int64_t n_train, struct plan *plan)
{
    if (!largo_failed(make_plan(recipe, n_train, plan))) return true;
    return complain("batch %lld: %s", (long long)recipe->batch, largo_last_error());
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
