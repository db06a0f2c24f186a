#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "message.h"
#include "random.h"

/* A batch is cut into at most LANES lanes that run side by side, each with a pass of its own; a lane
 * takes its rows in slices. Where the cuts are depends on the batch alone, and lanes are added in
 * order: the thread count changes no bit. Threads inside BLIS would meet dozens of times a batch
 * instead of once, at barriers that spin: on a busy machine that is several times slower. */
enum { LANES = 8 };

/* A slice of the largest size has about 6 MB of activations and derivatives; a lane below the
 * smallest would spend its time on adding gradients up. */
enum { LEAST_LANE_ROWS = 128, MOST_SLICE_ROWS = 1024 };

/* So many batches in a row without a finite loss, and nothing will bring the network back. */
enum { HOPELESS = 3 };

static const int layer_size[MODEL_LAYERS + 1] = {IMAGE_PIXELS, 256, 256, CLASSES};

/* Guessing has a loss of log 10 and 10 % right, give or take 0.3 % on 10,000 images. */
static const double guessing_loss = 2.3026, guessing_accuracy = 12.0;

struct run {
    const struct session *session;
    const struct recipe *recipe;
    struct plan plan;
    struct model model;
    int lanes;
    int64_t lane_rows; /* the last lane may have fewer */
    struct pass pass[LANES];
    largo_optim *optim;
    uint32_t *order;
    struct random random;
    int64_t steps, skipped; /* so far */
    int hopeless;           /* batches without a finite loss, up to the last one */
    double first_loss;      /* of the first batch: the network as it was made */
};

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool network_open(struct run *run)
{
    const int64_t batch = run->recipe->batch, eighth = (batch + LANES - 1) / LANES;
    run->lane_rows = eighth > LEAST_LANE_ROWS ? eighth : LEAST_LANE_ROWS;
    run->lanes = (int)((batch + run->lane_rows - 1) / run->lane_rows);
    const int slice = (int)least_of(run->lane_rows, MOST_SLICE_ROWS);
    bool good = model_create(&run->model, layer_size);
    for (int lane = 0; good && lane < run->lanes; lane++)
        good = pass_create(&run->pass[lane], &run->model, slice);
    if (good) model_initialize(&run->model, run->recipe->seed);
    return good;
}

static bool run_open(struct run *run, const struct session *session, const struct recipe *recipe)
{
    const int64_t n = session->data->train.n;
    memset(run, 0, sizeof *run);
    run->session = session;
    run->recipe = recipe;
    if (!recipe_plan(recipe, n, &run->plan)) return false;
    run->order = malloc((size_t)n * sizeof *run->order);
    if (!run->order || !network_open(run))
        return complain("no memory for a network and %lld indices", (long long)n);
    for (int64_t i = 0; i < n; i++) run->order[i] = (uint32_t)i;
    run->random = random_make(recipe->seed, STREAM_ORDER);
    return recipe_optimizer(recipe, &run->plan, session->ctx, &run->model, &run->pass[0],
                            &run->optim);
}

static void run_close(struct run *run)
{
    largo_optim_destroy(run->optim);
    for (int lane = 0; lane < run->lanes; lane++) pass_destroy(&run->pass[lane]);
    model_destroy(&run->model);
    free(run->order);
}

/* Sum of the losses of order[first .. end); their gradients, of the batch's mean, are in the pass. */
static double lane_gradients(const struct run *run, struct pass *pass, int64_t first, int64_t end)
{
    double total = 0.0;
    pass_zero_gradients(pass);
    for (; first < end; first += pass->slice) {
        const int rows = (int)least_of(end - first, pass->slice);
        dataset_gather(&run->session->data->train, run->order, first, rows, pass->input,
                       pass->label);
        pass_forward(pass, rows);
        total += pass_loss(pass, rows, 1.0f / (float)run->recipe->batch);
        pass_backward(pass, rows);
    }
    return total;
}

/* Mean loss of the batch that begins at `first` in the order; its gradients are in pass[0]. */
static double batch_gradients(struct run *run, int64_t first)
{
    const int64_t end = first + run->recipe->batch;
    double loss[LANES], total = 0.0;
#pragma omp parallel for schedule(dynamic) num_threads(run->session->threads)
    for (int lane = 0; lane < run->lanes; lane++) {
        const int64_t from = first + lane * run->lane_rows;
        loss[lane] =
            lane_gradients(run, &run->pass[lane], from, least_of(from + run->lane_rows, end));
    }
    for (int lane = 0; lane < run->lanes; lane++) {
        total += loss[lane];
        if (lane) pass_add_gradients(&run->pass[0], &run->pass[lane]);
    }
    return total / (double)run->recipe->batch;
}

/* How many of images first .. end are classified right. */
static int64_t lane_correct(const struct run *run, struct pass *pass, int64_t first, int64_t end)
{
    int64_t correct = 0;
    for (; first < end; first += pass->slice) {
        const int rows = (int)least_of(end - first, pass->slice);
        dataset_gather(&run->session->data->held_out, 0, first, rows, pass->input, pass->label);
        pass_forward(pass, rows);
        correct += pass_correct(pass, rows);
    }
    return correct;
}

/* Percent of the held-out images that are classified right. */
static double accuracy(struct run *run)
{
    const int64_t n = run->session->data->held_out.n;
    const int64_t share = (n + run->lanes - 1) / run->lanes;
    int64_t correct = 0;
#pragma omp parallel for schedule(dynamic) reduction(+ : correct) num_threads(run->session->threads)
    for (int lane = 0; lane < run->lanes; lane++)
        correct +=
            lane_correct(run, &run->pass[lane], lane * share, least_of((lane + 1) * share, n));
    return 100.0 * (double)correct / (double)n;
}

/* One step of the optimizer. A skipped one is told the first time and counted always. */
static bool apply(struct run *run)
{
    const largo_status status = largo_optim_step(run->optim);
    run->steps++;
    if (largo_failed(status)) {
        progress_wipe(run->session->progress);
        return complain("%s, step %lld: %s", run->recipe->optimizer->name, (long long)run->steps,
                        largo_last_error());
    }
    if (status == LARGO_SKIPPED && !run->skipped++)
        progress_line(run->session->progress, "%s: step %lld was skipped: %s",
                      run->session->progress->label, (long long)run->steps, largo_last_error());
    return true;
}

/* All batches of an epoch, or fewer if there is no point in more. */
static enum ending epoch_steps(struct run *run, struct epoch *epoch)
{
    const int64_t batch = run->recipe->batch, before = run->skipped;
    const double start = seconds_now();
    int64_t finite = 0, done = 0;
    double total = 0.0;
    random_shuffle(&run->random, (size_t)run->session->data->train.n, run->order);
    while (done < run->plan.steps_per_epoch && run->hopeless < HOPELESS) {
        if (interrupted()) return RUN_INTERRUPTED;
        const double loss = batch_gradients(run, done * batch);
        if (!run->steps) run->first_loss = loss;
        if (!apply(run)) return RUN_FAILED;
        done++;
        run->hopeless = isfinite(loss) ? 0 : run->hopeless + 1;
        if (isfinite(loss)) total += loss, finite++;
        epoch->samples_per_second = (double)(done * batch) / (seconds_now() - start);
        progress_step(run->session->progress, epoch->number, done, loss, epoch->samples_per_second);
    }
    epoch->step = run->steps;
    epoch->skipped = run->skipped - before;
    epoch->lr = largo_optim_hyper(run->optim, 0)->lr;
    epoch->loss = finite ? total / (double)finite : NAN;
    return run->hopeless < HOPELESS ? RUN_DONE : RUN_DIVERGED;
}

static enum ending run_epoch(struct run *run, int64_t number, struct run_result *result)
{
    const struct session *session = run->session;
    struct epoch epoch = {.number = number};
    const enum ending ending = epoch_steps(run, &epoch);
    if (ending != RUN_DONE && ending != RUN_DIVERGED) return ending;
    epoch.accuracy = accuracy(run);
    result->epochs = number;
    result->steps = run->steps;
    result->skipped = run->skipped;
    result->loss = epoch.loss;
    result->accuracy = epoch.accuracy;
    progress_line(session->progress, "%s  epoch %*lld/%lld  loss %.4f  %s %.2f %%  %.0f samples/s",
                  session->progress->label, run->recipe->epochs < 10 ? 1 : 2, (long long)number,
                  (long long)run->recipe->epochs, epoch.loss,
                  session->validate ? "validation" : "test", epoch.accuracy,
                  epoch.samples_per_second);
    return csv_epoch(session->csv, run->recipe, &epoch) ? ending : RUN_FAILED;
}

static void describe(const struct run *run)
{
    const struct recipe *recipe = run->recipe;
    struct progress *progress = run->session->progress;
    snprintf(progress->label, sizeof progress->label, "%s %lld, seed %llu", recipe->optimizer->name,
             (long long)recipe->batch, (unsigned long long)recipe->seed);
    progress->epochs = recipe->epochs;
    progress->steps_per_epoch = run->plan.steps_per_epoch;
    progress_line(progress, "%s: lr %.4g (%.4g at batch %d), %lld steps, %lld of warm-up%s",
                  progress->label, run->plan.schedule.lr, recipe->lr0, BASE_BATCH,
                  (long long)run->plan.steps, (long long)run->plan.schedule.warmup,
                  run->plan.warmup_cut ? " (cut to a third of the steps)" : "");
}

/* Did the run come to anything? What is wrong with it is told even if quiet: it is a fact about the
 * result. */
static enum ending judge(const struct run *run, const struct run_result *result)
{
    const char *label = run->session->progress->label;
    const bool below = result->loss <= fmax(run->first_loss, guessing_loss); /* false for NaN */
    progress_wipe(run->session->progress);
    if (result->skipped)
        complain("%s: %lld of %lld steps were skipped, their gradients not finite or too large",
                 label, (long long)result->skipped, (long long)result->steps);
    if (!below)
        complain("%s diverged: loss %.4g in epoch %lld of %lld, guessing has %.4g; a smaller --lr "
                 "or a longer --warmup may help",
                 label, result->loss, (long long)result->epochs, (long long)run->recipe->epochs,
                 guessing_loss);
    else if (result->accuracy < guessing_accuracy)
        complain("%s learnt nothing: %.2f %% right, guessing has 10 %%; the learning rate may be "
                 "far too large or too small",
                 label, result->accuracy);
    return below && result->accuracy >= guessing_accuracy ? RUN_DONE : RUN_DIVERGED;
}

enum ending train(const struct session *session, const struct recipe *recipe,
                  struct run_result *result)
{
    struct run run;
    memset(result, 0, sizeof *result);
    enum ending ending = run_open(&run, session, recipe) ? RUN_DONE : RUN_FAILED;
    if (ending == RUN_DONE) describe(&run);
    for (int64_t epoch = 1; ending == RUN_DONE && epoch <= recipe->epochs; epoch++)
        ending = run_epoch(&run, epoch, result);
    if (ending == RUN_DONE || ending == RUN_DIVERGED) ending = judge(&run, result);
    progress_wipe(session->progress);
    if (ending == RUN_INTERRUPTED)
        complain("%s: interrupted after %lld steps", session->progress->label,
                 (long long)run.steps);
    run_close(&run);
    return ending;
}
