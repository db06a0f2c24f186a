#include "gradcheck.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "model.h"
#include "random.h"

/* Odd sizes: a row length or a transposition that is wrong shows only if they all differ. */
enum { ROWS = 7, SLICE = 4, PROBES = 40, WIDEST = 43 };
static const int check_size[MODEL_LAYERS + 1] = {43, 29, 19, 10};

/* Float32 sums of at most a few hundred terms. */
static const double tolerance = 1e-5;

struct batch {
    float input[ROWS][WIDEST];
    uint8_t label[ROWS];
};

/* Loss of one row by the formulas alone: no BLAS, no float, nothing shared with model.c. */
static double row_loss(const struct model *model, const float *input, int label)
{
    double below[WIDEST], above[WIDEST];
    for (int i = 0; i < model->size[0]; i++) below[i] = (double)input[i];
    for (int l = 0; l < MODEL_LAYERS; l++) {
        for (int o = 0; o < model->size[l + 1]; o++) {
            double sum = (double)model->bias[l][o];
            for (int i = 0; i < model->size[l]; i++)
                sum += below[i] * (double)model->weight[l][o * model->size[l] + i];
            above[o] = l < MODEL_LAYERS - 1 ? fmax(sum, 0.0) : sum;
        }
        memcpy(below, above, sizeof below);
    }
    double sum = 0.0;
    for (int j = 0; j < model->size[MODEL_LAYERS]; j++) sum += exp(below[j]);
    return log(sum) - below[label];
}

static double mean_loss(const struct model *model, const struct batch *batch)
{
    double total = 0.0;
    for (int row = 0; row < ROWS; row++)
        total += row_loss(model, batch->input[row], batch->label[row]);
    return total / ROWS;
}

/* What the trainer does with a batch. */
static double slices(struct pass *pass, const struct batch *batch)
{
    const int width = pass->model->size[0];
    double total = 0.0;
    pass_zero_gradients(pass);
    for (int first = 0; first < ROWS; first += SLICE) {
        const int rows = ROWS - first < SLICE ? ROWS - first : SLICE;
        for (int row = 0; row < rows; row++) {
            memcpy(pass->input + row * width, batch->input[first + row],
                   (size_t)width * sizeof(float));
            pass->label[row] = batch->label[first + row];
        }
        pass_forward(pass, rows);
        total += pass_loss(pass, rows, 1.0f / ROWS);
        pass_backward(pass, rows);
    }
    return total / ROWS;
}

/* The divisor is the step that the float really made, not the one asked for. */
static double difference(const struct model *model, const struct batch *batch, float *parameter)
{
    const float kept = *parameter, step = 1e-3f;
    const float above = kept + step, below = kept - step;
    *parameter = above;
    const double loss_above = mean_loss(model, batch);
    *parameter = below;
    const double loss_below = mean_loss(model, batch);
    *parameter = kept;
    return (loss_above - loss_below) / ((double)above - (double)below);
}

/* Largest error of PROBES elements, relative to the largest gradient among them. */
static bool array_agrees(const char *name, const struct model *model, const struct batch *batch,
                         float *value, const float *gradient, int n)
{
    struct random random = random_make((uint64_t)n, STREAM_CHECK);
    double error = 0.0, largest = 0.0;
    for (int probe = 0; probe < PROBES; probe++) {
        const size_t i = (size_t)random_below(&random, (uint64_t)n);
        const double found = difference(model, batch, value + i);
        error = fmax(error, fabs(found - (double)gradient[i]));
        largest = fmax(largest, fabs(found));
    }
    printf("%-8s error %.1e of %.1e\n", name, error, largest);
    return largest > 0.0 && error <= tolerance * largest;
}

static void fill(struct model *model, struct batch *batch)
{
    struct random random = random_make(7, STREAM_CHECK);
    model_initialize(model, 7);
    for (int l = 0; l < MODEL_LAYERS; l++)
        for (int i = 0; i < model->size[l + 1]; i++)
            model->bias[l][i] = 0.1f * (float)random_normal(&random);
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < model->size[0]; i++)
            batch->input[row][i] = (float)random_normal(&random);
        batch->label[row] = (uint8_t)random_below(&random, (uint64_t)model->size[MODEL_LAYERS]);
    }
}

/* Every array of the model against the gradients of the pass. */
static bool arrays_agree(struct model *model, const struct pass *pass, const struct batch *batch)
{
    bool good = true;
    for (int l = 0; l < MODEL_LAYERS; l++) {
        char name[24];
        const int out = model->size[l + 1];
        snprintf(name, sizeof name, "weight%d", l + 1);
        good &= array_agrees(name, model, batch, model->weight[l], pass->weight_grad[l],
                             out * model->size[l]);
        snprintf(name, sizeof name, "bias%d", l + 1);
        good &= array_agrees(name, model, batch, model->bias[l], pass->bias_grad[l], out);
    }
    return good;
}

bool gradients_agree(void)
{
    struct model model;
    struct pass pass;
    struct batch batch;
    if (!model_create(&model, check_size)) return complain("no memory for the check");
    if (!pass_create(&pass, &model, SLICE)) {
        model_destroy(&model);
        return complain("no memory for the check");
    }
    fill(&model, &batch);
    const double loss = slices(&pass, &batch), exact = mean_loss(&model, &batch);
    printf("loss     %.7f, in double %.7f\n", loss, exact);
    const bool good = fabs(loss - exact) <= 1e-6 * exact && arrays_agree(&model, &pass, &batch);
    pass_destroy(&pass);
    model_destroy(&model);
    return good ? true : complain("gradients differ from finite differences");
}
