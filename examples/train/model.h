/* model.h - a multi-layer perceptron with ReLU and softmax cross-entropy, and its gradients.
 *
 * The model holds the parameters. A pass holds everything that goes through it: a slice of a batch,
 * activations, derivatives, and a sum of gradients. Passes of one model may run at the same time,
 * and what they need depends on the slice, not on the batch. */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_LAYERS = 3 };

struct model {
    int size[MODEL_LAYERS + 1]; /* width of the input and of each layer's output */
    size_t n_parameters;
    float *memory;               /* the arrays below are parts of it */
    float *weight[MODEL_LAYERS]; /* layer l: size[l + 1] x size[l] */
    float *bias[MODEL_LAYERS];   /* layer l: size[l + 1] */
};

struct pass {
    const struct model *model;
    int slice; /* most rows of one forward or backward */
    size_t n_gradients;
    float *memory; /* the arrays below are parts of it */
    float *weight_grad[MODEL_LAYERS], *bias_grad[MODEL_LAYERS]; /* shaped as the parameters */
    float *input;                                               /* slice x size[0], the caller's */
    float *output[MODEL_LAYERS]; /* slice x size[l + 1], after ReLU; the last: logits */
    float *delta[MODEL_LAYERS];  /* slice x size[l + 1], dloss / d(output before ReLU) */
    uint8_t *label;              /* slice, the caller's */
};

/* False without memory; nothing is then owned. */
bool model_create(struct model *model, const int size[MODEL_LAYERS + 1]);
void model_destroy(struct model *model);

/* Kaiming normal weights (He et al., ICCV 2015), the last layer's with deviation
 * size[MODEL_LAYERS - 1]^-1/2 because no ReLU follows it; biases are zero. */
void model_initialize(struct model *model, uint64_t seed);

/* The model must outlive the pass. False without memory. */
bool pass_create(struct pass *pass, const struct model *model, int slice);
void pass_destroy(struct pass *pass);

void pass_zero_gradients(struct pass *pass);

/* output[] of the first `rows` rows of `input`. */
void pass_forward(struct pass *pass, int rows);

/* After forward: the sum of the rows' losses; delta of the last layer becomes the gradient of
 * `scale` times that sum. */
double pass_loss(struct pass *pass, int rows, float scale);

/* After loss: adds to weight_grad and bias_grad. */
void pass_backward(struct pass *pass, int rows);

/* After forward: how many rows have their largest logit at the label. A row with a NaN has not. */
int pass_correct(const struct pass *pass, int rows);

/* Gradients of `to` += those of `from`, another pass of the same model. */
void pass_add_gradients(struct pass *to, const struct pass *from);

#endif
