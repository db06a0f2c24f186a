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

/* Take n floats from memory that begins at `base`; without base only count them. */
static float *take(float *base, size_t *used, size_t n)
{
    float *array = base ? base + *used : 0;
    *used += padded(n);
    return array;
}

static size_t lay_out_model(struct model *model, float *base)
{
    size_t used = 0;
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const size_t in = (size_t)model->size[l], out = (size_t)model->size[l + 1];
        model->weight[l] = take(base, &used, in * out);
        model->bias[l] = take(base, &used, out);
    }
    return used;
}

/* Gradients come first and together, so that one loop clears or adds them. */
static size_t lay_out_pass(struct pass *pass, float *base)
{
    const int *size = pass->model->size;
    const size_t slice = (size_t)pass->slice;
    size_t used = 0;
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const size_t in = (size_t)size[l], out = (size_t)size[l + 1];
        pass->weight_grad[l] = take(base, &used, in * out);
        pass->bias_grad[l] = take(base, &used, out);
    }
    pass->n_gradients = used;
    pass->input = take(base, &used, slice * (size_t)size[0]);
    for (int l = 0; l < MODEL_LAYERS; l++) {
        pass->output[l] = take(base, &used, slice * (size_t)size[l + 1]);
        pass->delta[l] = take(base, &used, slice * (size_t)size[l + 1]);
    }
    return used;
}

static float *zeroed(size_t n)
{
    float *memory = aligned_alloc(64, n * sizeof(float));
    if (memory) memset(memory, 0, n * sizeof(float));
    return memory;
}

bool model_create(struct model *model, const int size[MODEL_LAYERS + 1])
{
    memset(model, 0, sizeof *model);
    memcpy(model->size, size, sizeof model->size);
    for (int l = 0; l < MODEL_LAYERS; l++)
        model->n_parameters += (size_t)size[l + 1] * ((size_t)size[l] + 1);
    model->memory = zeroed(lay_out_model(model, 0));
    if (!model->memory) return false;
    lay_out_model(model, model->memory);
    return true;
}

void model_destroy(struct model *model)
{
    free(model->memory);
    memset(model, 0, sizeof *model);
}

bool pass_create(struct pass *pass, const struct model *model, int slice)
{
    memset(pass, 0, sizeof *pass);
    pass->model = model;
    pass->slice = slice;
    pass->memory = zeroed(lay_out_pass(pass, 0));
    pass->label = malloc((size_t)slice);
    if (!pass->memory || !pass->label) {
        pass_destroy(pass);
        return false;
    }
    lay_out_pass(pass, pass->memory);
    return true;
}

void pass_destroy(struct pass *pass)
{
    free(pass->memory);
    free(pass->label);
    memset(pass, 0, sizeof *pass);
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

void pass_zero_gradients(struct pass *pass)
{
    memset(pass->weight_grad[0], 0, pass->n_gradients * sizeof(float));
}

void pass_add_gradients(struct pass *to, const struct pass *from)
{
    float *sum = to->weight_grad[0];
    const float *term = from->weight_grad[0];
    for (size_t i = 0; i < to->n_gradients; i++) sum[i] += term[i];
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
void pass_forward(struct pass *pass, int rows)
{
    const struct model *model = pass->model;
    const float *input = pass->input;
    for (int l = 0; l < MODEL_LAYERS; l++) {
        const int in = model->size[l], out = model->size[l + 1];
        const struct gemm product = {.m = rows, .n = out, .k = in, .transpose_b = true};
        gemm(&product, input, model->weight[l], pass->output[l]);
        add_bias(model->bias[l], rows, out, l < MODEL_LAYERS - 1, pass->output[l]);
        input = pass->output[l];
    }
}

/*   loss = log(sum_j exp(z_j)) - z_label      delta_j = scale (softmax(z)_j - [j = label])   */
double pass_loss(struct pass *pass, int rows, float scale)
{
    const int classes = pass->model->size[MODEL_LAYERS];
    const float *z = pass->output[MODEL_LAYERS - 1];
    float *delta = pass->delta[MODEL_LAYERS - 1];
    double total = 0.0;
    for (int row = 0; row < rows; row++, z += classes, delta += classes) {
        const int label = pass->label[row];
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
void pass_backward(struct pass *pass, int rows)
{
    const struct model *model = pass->model;
    for (int l = MODEL_LAYERS - 1; l >= 0; l--) {
        const int in = model->size[l], out = model->size[l + 1];
        const float *input = l ? pass->output[l - 1] : pass->input;
        const struct gemm weight = {.m = out, .n = in, .k = rows, .transpose_a = true, .add = true};
        gemm(&weight, pass->delta[l], input, pass->weight_grad[l]);
        add_column_sums(pass->delta[l], rows, out, pass->bias_grad[l]);
        if (!l) break;
        const struct gemm below = {.m = rows, .n = in, .k = out};
        gemm(&below, pass->delta[l], model->weight[l], pass->delta[l - 1]);
        mask(input, (size_t)rows * (size_t)in, pass->delta[l - 1]);
    }
}

int pass_correct(const struct pass *pass, int rows)
{
    const int classes = pass->model->size[MODEL_LAYERS];
    const float *z = pass->output[MODEL_LAYERS - 1];
    int correct = 0;
    for (int row = 0; row < rows; row++, z += classes) {
        const int label = pass->label[row];
        bool largest = true; /* of equal logits the first counts, or a dead network had 100 % */
        for (int j = 0; j < label; j++) largest = largest && z[j] < z[label];
        for (int j = label; j < classes; j++) largest = largest && z[j] <= z[label];
        correct += largest;
    }
    return correct;
}
