/* labels: short
 *
 * Memory that a step writes may not overlap anything else of the call; memory that it only reads
 * may be shared. */
#include <stdio.h>
#include <string.h>
#include "support.h"

enum { N = 8, ROOM = 200 };

/* Where, in floats, each tensor of two parameters lies in one array. */
typedef struct places {
    int value[2], grad[2], state[2][2];
} places;

static const places APART = {{0, 20}, {40, 60}, {{80, 100}, {120, 140}}};

typedef struct scene {
    float memory[ROOM];
    largo_param params[2];
} scene;

static void make(scene *s, const places *at, uint32_t flags)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < ROOM; i++) s->memory[i] = 0.5f + (float)(i % 7);
    for (int i = 0; i < 2; i++) {
        s->params[i] = largo_param_f32(s->memory + at->value[i], s->memory + at->grad[i], N, 1);
        for (int k = 0; k < 2; k++) s->params[i].state[k] = s->memory + at->state[i][k];
        s->params[i].flags = flags;
    }
}

static largo_hyper lamb(void)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_LAMB));
    return h;
}

static void refused(const places *at, uint32_t flags, const char *one, const char *other)
{
    largo_ctx *ctx = test_ctx(2);
    const largo_hyper h = lamb();
    scene s, before;
    make(&s, at, flags);
    memcpy(&before, &s, sizeof s);
    assert_refused(LARGO_ERR_ARGUMENT, "overlaps", largo_step(ctx, &h, 1, 2, s.params));
    test_assert_contains(largo_last_error(), one, __FILE__, __LINE__);
    test_assert_contains(largo_last_error(), other, __FILE__, __LINE__);
    assert_memory_equal(&s, &before, sizeof s);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    assert_ok(largo_optim_add_group(o, &h, 1, &s.params[0], NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "overlaps",
                   largo_optim_add_group(o, &h, 1, &s.params[1], NULL));
    test_assert_contains(largo_last_error(), "group 1: params[0]", __FILE__, __LINE__);
    assert_memory_equal(&s, &before, sizeof s);
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

static void allowed(const places *at, uint32_t flags)
{
    largo_ctx *ctx = test_ctx(2);
    const largo_hyper h = lamb();
    scene s;
    make(&s, at, flags);
    assert_ok(largo_step(ctx, &h, 1, 2, s.params));
    largo_ctx_destroy(ctx);
}

/* Every pair of tensors of different parameters of which at least one is written, at every distance
 * around the touch. */
static void pairs_at_every_distance(void **state)
{
    (void)state;
    static const char *const names[4] = {"value", "grad", "state[0]", "state[1]"};
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int shift = -N - 1; shift <= N + 1; shift++) {
                places at = APART;
                const int base = 170;
                int *const first[4] = {&at.value[0], &at.grad[0], at.state[0], &at.state[0][1]};
                int *const second[4] = {&at.value[1], &at.grad[1], at.state[1], &at.state[1][1]};
                *first[a] = base;
                *second[b] = base + shift;
                const int meet = shift > -N && shift < N, both_read = a == 1 && b == 1;
                char one[40], other[40];
                snprintf(one, sizeof one, "params[0].%s", names[a]);
                snprintf(other, sizeof other, "params[1].%s", names[b]);
                if (!meet || both_read)
                    allowed(&at, 0);
                else
                    refused(&at, 0, one, strstr(other, ".") + 1);
            }
}

static void refused_alone(const places *at, uint32_t flags)
{
    largo_ctx *ctx = test_ctx(1);
    const largo_hyper h = lamb();
    scene s, before;
    make(&s, at, flags);
    memcpy(&before, &s, sizeof s);
    assert_refused(LARGO_ERR_ARGUMENT, "overlaps", largo_step(ctx, &h, 1, 1, s.params));
    assert_memory_equal(&s, &before, sizeof s);
    largo_ctx_destroy(ctx);
}

static void inside_one_parameter(void **state)
{
    (void)state;
    for (int a = 0; a < 4; a++)
        for (int b = a + 1; b < 4; b++)
            for (int shift = 0; shift < N; shift++) {
                places at = APART;
                int *const tensor[4] = {&at.value[0], &at.grad[0], at.state[0], &at.state[0][1]};
                *tensor[b] = *tensor[a] + shift;
                refused_alone(&at, 0);
            }
}

static void gradients_as_scratch(void **state)
{
    (void)state;
    places at = APART;
    at.grad[1] = at.grad[0];
    allowed(&at, 0);
    refused(&at, LARGO_PARAM_GRAD_SCRATCH, "params[1].grad", "params[0].grad");
    at.grad[1] = at.grad[0] + N - 1;
    refused(&at, LARGO_PARAM_GRAD_SCRATCH, "params[1].grad", "params[0].grad");
    at.grad[1] = at.grad[0] + N;
    allowed(&at, LARGO_PARAM_GRAD_SCRATCH);
}

/* One reader and one writer of the same gradient. */
static void one_gradient_as_scratch(void **state)
{
    (void)state;
    places at = APART;
    at.grad[1] = at.grad[0];
    largo_ctx *ctx = test_ctx(1);
    const largo_hyper h = lamb();
    for (int i = 0; i < 2; i++) {
        scene s, before;
        make(&s, &at, 0);
        s.params[i].flags = LARGO_PARAM_GRAD_SCRATCH;
        memcpy(&before, &s, sizeof s);
        assert_refused(LARGO_ERR_ARGUMENT, "overlaps", largo_step(ctx, &h, 1, 2, s.params));
        assert_memory_equal(&s, &before, sizeof s);
    }
    largo_ctx_destroy(ctx);
}

/* A long tensor hides shorter ones between it and the one that it meets. */
static void behind_others(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_SGD));
    float memory[ROOM] = {0}, grads[ROOM] = {0};
    largo_param p[4] = {largo_param_f32(memory, grads, 100, 1),
                        largo_param_f32(grads + 180, memory + 10, 2, 1), /* reads inside: refused */
                        largo_param_f32(grads + 184, memory + 150, 2, 1),
                        largo_param_f32(memory + 110, grads, 2, 1)};
    assert_refused(LARGO_ERR_ARGUMENT, "params[1].grad", largo_step(ctx, &h, 1, 4, p));
    p[1].grad.data = memory + 120;
    assert_ok(largo_step(ctx, &h, 1, 4, p));
    p[3].value.data = memory + 99;
    assert_refused(LARGO_ERR_ARGUMENT, "params[3].value", largo_step(ctx, &h, 1, 4, p));
    p[3].value.data = memory + 151; /* what params[2] reads */
    assert_refused(LARGO_ERR_ARGUMENT, "params[3].value", largo_step(ctx, &h, 1, 4, p));
    p[3].grad.data = grads + 10; /* one gradient inside another may be; a value behind it not */
    p[3].value.data = grads + 50;
    assert_refused(LARGO_ERR_ARGUMENT, "params[3].value", largo_step(ctx, &h, 1, 4, p));
    p[3].value.data = memory + 110;
    assert_ok(largo_step(ctx, &h, 1, 4, p));
    largo_ctx_destroy(ctx);
}

/* What is not touched cannot be in the way. */
static void frozen_and_empty_do_not_count(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    const largo_hyper h = lamb();
    places at = APART;
    at.value[1] = at.value[0];
    for (int i = 0; i < 3; i++) {
        scene s;
        make(&s, &at, 0);
        if (i == 0) s.params[1].flags = LARGO_PARAM_FROZEN;
        if (i == 1) s.params[1].grad.data = NULL;
        if (i == 2) s.params[1].value.shape[0] = s.params[1].grad.shape[0] = 0;
        assert_ok(largo_step(ctx, &h, 1, 2, s.params));
    }
    largo_ctx_destroy(ctx);
}

/* Counts are written too. */
static void counts_overlap_tensors(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    const largo_hyper h = lamb();
    scene s, before;
    make(&s, &APART, 0);
    memset(s.memory, 0, sizeof s.memory); /* a count of 0 */
    s.params[0].step = (int64_t *)(void *)(s.memory + APART.value[1]);
    memcpy(&before, &s, sizeof s);
    assert_status(LARGO_ERR_ARGUMENT, largo_step(ctx, &h, 1, 2, s.params));
    assert_memory_equal(&s, &before, sizeof s);
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_at_every_distance), cmocka_unit_test(inside_one_parameter),
        cmocka_unit_test(gradients_as_scratch),    cmocka_unit_test(one_gradient_as_scratch),
        cmocka_unit_test(behind_others),           cmocka_unit_test(frozen_and_empty_do_not_count),
        cmocka_unit_test(counts_overlap_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
