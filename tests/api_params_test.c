/* labels: short
 *
 * Everything that can be wrong with the parameters of a step, through both entries: refused with a
 * sentence that names argument, value and limit, and nothing changed. */
#include <string.h>
#include "support.h"

/* Two parameters with all memory that a step could touch in one struct, to compare it whole. */
typedef struct scene {
    float w[2][24], g[2][24], m[2][24], v[2][24];
    int64_t step[2];
    largo_param params[2];
    largo_shard shard; /* of parameter 1, where a test says so */
    largo_hyper hyper;
} scene;

static void make_scene(scene *s)
{
    memset(s, 0, sizeof *s);
    assert_ok(largo_hyper_init(&s->hyper, LARGO_LAMB));
    for (int i = 0; i < 2; i++) {
        test_fill(s->w[i], 24, 1, 0, 2);
        test_fill(s->g[i], 24, 2, 0, 2);
        test_fill(s->v[i], 24, 3, 0, 2);
        for (int e = 0; e < 24; e++) s->v[i][e] *= s->v[i][e];
        s->step[i] = 5;
        s->params[i] = largo_param_f32(s->w[i], s->g[i], 4, 6);
        s->params[i].state[0] = s->m[i];
        s->params[i].state[1] = s->v[i];
        s->params[i].step = &s->step[i];
    }
}

/* The scene is refused with the parameter's number and `text`, by both entries. */
static void refused(scene *s, largo_status status, const char *text)
{
    largo_ctx *ctx = test_ctx(2);
    scene before;
    memcpy(&before, s, sizeof before);
    assert_refused(status, text, largo_step(ctx, &s->hyper, 6, 2, s->params));
    test_assert_contains(largo_last_error(), "params[1]", __FILE__, __LINE__);
    assert_memory_equal(s, &before, sizeof before);
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    size_t group = 77;
    assert_refused(status, text, largo_optim_add_group(o, &s->hyper, 2, s->params, &group));
    test_assert_contains(largo_last_error(), "group 0: params[1]", __FILE__, __LINE__);
    assert_int_equal(group, 77);
    assert_null(largo_optim_hyper(o, 0));
    assert_memory_equal(s, &before, sizeof before);
    largo_optim_destroy(o);
    largo_outcome outcome = {.struct_size = sizeof outcome};
    assert_status(LARGO_ERR_STATE, largo_last_outcome(ctx, &outcome)); /* no step was made */
    largo_ctx_destroy(ctx);
}

#define REFUSED(status, text, change)                                                              \
    do {                                                                                           \
        scene s;                                                                                   \
        make_scene(&s);                                                                            \
        largo_param *p = &s.params[1];                                                             \
        (void)p;                                                                                   \
        change;                                                                                    \
        refused(&s, status, text);                                                                 \
    } while (0)

static void dtypes(void **state)
{
    (void)state;
    const int hostile[5] = {0, 2, -1, 0x7fffffff, -0x7fffffff - 1};
    for (int i = 0; i < 5; i++) {
        REFUSED(LARGO_ERR_DTYPE, "value.dtype", p->value.dtype = (largo_dtype)hostile[i]);
        REFUSED(LARGO_ERR_DTYPE, "grad.dtype", p->grad.dtype = (largo_dtype)hostile[i]);
    }
}

static void ranks_and_shapes(void **state)
{
    (void)state;
    const int32_t hostile[4] = {-1, LARGO_MAX_DIMS + 1, 0x7fffffff, -0x7fffffff - 1};
    for (int i = 0; i < 4; i++) {
        REFUSED(LARGO_ERR_SHAPE, "value.ndim", p->value.ndim = hostile[i]);
        REFUSED(LARGO_ERR_SHAPE, "grad.ndim", p->grad.ndim = hostile[i]);
    }
    REFUSED(LARGO_ERR_SHAPE, "value.shape[0]", p->value.shape[0] = -1);
    REFUSED(LARGO_ERR_SHAPE, "value.shape[1]", p->value.shape[1] = INT64_MIN);
    REFUSED(LARGO_ERR_SHAPE, "grad.shape[1]", p->grad.shape[1] = -1);
    REFUSED(LARGO_ERR_SHAPE, "grad.shape[1] is 5; it must be that of value, 6",
            p->grad.shape[1] = 5);
    REFUSED(LARGO_ERR_SHAPE, "grad.ndim is 1; it must be that of value, 2", p->grad.ndim = 1);
    REFUSED(LARGO_ERR_SHAPE, "grad.shape", p->grad.shape[0] = 0);
    REFUSED(LARGO_ERR_SHAPE, "grad.shape", (p->grad.shape[0] = 6, p->grad.shape[1] = 4));
}

static void set_shape(largo_param *p, int64_t a, int64_t b, int64_t c)
{
    p->value.ndim = p->grad.ndim = 3;
    const int64_t shape[3] = {a, b, c};
    memcpy(p->value.shape, shape, sizeof shape);
    memcpy(p->grad.shape, shape, sizeof shape);
}

static void too_many_elements(void **state)
{
    (void)state;
    const int64_t k = (int64_t)1 << 20;
    REFUSED(LARGO_ERR_SHAPE, "2^60", set_shape(p, k, k, k + 1));
    REFUSED(LARGO_ERR_SHAPE, "2^60", set_shape(p, INT64_MAX, 1, 1));
    REFUSED(LARGO_ERR_SHAPE, "2^60", set_shape(p, INT64_MAX, INT64_MAX, INT64_MAX));
    REFUSED(LARGO_ERR_SHAPE, "2^60",
            set_shape(p, (int64_t)1 << 32, (int64_t)1 << 32, 1)); /* 2^64 */
    REFUSED(LARGO_ERR_SHAPE, "2^60", set_shape(p, (int64_t)3 << 61, 3, 3));
    REFUSED(LARGO_ERR_SHAPE, "shape[2]", set_shape(p, INT64_MAX, INT64_MAX, -1));
    /* 2^60 is legal: the next thing that is wrong is complained of */
    largo_ctx *ctx = test_ctx(1);
    scene s;
    make_scene(&s);
    set_shape(&s.params[1], k, k, k);
    s.params[1].state[0] = NULL;
    assert_refused(LARGO_ERR_ARGUMENT, "params[1].state[0] is NULL",
                   largo_step(ctx, &s.hyper, 6, 2, s.params));
    largo_ctx_destroy(ctx);
}

static void a_zero_makes_others_legal(void **state)
{
    (void)state;
    scene s;
    largo_ctx *ctx = test_ctx(2);
    for (int at = 0; at < 3; at++) {
        make_scene(&s);
        largo_param *p = &s.params[1];
        set_shape(p, INT64_MAX, INT64_MAX, INT64_MAX);
        p->value.shape[at] = p->grad.shape[at] = 0;
        assert_ok(largo_step(ctx, &s.hyper, 6, 2, s.params));
        assert_int_equal(s.step[0], 6);
        assert_int_equal(s.step[1], 6); /* no work, but a step */
    }
    largo_ctx_destroy(ctx);
}

static void pointers(void **state)
{
    (void)state;
    REFUSED(LARGO_ERR_ARGUMENT, "value.data is NULL; it must hold 24 elements",
            p->value.data = NULL);
    for (int by = 1; by < 4; by++) {
        REFUSED(LARGO_ERR_ARGUMENT, "value.data", p->value.data = (char *)p->value.data + by);
        REFUSED(LARGO_ERR_ARGUMENT, "aligned to 4", p->value.data = (char *)p->value.data + by);
        REFUSED(LARGO_ERR_ARGUMENT, "grad.data", p->grad.data = (char *)p->grad.data + by);
        REFUSED(LARGO_ERR_ARGUMENT, "state[1]", p->state[1] = (char *)p->state[1] + by);
    }
}

/* Only a step with the caller's state misses it; an object makes its own. */
static void missing_state(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    for (int slot = 0; slot < 2; slot++) {
        scene s, before;
        make_scene(&s);
        s.params[1].state[slot] = NULL;
        memcpy(&before, &s, sizeof s);
        assert_refused(LARGO_ERR_ARGUMENT,
                       slot ? "params[1].state[1] is NULL; lamb needs slot 1 "
                              "(exp_avg_sq), 96 bytes"
                            : "params[1].state[0] is NULL; lamb needs slot 0 "
                              "(exp_avg), 96 bytes",
                       largo_step(ctx, &s.hyper, 6, 2, s.params));
        assert_memory_equal(&s, &before, sizeof s);
    }
    largo_ctx_destroy(ctx);
}

static void flags_and_reserved(void **state)
{
    (void)state;
    for (int bit = 4; bit < 32; bit++)
        REFUSED(LARGO_ERR_ARGUMENT, "flags", p->flags = 1u << bit | LARGO_PARAM_NO_DECAY);
    for (int word = 0; word < 3; word++)
        REFUSED(LARGO_ERR_ARGUMENT, "reserved", p->reserved[word] = (uint64_t)1 << 63);
    REFUSED(LARGO_ERR_ARGUMENT, "pad", p->pad = 1);
    REFUSED(LARGO_ERR_ARGUMENT, "flags",
            (p->flags = 16u | LARGO_PARAM_FROZEN, p->grad.data = NULL)); /* even if never touched */
}

static void segments(void **state)
{
    (void)state;
    REFUSED(LARGO_ERR_ARGUMENT, "segments is -1", p->segments = -1);
    REFUSED(LARGO_ERR_ARGUMENT, "segments", p->segments = -0x7fffffff - 1);
    REFUSED(LARGO_ERR_SHAPE, "segments is 3; it must divide shape[0], 4", p->segments = 3);
    REFUSED(LARGO_ERR_SHAPE, "segments", p->segments = 8);
    REFUSED(LARGO_ERR_SHAPE, "segments is 2", (p->segments = 2, p->value.ndim = p->grad.ndim = 0));
}

static void counts(void **state)
{
    (void)state;
    REFUSED(LARGO_ERR_ARGUMENT, "step counts -1", s.step[1] = -1);
    REFUSED(LARGO_ERR_ARGUMENT, "step counts", s.step[1] = INT64_MIN);
    REFUSED(LARGO_ERR_ARGUMENT, "step counts", s.step[1] = INT64_MAX);
}

/* Counts are the caller's: they may go wrong after the descriptors have been checked. */
static void a_count_that_goes_wrong_later(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    scene s, before;
    make_scene(&s);
    assert_ok(largo_step(ctx, &s.hyper, 6, 2, s.params));
    s.step[1] = -1;
    memcpy(&before, &s, sizeof s);
    assert_refused(LARGO_ERR_ARGUMENT, "counts -1", largo_step(ctx, &s.hyper, 7, 2, s.params));
    assert_memory_equal(&s, &before, sizeof s);
    s.step[1] = INT64_MAX - 1;
    assert_ok(largo_step(ctx, &s.hyper, 7, 2, s.params));
    assert_true(s.step[1] == INT64_MAX);
    largo_ctx_destroy(ctx);
}

static void arguments_of_the_calls(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    scene s, before;
    make_scene(&s);
    memcpy(&before, &s, sizeof s);
    assert_refused(LARGO_ERR_ARGUMENT, "ctx is NULL", largo_step(NULL, &s.hyper, 1, 2, s.params));
    assert_refused(LARGO_ERR_ARGUMENT, "hyper is NULL", largo_step(ctx, NULL, 1, 2, s.params));
    assert_refused(LARGO_ERR_ARGUMENT, "params is NULL", largo_step(ctx, &s.hyper, 1, 2, NULL));
    const int64_t steps[3] = {0, -1, INT64_MIN};
    for (int i = 0; i < 3; i++)
        assert_refused(LARGO_ERR_ARGUMENT, "step is",
                       largo_step(ctx, &s.hyper, steps[i], 2, s.params));
    const size_t n[3] = {(size_t)1 << 32, SIZE_MAX, SIZE_MAX / 256 + 2};
    largo_optim *o;
    assert_ok(largo_optim_create(ctx, &o));
    for (int i = 0; i < 3; i++) {
        assert_refused(LARGO_ERR_ARGUMENT, "n is", largo_step(ctx, &s.hyper, 1, n[i], s.params));
        assert_refused(LARGO_ERR_ARGUMENT, "n is",
                       largo_optim_add_group(o, &s.hyper, n[i], s.params, NULL));
    }
    assert_refused(LARGO_ERR_ARGUMENT, "params is NULL",
                   largo_optim_add_group(o, &s.hyper, 1, NULL, NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "hyper is NULL",
                   largo_optim_add_group(o, NULL, 2, s.params, NULL));
    assert_refused(LARGO_ERR_ARGUMENT, "optim is NULL",
                   largo_optim_add_group(NULL, &s.hyper, 2, s.params, NULL));
    assert_memory_equal(&s, &before, sizeof s);
    assert_ok(largo_step(ctx, &s.hyper, INT64_MAX, 0, NULL)); /* nothing to do */
    largo_optim_destroy(o);
    largo_ctx_destroy(ctx);
}

/* Parameter 1 is rows 2 to 5 of a matrix of 10 x 6. */
static largo_shard *shard(scene *s)
{
    s->params[1].shard = &s->shard;
    s->shard = (largo_shard){LARGO_SHARDED, 2, {10, 6, 0, 0, 0, 0}, 12};
    return &s->shard;
}

static void shards(void **state)
{
    (void)state;
    const largo_status bad = LARGO_ERR_ARGUMENT, shape = LARGO_ERR_SHAPE;
    REFUSED(bad, "shard.placement is 0", shard(&s)->placement = 0);
    REFUSED(bad, "shard.placement is 4", shard(&s)->placement = (largo_placement)4);
    REFUSED(shape, "shard.offset is -1", shard(&s)->offset = -1);
    REFUSED(shape, "shard.offset is 37 with 24 elements here", shard(&s)->offset = 37);
    REFUSED(shape, "within the 60 of the whole", shard(&s)->offset = INT64_MAX);
    REFUSED(shape, "within the 60 of the whole", shard(&s)->offset = INT64_MIN);
    REFUSED(shape, "within the 18 of the whole", shard(&s)->shape[0] = 3);
    REFUSED(shape, "within the 0 of the whole", shard(&s)->shape[0] = 0);
    REFUSED(shape, "shard.ndim is -1", shard(&s)->ndim = -1);
    REFUSED(shape, "shard.ndim is 7", shard(&s)->ndim = 7);
    REFUSED(shape, "within the 1 of the whole", shard(&s)->ndim = 0);
    REFUSED(shape, "shard.shape[1] is -6", shard(&s)->shape[1] = -6);
    REFUSED(shape, "shard has more than 2^60", shard(&s)->shape[0] = (int64_t)1 << 60);
    REFUSED(shape, "segments is 4; it must divide shape[0], 10", (shard(&s), p->segments = 4));
    for (int i = LARGO_LOCAL; i <= LARGO_REPLICATED; i += 2) {
        const largo_placement whole = (largo_placement)i;
        REFUSED(bad, "without SHARDED both must be 0",
                (*shard(&s) = (largo_shard){whole, 2, {4, 6, 0, 0, 0, 0}, 0}));
        REFUSED(bad, "shard.ndim is 0 and offset 6",
                (*shard(&s) = (largo_shard){whole, 0, {0}, 6}));
    }
}

/* Algorithms that look at rows take whole ones; of a vector in a shape of any kind, any elements. */
static void shards_of_rows(void **state)
{
    (void)state;
    static const largo_algo algos[2] = {LARGO_CAME, LARGO_MERIT};
    for (int i = 0; i < 2; i++) {
        largo_hyper h;
        assert_ok(largo_hyper_init(&h, algos[i]));
        REFUSED(LARGO_ERR_SHAPE, "whole rows of 6",
                (s.params[0].grad.data = NULL, s.hyper = h, shard(&s)->offset = 13));
        REFUSED(LARGO_ERR_SHAPE, "whole rows of 5",
                (s.params[0].grad.data = NULL, s.hyper = h, shard(&s)->shape[1] = 5));
    }
    REFUSED(LARGO_ERR_SHAPE, "MERIT takes at most 2",
            (assert_ok(largo_hyper_init(&s.hyper, LARGO_MERIT)), shard(&s)->ndim = 3,
             s.shard.shape[2] = 1));
    scene s;
    make_scene(&s);
    shard(&s)->offset = 13; /* LAMB does not mind */
    largo_ctx *ctx = test_ctx(1);
    largo_reduction next;
    assert_ok(largo_step_round(ctx, &s.hyper, 6, 2, s.params, 0, &next));
    s.shard.shape[5] = 77; /* ignored: the same arguments as before */
    assert_ok(largo_step_round(ctx, &s.hyper, 6, 2, s.params, 1, &next));
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards),
        cmocka_unit_test(shards_of_rows),
        cmocka_unit_test(dtypes),
        cmocka_unit_test(ranks_and_shapes),
        cmocka_unit_test(too_many_elements),
        cmocka_unit_test(a_zero_makes_others_legal),
        cmocka_unit_test(pointers),
        cmocka_unit_test(missing_state),
        cmocka_unit_test(flags_and_reserved),
        cmocka_unit_test(segments),
        cmocka_unit_test(counts),
        cmocka_unit_test(a_count_that_goes_wrong_later),
        cmocka_unit_test(arguments_of_the_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
