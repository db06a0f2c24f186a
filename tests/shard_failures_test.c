/* labels: property short
 *
 * Reductions that fail, are missing, abandoned or out of order: what is written, what the library
 * says, and whether an object goes on afterwards. */
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { N = 5000 };

/* A host whose all_reduce of one rank fails at one call of a step. */
typedef struct host {
    int calls, fails_at; /* from 1; 0: never */
} host;

static int all_reduce(void *user, void *values, size_t n, largo_dtype dtype, largo_reduce_op op,
                      void *stream)
{
    host *h = user;
    assert_non_null(values);
    assert_true(n > 0 && !stream);
    assert_int_equal(op, dtype == LARGO_U32 ? LARGO_MAX : LARGO_SUM);
    return ++h->calls == h->fails_at ? 7 : 0;
}

/* One SHARDED tensor, all of which is here, and a LOCAL one. */
typedef struct rig {
    host host;
    largo_ctx *ctx;
    largo_hyper hyper;
    largo_shard shard;
    largo_param params[2];
    int64_t count[2];
    float *memory, *before; /* of everything */
} rig;

enum { TENSORS = 8, FLOATS = TENSORS * N };

static void open_rig(rig *r, largo_algo algo, const char *set, int has_callback)
{
    memset(r, 0, sizeof *r);
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = 2;
    options.all_reduce = has_callback ? all_reduce : NULL;
    options.all_reduce_user = &r->host;
    r->ctx = test_ctx_of(&options);
    assert_ok(largo_hyper_init(&r->hyper, algo));
    test_hyper_set(&r->hyper, set);
    r->memory = test_floats(FLOATS);
    r->before = test_floats(FLOATS);
    test_fill(r->memory, 4 * N, 5, -2, 3);
    r->shard = (largo_shard){LARGO_SHARDED, 1, {N, 0, 0, 0, 0, 0}, 0};
    for (int i = 0; i < 2; i++) {
        float *at = r->memory + i * N;
        r->params[i] = largo_param_f32(at, at + 2 * N, N, 1);
        for (int s = 0; s < 2; s++) r->params[i].state[s] = at + (4 + 2 * s) * N;
        r->params[i].step = &r->count[i];
    }
    r->params[0].shard = &r->shard;
    memcpy(r->before, r->memory, FLOATS * sizeof(float));
}

static void close_rig(rig *r)
{
    largo_ctx_destroy(r->ctx);
    free(r->memory);
    free(r->before);
}

static int is_untouched(const rig *r)
{
    return memcmp(r->before, r->memory, FLOATS * sizeof(float)) == 0 && !r->count[0] &&
           !r->count[1];
}

static largo_optim *make_object(rig *r)
{
    largo_optim *o;
    assert_ok(largo_optim_create(r->ctx, &o));
    assert_ok(largo_optim_add_group(o, &r->hyper, 2, r->params, NULL));
    return o;
}

/* Calls of a step with clip: the scan's norm, its maximum, then the trust ratio. */
enum { NORM = 1, LARGEST = 2, RATIO = 3 };

static void no_write_in_the_scan(void **state)
{
    (void)state;
    for (int at = NORM; at <= LARGEST; at++) {
        rig r;
        open_rig(&r, LARGO_LAMB, "max_grad_norm=1", 1);
        largo_optim *o = make_object(&r);
        r.host.fails_at = at;
        assert_refused(LARGO_ERR_CALLBACK, "nothing was written", largo_optim_step(o));
        assert_refused(LARGO_ERR_CALLBACK, "returned 7",
                       (r.host.calls = 0, largo_step(r.ctx, &r.hyper, 1, 2, r.params)));
        assert_true(is_untouched(&r));
        r.host = (host){0, 0};
        assert_ok(largo_optim_step(o));
        assert_int_equal(r.host.calls, RATIO);
        assert_int_equal(largo_optim_step_count(o), 1);
        assert_false(is_untouched(&r));
        largo_optim_destroy(o);
        close_rig(&r);
    }
}

/* LARS has written nothing when its norms are reduced, so its step can be made again. */
static void no_write_before_the_ratio_of_lars(void **state)
{
    (void)state;
    rig r, plain;
    open_rig(&r, LARGO_LARS, "", 1);
    open_rig(&plain, LARGO_LARS, "", 1);
    largo_optim *o = make_object(&r);
    r.host.fails_at = RATIO;
    assert_refused(LARGO_ERR_CALLBACK, "nothing was written", largo_optim_step(o));
    assert_true(is_untouched(&r));
    assert_ok(largo_optim_step(o));
    assert_ok(largo_step(plain.ctx, &plain.hyper, 1, 2, plain.params));
    assert_memory_equal(r.memory, plain.memory, FLOATS * sizeof(float));
    largo_optim_destroy(o);
    close_rig(&r);
    close_rig(&plain);
}

/* Which of its tensors have changed, as bits: value, state 0, state 1 of both parameters. */
static int changed(const rig *r)
{
    int bits = 0;
    for (int i = 0; i < TENSORS; i++)
        bits |= (memcmp(r->before + i * N, r->memory + i * N, N * sizeof(float)) != 0) << i;
    return bits;
}
enum { MOMENTS_OF_0 = 1 << 4 | 1 << 6 };

static void an_object_torn_at_the_ratio_stays_so(void **state)
{
    (void)state;
    static const largo_algo algos[] = {LARGO_LAMB, LARGO_MERIT, LARGO_CAME};
    for (int i = 0; i < 3; i++) {
        rig r;
        open_rig(&r, algos[i], "", 1);
        largo_optim *o = make_object(&r);
        r.host.fails_at = RATIO;
        assert_refused(LARGO_ERR_CALLBACK, "moments are written, values are not",
                       largo_optim_step(o));
        assert_int_equal(changed(&r) & ~MOMENTS_OF_0, 0); /* and nothing of the other */
        assert_int_not_equal(changed(&r), 0);
        assert_true(r.count[0] == 0 && r.count[1] == 0);
        largo_reduction next;
        for (int again = 0; again < 2; again++) {
            assert_refused(LARGO_ERR_STATE, "between two reductions", largo_optim_step(o));
            assert_refused(LARGO_ERR_STATE, "between two reductions",
                           largo_optim_step_round(o, 0, &next));
            assert_ok(largo_optim_rebind(o, 0, 2, r.params)); /* does not mend it */
        }
        largo_optim_destroy(o);
        close_rig(&r);
    }
}

/* ---- by rounds ---- */

static largo_status round_of(rig *r, largo_optim *o, int32_t round, largo_reduction *next)
{
    if (o) return largo_optim_step_round(o, round, next);
    return largo_step_round(r->ctx, &r->hyper, 1, 2, r->params, round, next);
}

/* A whole step of one rank, from `round` on; the number of reductions. */
static int finish(rig *r, largo_optim *o, int32_t round)
{
    for (largo_reduction next;; round++) {
        assert_ok(round_of(r, o, round, &next));
        if (!next.n) return round;
        assert_non_null(next.values);
    }
}

static void rounds_out_of_order(void **state)
{
    (void)state;
    for (int object = 0; object < 2; object++) {
        rig r;
        open_rig(&r, LARGO_LAMB, "", 0);
        largo_optim *o = object ? make_object(&r) : NULL;
        largo_reduction next = {&r, 5, LARGO_I64, LARGO_SUM};
        assert_refused(LARGO_ERR_STATE, "round is 1; the next one is 0", round_of(&r, o, 1, &next));
        assert_int_equal(next.n, 0);
        assert_refused(LARGO_ERR_STATE, "round is -1", round_of(&r, o, -1, &next));
        assert_ok(round_of(&r, o, 0, &next));
        assert_refused(LARGO_ERR_STATE, "round is 2; the next one is 1", round_of(&r, o, 2, &next));
        assert_true(is_untouched(&r));
        assert_int_equal(finish(&r, o, 1), RATIO); /* the mistake did no harm */
        assert_refused(LARGO_ERR_STATE, "round is 3; the next one is 0", round_of(&r, o, 3, &next));
        largo_optim_destroy(o);
        close_rig(&r);
    }
}

static void arguments_stay_those_of_round_0(void **state)
{
    (void)state;
    rig r, plain;
    open_rig(&r, LARGO_LAMB, "", 0);
    open_rig(&plain, LARGO_LAMB, "", 0);
    largo_reduction next;
    assert_ok(round_of(&r, NULL, 0, &next));
    largo_hyper other = r.hyper;
    other.lr *= 2.0;
    assert_refused(LARGO_ERR_STATE, "round 0",
                   largo_step_round(r.ctx, &other, 1, 2, r.params, 1, &next));
    assert_refused(LARGO_ERR_STATE, "round 0",
                   largo_step_round(r.ctx, &r.hyper, 2, 2, r.params, 1, &next));
    assert_refused(LARGO_ERR_STATE, "round 0",
                   largo_step_round(r.ctx, &r.hyper, 1, 1, r.params, 1, &next));
    r.params[1].flags = LARGO_PARAM_NO_DECAY;
    assert_refused(LARGO_ERR_STATE, "round 0", round_of(&r, NULL, 1, &next));
    assert_int_equal(next.n, 0);
    r.params[1].flags = 0;
    assert_true(is_untouched(&r));
    finish(&r, NULL, 1); /* with the right ones it goes on */
    finish(&plain, NULL, 0);
    assert_memory_equal(r.memory, plain.memory, FLOATS * sizeof(float));
    close_rig(&r);
    close_rig(&plain);
}

/* Left in the scan, a step may begin again; left at the ratio of LAMB, not with an object. */
static void abandoned_steps(void **state)
{
    (void)state;
    static const largo_algo algos[] = {LARGO_LAMB, LARGO_LARS};
    for (int i = 0; i < 4; i++) {
        const int rounds = i % 2 ? RATIO : LARGEST, is_torn = rounds == RATIO && i / 2 == 0;
        rig r;
        open_rig(&r, algos[i / 2], "", 0);
        largo_optim *o = make_object(&r);
        largo_reduction next;
        for (int32_t round = 0; round < rounds; round++) {
            assert_ok(round_of(&r, o, round, &next));
            assert_int_not_equal(next.n, 0);
        }
        assert_int_equal(!is_untouched(&r), is_torn);
        if (is_torn)
            assert_refused(LARGO_ERR_STATE, "between two reductions", round_of(&r, o, 0, &next));
        else
            finish(&r, o, 0);
        largo_optim_destroy(o);
        close_rig(&r);
    }
}

/* New addresses between rounds end the step: harmless in the scan, not when moments are written. */
static void rebind_between_rounds(void **state)
{
    (void)state;
    for (int rounds = LARGEST; rounds <= RATIO; rounds++)
        for (int adds = 0; adds < 2; adds++) {
            rig r;
            open_rig(&r, LARGO_LAMB, "", 0);
            largo_optim *o = make_object(&r);
            largo_reduction next;
            for (int32_t round = 0; round < rounds; round++)
                assert_ok(round_of(&r, o, round, &next));
            if (adds)
                assert_ok(largo_optim_add_group(o, &r.hyper, 0, NULL, NULL));
            else
                assert_ok(largo_optim_rebind(o, 0, 2, r.params));
            assert_refused(LARGO_ERR_STATE, "the next one is 0", round_of(&r, o, rounds, &next));
            if (rounds == RATIO)
                assert_refused(LARGO_ERR_STATE, "between two reductions",
                               round_of(&r, o, 0, &next));
            else
                finish(&r, o, 0);
            largo_optim_destroy(o);
            close_rig(&r);
        }
}

/* ---- without a reduction ---- */

static void sharded_needs_all_reduce(void **state)
{
    (void)state;
    static const struct {
        largo_algo algo;
        const char *set;
        int needs;
    } rows[] = {
        {LARGO_LAMB, "", 1},
        {LARGO_LAMB, "non_finite=3", 1},         /* its ratio */
        {LARGO_LAMB, "non_finite=3 adapt=3", 0}, /* has none */
        {LARGO_LARS, "non_finite=3", 1},
        {LARGO_ADAMW, "", 1}, /* the scan: all must skip together */
        {LARGO_ADAMW, "non_finite=3", 0},
        {LARGO_ADAMW, "non_finite=3 max_grad_norm=1", 1},
        {LARGO_SGD, "non_finite=3 momentum=0.9", 0},
        {LARGO_CAME, "non_finite=3", 1},
        {LARGO_MERIT, "non_finite=3", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r;
        open_rig(&r, rows[i].algo, rows[i].set, 0);
        const largo_param swapped[2] = {r.params[1], r.params[0]};
        largo_optim *o = make_object(&r);
        if (rows[i].needs) {
            assert_refused(LARGO_ERR_STATE, "parameter 0 is SHARDED", largo_optim_step(o));
            assert_refused(LARGO_ERR_STATE, "parameter 1 is SHARDED",
                           largo_step(r.ctx, &r.hyper, 1, 2, swapped));
            assert_true(is_untouched(&r));
            finish(&r, o, 0); /* by rounds it goes */
        } else {
            assert_ok(largo_optim_step(o));
        }
        assert_int_equal(r.count[0], 1);
        largo_optim_destroy(o);
        close_rig(&r);
    }
}

/* What is frozen is in no statistic. */
static void frozen_shards_need_nothing(void **state)
{
    (void)state;
    rig r;
    open_rig(&r, LARGO_LAMB, "", 0);
    r.params[0].flags = LARGO_PARAM_FROZEN;
    assert_ok(largo_step(r.ctx, &r.hyper, 1, 2, r.params));
    assert_int_equal(r.count[0], 0);
    assert_int_equal(r.count[1], 1);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_write_in_the_scan),
        cmocka_unit_test(no_write_before_the_ratio_of_lars),
        cmocka_unit_test(an_object_torn_at_the_ratio_stays_so),
        cmocka_unit_test(rounds_out_of_order),
        cmocka_unit_test(arguments_stay_those_of_round_0),
        cmocka_unit_test(abandoned_steps),
        cmocka_unit_test(rebind_between_rounds),
        cmocka_unit_test(sharded_needs_all_reduce),
        cmocka_unit_test(frozen_shards_need_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
