/* support_probe.c - see support_probe.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support_probe.h"

void probe_open(probe *q, const largo_hyper *h, int32_t ndim, const int64_t shape[],
                int32_t segments, uint32_t flags)
{
    memset(q, 0, sizeof *q);
    q->shape.dtype = LARGO_F32;
    q->shape.ndim = ndim;
    q->segments = segments;
    q->flags = flags;
    q->n = 1;
    for (int32_t d = 0; d < ndim; d++) q->n *= (size_t)(q->shape.shape[d] = shape[d]);
    q->p0 = test_floats(q->n);
    q->p = test_floats(q->n);
    q->g0 = test_floats(q->n);
    q->g = test_floats(q->n);
    q->stats = calloc((size_t)(segments > 1 ? segments : 1), sizeof *q->stats);
    assert_non_null(q->stats);
    const largo_param param = probe_param(q, 0);
    largo_slot slot[LARGO_MAX_SLOTS];
    assert_ok(largo_slots(h, &param, slot, &q->slots));
    for (size_t s = 0; s < q->slots; s++) {
        q->slot_n[s] = slot[s].bytes / sizeof(float);
        q->state0[s] = test_floats(q->slot_n[s]);
        q->state[s] = test_floats(q->slot_n[s]);
    }
}

void probe_close(probe *q)
{
    free(q->p0);
    free(q->p);
    free(q->g0);
    free(q->g);
    free(q->stats);
    for (size_t s = 0; s < q->slots; s++) {
        free(q->state0[s]);
        free(q->state[s]);
    }
}

/* Elements that a content makes zero. */
static int is_zero(const probe *q, content what, size_t i)
{
    const size_t chunk = q->n > 12288 ? 4096 : q->n / 3;
    const int in_chunk = i >= chunk && i < 2 * chunk;
    if (what == ZERO_CHUNK) return in_chunk;
    if (what == TINY_CHUNK) return !in_chunk;
    if (what != ZERO_LINES_BIG || q->shape.ndim < 2) return 0;
    const size_t cols = (size_t)q->shape.shape[q->shape.ndim - 1];
    return i / cols == 1 || i % cols == cols / 2;
}

/* First moments are signed; second ones, by element, row or column, are squares. */
static void fill_state(probe *q, content what)
{
    const int tiny = what == TINY || what == TINY_CHUNK;
    for (size_t s = 0; s < q->slots; s++) {
        float *x = q->state0[s];
        test_fill(x, q->slot_n[s], 300 + s, -3, 5);
        for (size_t i = 0; i < q->slot_n[s]; i++) {
            if (s) x[i] = tiny ? 0.0f : x[i] * x[i] + 0x1p-20f;
            if (!s && tiny) x[i] *= 0x1p-83f;
            if (!s && is_zero(q, what, i)) x[i] = 0.0f;
            if (what == ZERO_LINES_BIG) x[i] = 0.0f;
        }
    }
}

void probe_fill(probe *q, content what, uint64_t seed)
{
    q->content = what;
    test_fill(q->p0, q->n, seed, -1, 3);
    test_fill(q->g0, q->n, seed + 1, what == ZERO_LINES_BIG ? 30 : -3, 5);
    for (size_t i = 0; i < q->n; i++) {
        if (what == TINY || what == TINY_CHUNK) {
            q->p0[i] *= 0x1p-83f;
            q->g0[i] *= 0x1p-83f;
        }
        if (!is_zero(q, what, i)) continue;
        q->g0[i] = 0.0f;
        if (what != ZERO_LINES_BIG) q->p0[i] = 0.0f;
    }
    fill_state(q, what);
    if (what != NORMAL || !q->n) return;
    q->p0[q->n - 1] = 9.0f; /* to miss the last element is to miss much */
    q->g0[q->n - 1] = -0.75f;
}

void probe_reset(probe *q)
{
    memcpy(q->p, q->p0, q->n * sizeof(float));
    memcpy(q->g, q->g0, q->n * sizeof(float));
    for (size_t s = 0; s < q->slots; s++)
        memcpy(q->state[s], q->state0[s], q->slot_n[s] * sizeof(float));
    memset(q->stats, 0, (size_t)(q->segments > 1 ? q->segments : 1) * sizeof *q->stats);
    q->step = PROBE_STEP - 1;
}

largo_param probe_param(probe *q, uint32_t more_flags)
{
    largo_param p;
    memset(&p, 0, sizeof p);
    p.value = p.grad = q->shape;
    p.value.data = q->p;
    p.grad.data = q->g;
    for (size_t s = 0; s < q->slots; s++) p.state[s] = q->state[s];
    p.segments = q->segments;
    p.flags = q->flags | more_flags;
    p.step = &q->step;
    p.stats = q->stats;
    return p;
}

uint64_t probe_hash(uint64_t seed, const probe *q)
{
    uint64_t hash = test_hash(seed, q->p, q->n);
    for (size_t s = 0; s < q->slots; s++) hash = test_hash(hash, q->state[s], q->slot_n[s]);
    return hash;
}

double probe_norm(size_t n, const probe q[])
{
    double sum = 0.0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < q[k].n; i++) sum += (double)q[k].g0[i] * (double)q[k].g0[i];
    return sqrt(sum);
}
