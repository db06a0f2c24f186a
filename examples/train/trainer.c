#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "message.h"
#include "random.h"

/* Rows of one pass through the network: about 6 MB of activations and derivatives. */
enum { SLICE_ROWS = 1024 };

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
    largo_optim *optim;
    uint32_t *order;
    struct random random;
    int64_t steps, skipped; /* so far */
    int hopeless;           /* batches without a finite loss, up to the last one */
    double first_loss;      /* of the first batch: the network as it was made */
};

static bool run_open(struct run *run, const struct session *session, const struct recipe *recipe)
{
    const int64_t n = session->data->train.n;
    memset(run, 0, sizeof *run);
    run->session = session;
    run->recipe = recipe;
    run->plan = recipe_plan(recipe, n);
    const int rows = recipe->batch < SLICE_ROWS ? (int)recipe->batch : SLICE_ROWS;
    run->order = malloc((size_t)n * sizeof *run->order);
    if (!run->order || !model_create(&run->model, layer_size, rows))
        return complain("no memory for a network and %lld indices", (long long)n);
    for (int64_t i = 0; i < n; i++) run->order[i] = (uint32_t)i;
    run->random = random_make(recipe->seed, STREAM_ORDER);
    model_initialize(&run->model, recipe->seed);
    return recipe_optimizer(recipe, &run->plan, session->ctx, &run->model, &run->optim);
}

static void run_close(struct run *run)
{
    largo_optim_destroy(run->optim);
    model_destroy(&run->model);
    free(run->order);
}

/* Mean loss of the batch that begins at `first` in the order; its gradients are in the model. */
static double batch_gradients(struct run *run, int64_t first)
{
    struct model *model = &run->model;
    const int64_t batch = run->recipe->batch;
    double total = 0.0;
    model_zero_gradients(model);
    for (int64_t done = 0; done < batch; done += model->slice) {
        const int rows = batch - done < model->slice ? (int)(batch - done) : model->slice;
        dataset_gather(&run->session->data->train, run->order, first + done, rows, model->input,
                       model->label);
        model_forward(model, rows);
        total += model_loss(model, rows, 1.0f / (float)batch);
        model_backward(model, rows);
    }
    return total / (double)batch;
}

/* Percent of the held-out images that are classified right. */
static double accuracy(struct run *run)
{
    const struct dataset *set = &run->session->data->held_out;
    struct model *model = &run->model;
    int64_t correct = 0;
    for (int64_t first = 0; first < set->n; first += model->slice) {
        const int rows = set->n - first < model->slice ? (int)(set->n - first) : model->slice;
        dataset_gather(set, 0, first, rows, model->input, model->label);
        model_forward(model, rows);
        correct += model_correct(model, rows);
    }
    return 100.0 * (double)correct / (double)set->n;
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
