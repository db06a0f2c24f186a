/* support_probe.h - one step of every optimizer against a plain reference in double.
 *
 * A probe is a parameter before and after a step from a random state. Outputs are checked in the
 * order they arise, each from the library's own outputs before it (p from the m and v that it
 * wrote), so an error bound covers a few roundings only. U = 2^-24 is one rounding to nearest; each
 * bound counts the roundings of the line of code it follows, constants included; a float lane that
 * sums n squares has n of them. */
#ifndef LARGO_TESTS_SUPPORT_PROBE_H
#define LARGO_TESTS_SUPPORT_PROBE_H

#include "support.h"

/* ZERO_CHUNK: zeros from 4096 to 8191, in short tensors in the middle third. TINY: all about 1e-25,
 * second moments 0. TINY_CHUNK: so in that chunk, zeros elsewhere. ZERO_LINES_BIG: a row and a
 * column without gradient, others up to 2^30; state 0. */
typedef enum content { NORMAL, ZERO_CHUNK, TINY_CHUNK, TINY, ZERO_LINES_BIG } content;

typedef struct probe {
    largo_tensor shape;
    int32_t segments;
    uint32_t flags;
    content content;
    size_t group, n, slots, slot_n[LARGO_MAX_SLOTS];
    float *p0, *p, *g0, *g, *state0[LARGO_MAX_SLOTS], *state[LARGO_MAX_SLOTS]; /* 0: before */
    int64_t step;
    largo_param_stats *stats; /* of each segment */
} probe;

enum { PROBE_STEP = 3 }; /* number of the step that is made */

void probe_open(probe *q, const largo_hyper *h, int32_t ndim, const int64_t shape[],
                int32_t segments, uint32_t flags);
void probe_close(probe *q);
void probe_fill(probe *q, content what, uint64_t seed);
void probe_reset(probe *q); /* as before the step */
largo_param probe_param(probe *q, uint32_t more_flags);

/* Of value and state after the step. */
uint64_t probe_hash(uint64_t seed, const probe *q);

/* Euclidean norm of all gradients. */
double probe_norm(size_t n, const probe q[]);

/* All outputs of the step, statistics too; `scale` is what max_grad_norm made of the gradients. */
void probe_check(const probe *q, const largo_hyper *h, double scale);

#endif
