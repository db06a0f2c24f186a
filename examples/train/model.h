/* model.h - a multi-layer perceptron with ReLU and softmax cross-entropy, and its gradients.
 *
 * A batch is worked through in slices: forward, loss, backward for each, gradients added up. The
 * memory for activations then depends on the slice, not on the batch, and stays in cache. */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_LAYERS = 3 };

struct model {
    int size[MODEL_LAYERS + 1]; /* width of the input and of each layer's output */
    int slice;                  /* most rows of one forward or backward */
    size_t n_parameters;

    float *memory;                                           /* everything below is part of it */
    float *weight[MODEL_LAYERS], *weight_grad[MODEL_LAYERS]; /* layer l: size[l + 1] x size[l] */
    float *bias[MODEL_LAYERS], *bias_grad[MODEL_LAYERS];     /* layer l: size[l + 1] */
    float *input;                                            /* slice x size[0], the caller's */
    float *output[MODEL_LAYERS]; /* slice x size[l + 1], after ReLU; the last: logits */
    float *delta[MODEL_LAYERS];  /* slice x size[l + 1], dloss / d(output before ReLU) */
    uint8_t *label;              /* slice, the caller's */
};

/* False without memory; nothing is then owned. */
bool model_create(struct model *model, const int size[MODEL_LAYERS + 1], int slice);
void model_destroy(struct model *model);

/* Kaiming normal weights (He et al., ICCV 2015), the last layer's with deviation
 * size[MODEL_LAYERS - 1]^-1/2 because no ReLU follows it; biases are zero. */
void model_initialize(struct model *model, uint64_t seed);

void model_zero_gradients(struct model *model);

/* output[] of the first `rows` rows of `input`. */
void model_forward(struct model *model, int rows);

/* After forward: the sum of the rows' losses; delta of the last layer becomes the gradient of
 * `scale` times that sum. */
double model_loss(struct model *model, int rows, float scale);

/* After loss: adds to weight_grad and bias_grad. */
void model_backward(struct model *model, int rows);

/* After forward: how many rows have their largest logit at the label. A row with a NaN has not. */
int model_correct(const struct model *model, int rows);

#endif
