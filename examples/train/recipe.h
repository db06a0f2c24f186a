/* recipe.h - what one training run does: optimizer, batch, learning rate. */
#ifndef TRAIN_RECIPE_H
#define TRAIN_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include <largo.h>

#include "model.h"

/* Learning rates at BASE_BATCH, from `--validate --seed 0` with 4 values for each optimizer at batch
 * 256 and 8192 (sgd .01 .02 .05 .1; adamw .0005 .001 .002 .005; lamb .002 .005 .01 .02): each has the
 * best mean accuracy of the two batches. lamb at .02 and sgd at .1 do not train any more at 8192. */
#define LR0_SGD 0.02
#define LR0_ADAMW 0.001
#define LR0_LAMB 0.005

enum { OPTIMIZERS = 3, BASE_BATCH = 256 };

struct optimizer_kind {
    const char *name;
    largo_algo algo;
    double lr0;
};

extern const struct optimizer_kind optimizer_kinds[OPTIMIZERS];

struct recipe {
    const struct optimizer_kind *optimizer;
    int64_t batch, epochs;
    double lr0;    /* at BASE_BATCH */
    double warmup; /* LEGW: epochs at BASE_BATCH, times k at another */
    double weight_decay;
    largo_scaling scaling;
    largo_decay decay;
    uint64_t seed;
};

/* The recipe in steps, for a number of training images. */
struct plan {
    int64_t steps_per_epoch, steps;
    largo_schedule schedule;
    bool warmup_cut; /* the warm-up asked for was longer than a third of the steps */
};

/* Steps of the whole run. */
int64_t recipe_steps(const struct recipe *recipe, int64_t n_train);

/* False after a complaint. */
bool recipe_plan(const struct recipe *recipe, int64_t n_train, struct plan *plan);

/* An optimizer for the model's arrays with the gradients of the pass, as the recipe has it. False
 * after a complaint. */
bool recipe_optimizer(const struct recipe *recipe, const struct plan *plan, largo_ctx *ctx,
                      const struct model *model, const struct pass *pass, largo_optim **optim);

#endif
