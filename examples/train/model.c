#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"
#include "random.h"

/* Every array starts on a cache line: 16 floats. */
static size_t padded(size_t n)
{
    return (n + 15) & ~(size_t)15;
}

/* Hand out the arrays in order; with memory NULL only count. Gradients lie together, so that one
 * memset clears them. */
static size_t lay_out(struct model *model, float *memory)
{
    size_t used = 0;
#define TAKE(array, n) ((array) = memory ? memory + used : 0, used += padded(n))
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const size_t in = (size_t)model->size[l], out = (size_t)model->size[l + 1];
        TAKE(model->weight_grad[l], in * out);
        TAKE(model->bias_grad[l], out);
    }
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const size_t in = (size_t)model->size[l], out = (size_t)model->size[l + 1];
        TAKE(model->weight[l], in * out);
        TAKE(model->bias[l], out);
        TAKE(model->output[l], (size_t)model->slice * out);
        TAKE(model->delta[l], (size_t)model->slice * out);
    }
    TAKE(model->input, (size_t)model->slice * (size_t)model->size[0]);
#undef TAKE
    return used;
}

bool model_create(struct model *model, const int size[MODEL_LAYERS + 1], int slice)
{
    memset(model, 0, sizeof *model);
    memcpy(model->size, size, sizeof model->size);
    model->slice = slice;
    for (int l = 0; l < MODEL_LAYERS; l++)
        model->n_parameters += (size_t)size[l + 1] * ((size_t)size[l] + 1);
    const size_t bytes = lay_out(model, 0) * sizeof(float);
    model->memory = aligned_alloc(64, bytes);
    model->label = malloc((size_t)slice);
    if (!model->memory || !model->label) {
        model_destroy(model);
        return false;
    }
    memset(model->memory, 0, bytes);
    lay_out(model, model->memory);
    return true;
}

void model_destroy(struct model *model)
{
    free(model->memory);
    free(model->label);
    memset(model, 0, sizeof *model);
}

void model_initialize(struct model *model, uint64_t seed)
{
    struct random random = random_make(seed, STREAM_WEIGHTS);
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const size_t in = (size_t)model->size[l], out = (size_t)model->size[l + 1];
        const double gain = l == MODEL_LAYERS - 1 ? 1.0 : 2.0;
        const double deviation = sqrt(gain / (double)in);
        for (size_t i = 0; i < in * out; i++)
            model->weight[l][i] = (float)(deviation * random_normal(&random));
        memset(model->bias[l], 0, out * sizeof(float));
    }
}

void model_zero_gradients(struct model *model)
{
    const float *begin = model->weight_grad[0], *end = model->weight[0];
    memset(model->weight_grad[0], 0, (size_t)(end - begin) * sizeof(float));
}

static void add_bias(const float *bias, int rows, int width, bool relu, float *output)
{
    for (int row = 0; row < rows; row++, output += width) {
        for (int i = 0; i < width; i++) output[i] += bias[i];
        if (!relu) continue;
        /* This way round a NaN stays one: a diverged run must not look like a dead one. */
        for (int i = 0; i < width; i++) output[i] = output[i] < 0.0f ? 0.0f : output[i];
    }
}

/* output = relu(input weight' + bias), the last layer without relu */
void model_forward(struct model *model, int rows)
{
    const float *input = model->input;
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const int in = model->size[l], out = model->size[l + 1];
        const struct gemm product = {.m = rows, .n = out, .k = in, .transpose_b = true};
        gemm(&product, input, model->weight[l], model->output[l]);
        add_bias(model->bias[l], rows, out, l < MODEL_LAYERS - 1, model->output[l]);
        input = model->output[l];
    }
}

/*   loss = log(sum_j exp(z_j)) - z_label      delta_j = scale (softmax(z)_j - [j = label])   */
double model_loss(struct model *model, int rows, float scale)
{
    const int classes = model->size[MODEL_LAYERS];
    const float *z = model->output[MODEL_LAYERS - 1];
    float *delta = model->delta[MODEL_LAYERS - 1];
    double total = 0.0;
    for (int row = 0; row < rows; row++, z += classes, delta += classes) {
        const int label = model->label[row];
        float largest = z[0], sum = 0.0f;
        for (int j = 1; j < classes; j++) largest = z[j] > largest ? z[j] : largest;
        for (int j = 0; j < classes; j++) sum += delta[j] = expf(z[j] - largest);
        for (int j = 0; j < classes; j++) delta[j] *= scale / sum;
        delta[label] -= scale;
        total += log((double)sum) + (double)largest - (double)z[label];
    }
    return total;
}

static void add_column_sums(const float *delta, int rows, int width, float *sums)
{
    for (int row = 0; row < rows; row++, delta += width)
        for (int i = 0; i < width; i++) sums[i] += delta[i];
}

/* The derivative of ReLU, 1 where its output is positive. */
static void mask(const float *output, size_t n, float *delta)
{
    for (size_t i = 0; i < n; i++) delta[i] = output[i] > 0.0f ? delta[i] : 0.0f;
}

/*   weight_grad += delta' input    bias_grad += sum of delta's rows
 *   delta below  = (delta weight) where its output is positive                              */
void model_backward(struct model *model, int rows)
{
    for (int l = MODEL_LAYERS - 1; l >= 0; l--) {
        const int in = model->size[l], out = model->size[l + 1];
        const float *input = l ? model->output[l - 1] : model->input;
        const struct gemm weight = {.m = out, .n = in, .k = rows, .transpose_a = true, .add = true};
        gemm(&weight, model->delta[l], input, model->weight_grad[l]);
        add_column_sums(model->delta[l], rows, out, model->bias_grad[l]);
        if (!l) break;
        const struct gemm below = {.m = rows, .n = in, .k = out};
        gemm(&below, model->delta[l], model->weight[l], model->delta[l - 1]);
        mask(input, (size_t)rows * (size_t)in, model->delta[l - 1]);
    }
}

int model_correct(const struct model *model, int rows)
{
    const int classes = model->size[MODEL_LAYERS];
    const float *z = model->output[MODEL_LAYERS - 1];
    int correct = 0;
    for (int row = 0; row < rows; row++, z += classes) {
        const int label = model->label[row];
        bool largest = true; /* of equal logits the first counts, or a dead network had 100 % */
        for (int j = 0; j < label; j++) largest = largest && z[j] < z[label];
        for (int j = label; j < classes; j++) largest = largest && z[j] <= z[label];
        correct += largest;
    }
    return correct;
}
