/* recipe.h - what one training run does: optimizer, batch, learning rate. */
#ifndef TRAIN_RECIPE_H
#define TRAIN_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include <largo.h>

#include "model.h"

/* Learning rates at BASE_BATCH, chosen on the validation split; the options' --help shows them. */
#define LR0_SGD 0.03
#define LR0_ADAMW 0.001
#define LR0_LAMB 0.01

enum { OPTIMIZERS = 3, BASE_BATCH = 256 };

struct optimizer_kind {
    const char *name;
    largo_algo algo;
    double lr0;
};

extern const struct optimizer_kind optimizer_kinds[OPTIMIZERS];

/* How the learning rate follows the batch: lr0 * sqrt(k), lr0 * k or lr0, with
 * k = batch / BASE_BATCH. */
enum scaling { SCALING_SQRT, SCALING_LINEAR, SCALING_NONE };

struct recipe {
    const struct optimizer_kind *optimizer;
    int64_t batch, epochs;
    double lr0;    /* at BASE_BATCH */
    double warmup; /* LEGW: epochs at BASE_BATCH, times k at another */
    double weight_decay;
    enum scaling scaling;
    largo_decay decay;
    uint64_t seed;
};

/* The recipe in steps, for a number of training images. */
struct plan {
    int64_t steps_per_epoch, steps;
    largo_schedule schedule;
    bool warmup_cut; /* the warm-up asked for was longer than a third of the steps */
};

struct plan recipe_plan(const struct recipe *recipe, int64_t n_train);

/* An optimizer for the model's arrays, as the recipe has it. False after a complaint. */
bool recipe_optimizer(const struct recipe *recipe, const struct plan *plan, largo_ctx *ctx,
                      const struct model *model, largo_optim **optim);

#endif
