/* labels: property short every-isa
 *
 * What becomes of a step whose gradients are not finite or too large: all or nothing over tensors
 * and groups, the same first value for any number of threads, what PROPAGATE lets through. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "support_probe.h"

#define SKIP LARGO_NON_FINITE_SKIP
#define ERROR LARGO_NON_FINITE_ERROR
#define PROPAGATE LARGO_NON_FINITE_PROPAGATE

enum { TENSORS = 5, GROUPS = 2, FIRST_OF_GROUP_1 = 3, CASES = 8 };

static largo_hyper algorithm(int i)
{
    static const struct {
        largo_algo algo;
        const char *set;
    } cases[CASES] = {
        {LARGO_SGD, ""},  {LARGO_SGD, "momentum=0.9"},  {LARGO_ADAMW, ""}, {LARGO_LARS, "lr=0.01"},
        {LARGO_LAMB, ""}, {LARGO_LAMB, "l2=1 adapt=3"}, {LARGO_CAME, ""},  {LARGO_MERIT, ""},
    };
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, cases[i].algo));
    test_hyper_set(&h, cases[i].set);
    return h;
}

/* Small and large tensors, a matrix of each size and an empty one, in two groups. */
typedef struct scene {
    largo_hyper hyper[GROUPS];
    probe q[TENSORS];
    largo_outcome outcome; /* of the last step */
} scene;

static void open_scene(scene *s, const largo_hyper *h)
{
    const int64_t shape[TENSORS][2] = {{40, 1}, {300, 200}, {0, 1}, {70001, 1}, {7, 5}};
    memset(s, 0, sizeof *s);
    for (int g = 0; g < GROUPS; g++) s->hyper[g] = *h;
    for (int i = 0; i < TENSORS; i++) {
        probe_open(&s->q[i], h, shape[i][1] > 1 ? 2 : 1, shape[i], 0, 0);
        probe_fill(&s->q[i], NORMAL, 5 + (uint64_t)i);
        probe_reset(&s->q[i]);
    }
}

static void close_scene(scene *s)
{
    for (int i = 0; i < TENSORS; i++) probe_close(&s->q[i]);
}

static void reset(scene *s)
{
    for (int i = 0; i < TENSORS; i++) probe_reset(&s->q[i]);
}

/* Value, state and counts. */
static uint64_t hash_of(const scene *s)
{
    uint64_t hash = 0;
    for (int i = 0; i < TENSORS; i++) hash = probe_hash(hash, &s->q[i]) + (uint64_t)s->q[i].step;
    return hash;
}

/* One step of an object with both groups, or of the functional entry by group 0's. */
static largo_status step(scene *s, int threads, int in_groups)
{
    largo_param p[TENSORS];
    for (int i = 0; i < TENSORS; i++) p[i] = probe_param(&s->q[i], 0);
    largo_ctx *ctx = test_ctx(threads);
    largo_status status;
    if (in_groups) {
        largo_optim *o;
        assert_ok(largo_optim_create(ctx, &o));
        assert_ok(largo_optim_add_group(o, &s->hyper[0], FIRST_OF_GROUP_1, p, NULL));
        assert_ok(largo_optim_add_group(o, &s->hyper[1], TENSORS - FIRST_OF_GROUP_1,
                                        p + FIRST_OF_GROUP_1, NULL));
        status = largo_optim_step(o);
        assert_int_equal(largo_optim_step_count(o), status == LARGO_OK);
        largo_optim_destroy(o);
    } else {
        status = largo_step(ctx, &s->hyper[0], 1, TENSORS, p);
    }
    s->outcome = (largo_outcome){.struct_size = sizeof s->outcome};
    assert_ok(largo_last_outcome(ctx, &s->outcome));
    largo_ctx_destroy(ctx);
    return status;
}

static void both_policies(scene *s, largo_non_finite first, largo_non_finite second)
{
    s->hyper[0].non_finite = first;
    s->hyper[1].non_finite = second;
}

typedef struct bad {
    int tensor;
    size_t element;
    float value;
} bad;

static void plant(scene *s, size_t n, const bad values[])
{
    for (size_t i = 0; i < n; i++) s->q[values[i].tensor].g[values[i].element] = values[i].value;
}

/* The step stops with this status, wrote and counted nothing, and tells this value. */
static void stops(scene *s, int threads, int in_groups, largo_status expected, const bad *told)
{
    const uint64_t before = hash_of(s);
    char text[100];
    snprintf(text, sizeof text, "parameter %d is %g at element %zu;", told->tensor,
             (double)told->value, told->element);
    assert_refused(expected, text, step(s, threads, in_groups));
    assert_true(hash_of(s) == before);
    assert_int_equal(s->outcome.skipped, 1);
    assert_int_equal(s->outcome.scanned, 1);
    assert_int_equal(s->outcome.bad_param, told->tensor);
    assert_int_equal(s->outcome.bad_element, told->element);
}

static void goes_on(scene *s, int threads, int in_groups)
{
    assert_ok(step(s, threads, in_groups));
    assert_int_equal(s->outcome.skipped, 0);
    assert_int_equal(s->outcome.bad_param, -1);
    assert_int_equal(s->outcome.bad_element, -1);
}

/* ---- the first value ---- */

/* Last in memory first; the order of groups, parameters and elements decides. */
static void the_same_first_for_any_threads(void **state)
{
    (void)state;
    static const bad values[] = {{4, 34, NAN},     {3, 70000, INFINITY}, {3, 69999, -INFINITY},
                                 {3, 8191, NAN},   {1, 59999, NAN},      {1, 30000, -INFINITY},
                                 {1, 0, INFINITY}, {0, 39, -INFINITY},   {0, 0, NAN}};
    enum { VALUES = sizeof values / sizeof *values };
    for (int k = 0; k < CASES; k += 3) { /* SGD, LARS, CAME: all are read by the same scan */
        const largo_hyper h = algorithm(k);
        scene s;
        open_scene(&s, &h);
        for (size_t n = 1; n <= VALUES; n++) {
            const largo_non_finite policy = n % 2 ? SKIP : ERROR;
            both_policies(&s, policy, policy);
            const largo_status status = n % 2 ? LARGO_SKIPPED : LARGO_ERR_NON_FINITE;
            reset(&s);
            plant(&s, n, values);
            for (int threads = 1; threads <= 7; threads++)
                stops(&s, threads, threads % 2, status, &values[n - 1]);
        }
        close_scene(&s);
    }
}

/* What stopped leaves no trace: the step without the values has the bits of a first one. */
static void a_stopped_step_leaves_no_trace(void **state)
{
    (void)state;
    static const bad value = {3, 69000, NAN};
    for (int k = 0; k < CASES; k++) {
        largo_hyper h = algorithm(k);
        if (k % 2) h.max_grad_norm = 0.5;
        scene s;
        open_scene(&s, &h);
        goes_on(&s, 2, 0);
        const uint64_t want = hash_of(&s);
        reset(&s);
        plant(&s, 1, &value);
        stops(&s, 2, 0, LARGO_SKIPPED, &value);
        s.q[3].g[69000] = s.q[3].g0[69000];
        goes_on(&s, 3, 1);
        assert_true(hash_of(&s) == want);
        close_scene(&s);
    }
}

/* ---- groups ---- */

/* ERROR is stronger than SKIP and names its own value; PROPAGATE minds nothing. */
static void each_group_has_its_policy(void **state)
{
    (void)state;
    static const bad both[2] = {{1, 7, NAN}, {3, 9, -INFINITY}};
    static const struct {
        largo_non_finite policy[GROUPS];
        int from, n; /* which of the values are there */
        largo_status status;
        int told;
    } cases[] = {
        {{SKIP, ERROR}, 0, 1, LARGO_SKIPPED, 0},
        {{SKIP, ERROR}, 1, 1, LARGO_ERR_NON_FINITE, 1},
        {{SKIP, ERROR}, 0, 2, LARGO_ERR_NON_FINITE, 1},
        {{ERROR, SKIP}, 0, 2, LARGO_ERR_NON_FINITE, 0},
        {{PROPAGATE, SKIP}, 0, 2, LARGO_SKIPPED, 1},
        {{PROPAGATE, ERROR}, 0, 2, LARGO_ERR_NON_FINITE, 1},
        {{SKIP, PROPAGATE}, 0, 2, LARGO_SKIPPED, 0},
    };
    for (int k = 0; k < CASES; k++) {
        const largo_hyper h = algorithm(k);
        scene s;
        open_scene(&s, &h);
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            reset(&s);
            both_policies(&s, cases[c].policy[0], cases[c].policy[1]);
            plant(&s, (size_t)cases[c].n, &both[cases[c].from]);
            stops(&s, 1 + (int)c, 1, cases[c].status, &both[cases[c].told]);
        }
        reset(&s);
        both_policies(&s, SKIP, PROPAGATE);
        plant(&s, 1, &both[1]);
        goes_on(&s, 2, 1);
        assert_int_equal(s.outcome.scanned, 1);
        assert_true(!isfinite(s.outcome.grad_norm));
        close_scene(&s);
    }
}

/* A norm that is not finite cannot be clipped: a group that clips stops for a value of another one
 * that would let it through; one that clips under PROPAGATE does not clip. */
static void a_norm_that_cannot_be_clipped(void **state)
{
    (void)state;
    static const bad value = {1, 59998, NAN};
    for (int k = 0; k < CASES; k++) {
        const largo_hyper h = algorithm(k);
        scene s;
        open_scene(&s, &h);
        both_policies(&s, PROPAGATE, ERROR);
        s.hyper[1].max_grad_norm = 1.0;
        plant(&s, 1, &value);
        stops(&s, 3, 1, LARGO_ERR_NON_FINITE, &value);

        both_policies(&s, PROPAGATE, PROPAGATE);
        s.hyper[1].max_grad_norm = INFINITY;
        goes_on(&s, 2, 1);
        const uint64_t unclipped = hash_of(&s);
        reset(&s);
        plant(&s, 1, &value);
        s.hyper[0].max_grad_norm = s.hyper[1].max_grad_norm = 1.0;
        goes_on(&s, 2, 1);
        assert_int_equal(s.outcome.scanned, 1);
        assert_true(isnan(s.outcome.grad_norm) && s.outcome.clip == 1.0);
        assert_true(hash_of(&s) == unclipped);
        close_scene(&s);
    }
}

/* ---- PROPAGATE ---- */

/* Does the algorithm's step of one element see no other? */
static int is_elementwise(const largo_hyper *h)
{
    return h->algo == LARGO_SGD || h->algo == LARGO_ADAMW || h->adapt == LARGO_ADAPT_NEVER;
}

/* The value spoils its element and no other tensor. */
static void propagate_lets_through(void **state)
{
    (void)state;
    static const bad values[] = {{1, 12345, NAN}, {1, 59999, INFINITY}, {3, 0, -INFINITY}};
    for (int k = 0; k < CASES; k++) {
        const largo_hyper h = algorithm(k);
        scene clean, s;
        open_scene(&clean, &h);
        open_scene(&s, &h);
        both_policies(&s, PROPAGATE, PROPAGATE);
        goes_on(&clean, 2, 0);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            const bad *b = &values[i];
            reset(&s);
            plant(&s, 1, b);
            goes_on(&s, 1 + (int)i, (int)i % 2);
            assert_int_equal(s.outcome.scanned, 0);
            assert_true(isnan(s.outcome.grad_norm) && s.outcome.clip == 1.0);
            for (int t = 0; t < TENSORS; t++)
                if (t != b->tensor)
                    assert_true(probe_hash(0, &s.q[t]) == probe_hash(0, &clean.q[t]));
            const probe *q = &s.q[b->tensor];
            assert_int_equal(q->step, PROBE_STEP);
            assert_true(!isfinite(q->p[b->element]));
            for (size_t e = 0; e < q->n && is_elementwise(&h); e++)
                if (e != b->element)
                    assert_memory_equal(&q->p[e], &clean.q[b->tensor].p[e], sizeof q->p[e]);
        }
        close_scene(&s);
        close_scene(&clean);
    }
}

/* ---- payloads, the norm ---- */

/* Whatever its sign, payload and signal, a NaN is refused where it stands, and its payload does not
 * matter to what it leaves where it is let through. */
static void payloads(void **state)
{
    (void)state;
    static const uint32_t bits[] = {0x7fc00000, 0xffc00000, 0x7fc12345, 0x7f800001,
                                    0xff800001, 0x7fffffff, 0xffffffff};
    for (int k = 0; k < CASES; k++) {
        const largo_hyper h = algorithm(k);
        scene s;
        open_scene(&s, &h);
        uint64_t want = 0;
        for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
            reset(&s);
            both_policies(&s, SKIP, SKIP);
            memcpy(&s.q[1].g[77], &bits[i], sizeof bits[i]);
            assert_status(LARGO_SKIPPED, step(&s, 2, 0));
            assert_true(s.outcome.bad_param == 1 && s.outcome.bad_element == 77);
            assert_true(isnan(s.outcome.grad_norm));
            both_policies(&s, PROPAGATE, PROPAGATE);
            goes_on(&s, 2, 0);
            if (!i) want = hash_of(&s);
            assert_true(hash_of(&s) == want);
        }
        close_scene(&s);
    }
}

/* Finite gradients whose squares, and whose sum of squares, are no floats: clipped as any other. */
static void a_norm_past_float(void **state)
{
    (void)state;
    static const float sizes[3] = {1e30f, 3e38f, 1e-30f};
    for (int k = 0; k < CASES; k++) {
        largo_hyper h = algorithm(k);
        h.max_grad_norm = 1.0;
        for (int i = 0; i < 3; i++) {
            scene s;
            open_scene(&s, &h);
            double n = 0.0;
            for (int t = 0; t < TENSORS; t++) {
                for (size_t e = 0; e < s.q[t].n; e++) s.q[t].g[e] = sizes[i];
                n += (double)s.q[t].n;
            }
            goes_on(&s, 2, 1);
            const double norm = (double)sizes[i] * sqrt(n);
            assert_true(fabs(s.outcome.grad_norm / norm - 1.0) < 1e-6);
            const double clip = norm > 1.0 ? 1.0 / norm : 1.0;
            assert_true(fabs(s.outcome.clip / clip - 1.0) < 1e-6);
            for (int t = 0; t < TENSORS; t++)
                for (size_t e = 0; e < s.q[t].n; e++) assert_true(isfinite(s.q[t].p[e]));
            close_scene(&s);
        }
    }
}

/* Without a clip such values are too large for squares; SGD and LARS take what is a float. */
static void too_large_without_clip(void **state)
{
    (void)state;
    static const bad value = {3, 123, 1e30f};
    for (int k = 0; k < CASES; k++) {
        const largo_hyper h = algorithm(k);
        scene s;
        open_scene(&s, &h);
        plant(&s, 1, &value);
        const int takes = h.algo == LARGO_SGD || h.algo == LARGO_LARS;
        if (takes)
            goes_on(&s, 2, 0);
        else
            stops(&s, 2, 0, LARGO_SKIPPED, &value);
        assert_true(isfinite(s.outcome.grad_norm) && s.outcome.grad_norm >= (double)1e30f);
        for (int g = 0; g < GROUPS; g++) s.hyper[g].grad_scale = 1e10;
        reset(&s);
        plant(&s, 1, &value);
        stops(&s, 2, 1, LARGO_SKIPPED, &value);
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_first_for_any_threads),
        cmocka_unit_test(a_stopped_step_leaves_no_trace),
        cmocka_unit_test(each_group_has_its_policy),
        cmocka_unit_test(a_norm_that_cannot_be_clipped),
        cmocka_unit_test(propagate_lets_through),
        cmocka_unit_test(payloads),
        cmocka_unit_test(a_norm_past_float),
        cmocka_unit_test(too_large_without_clip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
