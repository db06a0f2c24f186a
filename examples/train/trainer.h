/* trainer.h - one training run. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "data.h"
#include "progress.h"
#include "recipe.h"
#include "report.h"

/* What all runs of the program share. */
struct session {
    const struct fashion *data;
    largo_ctx *ctx;
    struct progress *progress;
    struct csv *csv;
    int threads;
    bool validate; /* only for the words: "validation" in place of "test" */
};

enum ending {
    RUN_DONE,
    RUN_DIVERGED, /* or it learnt nothing; the result is what was left of the network */
    RUN_INTERRUPTED,
    RUN_FAILED /* after a complaint */
};

struct run_result {
    int64_t epochs, steps; /* made, skipped steps included */
    int64_t skipped;
    double loss;     /* mean of the last epoch */
    double accuracy; /* percent of the held-out set */
};

enum ending train(const struct session *session, const struct recipe *recipe,
                  struct run_result *result);

#endif
