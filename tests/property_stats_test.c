/* labels: property short
 *
 * What a step tells of its tensors in largo_param.stats, against plain sums in double: norms of LARS
 * for each denominator, maxima of MERIT; nothing of what has none; untouched by a step that is not
 * applied. LAMB, CAME, AdamW and SGD are in support_probe_check.c, for every test of seams; the trust
 * ratios of LAMB and LARS in their oracle tests too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { SEGMENTS = 3 };

typedef struct tensor {
    largo_param param;
    size_t n;
    float *p0, *p, *g, *state[2];
    largo_param_stats stats[SEGMENTS];
} tensor;

static void open_tensor(tensor *t, int64_t rows, int64_t cols, int32_t segments)
{
    memset(t, 0, sizeof *t);
    t->n = (size_t)(rows * cols);
    t->p0 = test_floats(t->n);
    t->p = test_floats(t->n);
    t->g = test_floats(t->n);
    test_fill(t->p0, t->n, 21, -1, 3);
    test_fill(t->g, t->n, 22, -2, 5);
    memcpy(t->p, t->p0, t->n * sizeof(float));
    t->param = largo_param_f32(t->p, t->g, rows, cols);
    t->param.segments = segments;
    t->param.stats = t->stats;
    for (int s = 0; s < 2; s++) {
        t->state[s] = test_floats(t->n);
        test_fill(t->state[s], t->n, 23 + (uint64_t)s, -4, 3);
        for (size_t i = 0; s && i < t->n; i++) t->state[s][i] *= t->state[s][i];
        t->param.state[s] = t->state[s];
    }
}

static void close_tensor(tensor *t)
{
    free(t->p0);
    free(t->p);
    free(t->g);
    for (int s = 0; s < 2; s++) free(t->state[s]);
}

static void step(tensor *t, const largo_hyper *h)
{
    largo_ctx *ctx = test_ctx(3);
    assert_ok(largo_step(ctx, h, 1, 1, &t->param));
    largo_ctx_destroy(ctx);
}

/* One chunk, several, a unit of one thread, of all, matrices, segments. */
static const struct shape {
    int64_t rows, cols;
    int32_t segments;
} shapes[] = {{1, 1, 0},      {5, 1, 0},     {4097, 1, 0}, {20000, 1, 0}, {32769, 1, 0},
              {250000, 1, 0}, {40, 30, 0},   {700, 90, 0}, {15000, 1, 3}, {120000, 1, 3},
              {60, 20, 3},    {1200, 40, 3}, {1536, 1, 3}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void expect(const struct shape *shape, const char *what, double got, double want)
{
    const double relative = 2e-6; /* 32 additions in a float lane, and roundings of the term */
    if (fabs(got - want) <= relative * want) return;
    fail_msg("%lld x %lld, %s: %.12g, not %.12g", (long long)shape->rows, (long long)shape->cols,
             what, got, want);
}

/* What LARS divides by, of element i: before the step. */
static double lars_term(const largo_hyper *h, const tensor *t, size_t i, double m0)
{
    const double g = (double)t->g[i], d = g + h->weight_decay * (double)t->p0[i];
    if (h->denominator == LARGO_DENOMINATOR_PAPER) return g;
    if (h->denominator == LARGO_DENOMINATOR_DECAYED) return d;
    const double m = h->momentum * m0 + d;
    return h->nesterov == LARGO_ON ? d + h->momentum * m : m;
}

static void check_lars(const largo_hyper *h, const struct shape *shape)
{
    tensor t;
    open_tensor(&t, shape->rows, shape->cols, shape->segments);
    float *m0 = test_floats(t.n);
    memcpy(m0, t.state[0], t.n * sizeof *m0);
    step(&t, h);
    const size_t segments = shape->segments ? SEGMENTS : 1, n = t.n / segments;
    for (size_t s = 0; s < segments; s++) {
        double p2 = 0.0, a2 = 0.0;
        for (size_t i = s * n; i < (s + 1) * n; i++) {
            const double a = lars_term(h, &t, i, (double)m0[i]);
            p2 += (double)t.p0[i] * (double)t.p0[i];
            a2 += a * a;
        }
        const double w = sqrt(p2), a = sqrt(a2);
        const double decay = h->denominator == LARGO_DENOMINATOR_PAPER ? h->weight_decay * w : 0.0;
        expect(shape, "weight_norm", t.stats[s].weight_norm, w);
        expect(shape, "update_norm", t.stats[s].update_norm, a);
        expect(shape, "trust_ratio", t.stats[s].trust_ratio,
               h->trust_coefficient * w / (a + decay + h->eps));
        assert_true(t.stats[s].reserved == 0.0);
    }
    free(m0);
    close_tensor(&t);
}

static void lars(void **state)
{
    (void)state;
    static const char *const sets[] = {"weight_decay=0.01",
                                       "denominator=2 weight_decay=0.1 eps=1e-8",
                                       "denominator=3 velocity=3 weight_decay=0.1",
                                       "denominator=3 velocity=3 nesterov=1 weight_decay=0.1",
                                       "denominator=2 momentum=0 weight_decay=0.1"};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        for (int k = 0; k < SHAPES; k++) {
            const largo_hyper h = test_hyper(LARGO_LARS, sets[i]);
            check_lars(&h, &shapes[k]);
        }
}

/* Maxima are exact: that of p to the bit. */
static void merit(void **state)
{
    (void)state;
    const largo_hyper h = test_hyper(LARGO_MERIT, "weight_decay=0.1");
    for (int k = 0; k < SHAPES; k++) {
        tensor t;
        open_tensor(&t, shapes[k].rows, shapes[k].cols, shapes[k].segments);
        step(&t, &h);
        const size_t segments = shapes[k].segments ? SEGMENTS : 1, n = t.n / segments;
        for (size_t s = 0; s < segments; s++) {
            double p = 0.0, u = 0.0;
            for (size_t i = s * n; i < (s + 1) * n; i++) {
                const double m = (double)t.state[0][i], v = (double)t.state[1][i];
                p = fmax(p, fabs((double)t.p0[i]));
                u = fmax(u, fabs(m / (sqrt(v) + h.eps) + h.weight_decay * (double)t.p0[i]));
            }
            assert_true(t.stats[s].weight_norm == p);
            expect(&shapes[k], "update_norm", t.stats[s].update_norm, u);
            expect(&shapes[k], "trust_ratio", t.stats[s].trust_ratio, p / u);
        }
        close_tensor(&t);
    }
}

static void is_none(const largo_param_stats *s)
{
    assert_true(isnan(s->weight_norm) && isnan(s->update_norm));
    assert_true(s->trust_ratio == 1.0 && s->reserved == 0.0);
}

static void nothing_where_there_is_no_ratio(void **state)
{
    (void)state;
    static const struct {
        largo_algo algo;
        const char *set;
        uint32_t flags;
    } rows[] = {{LARGO_SGD, "momentum=0.9", 0},
                {LARGO_ADAMW, "", 0},
                {LARGO_LAMB, "", LARGO_PARAM_NO_TRUST},
                {LARGO_LAMB, "adapt=3", 0},
                {LARGO_LAMB, "adapt=2 weight_decay=0.1", LARGO_PARAM_NO_DECAY},
                {LARGO_LARS, "", LARGO_PARAM_NO_TRUST},
                {LARGO_LARS, "adapt=3", 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < SHAPES; k++) {
            const largo_hyper h = test_hyper(rows[i].algo, rows[i].set);
            tensor t;
            open_tensor(&t, shapes[k].rows, shapes[k].cols, shapes[k].segments);
            t.param.flags = rows[i].flags;
            step(&t, &h);
            for (int s = 0; s < (shapes[k].segments ? SEGMENTS : 1); s++) is_none(&t.stats[s]);
            close_tensor(&t);
        }
}

/* Ratio 1; norms 0 where the algorithm has norms. */
static void empty_tensors(void **state)
{
    (void)state;
    static const largo_algo algos[] = {LARGO_LAMB, LARGO_LARS, LARGO_MERIT, LARGO_CAME,
                                       LARGO_ADAMW};
    for (int i = 0; i < 5; i++)
        for (int32_t segments = 0; segments <= SEGMENTS; segments += SEGMENTS) {
            const largo_hyper h = test_hyper(algos[i], "");
            tensor t;
            open_tensor(&t, 0, i % 2 ? 1 : 7, segments);
            step(&t, &h);
            for (int s = 0; s < (segments ? SEGMENTS : 1); s++) {
                assert_true(t.stats[s].trust_ratio == 1.0);
                if (algos[i] == LARGO_ADAMW)
                    is_none(&t.stats[s]);
                else
                    assert_true(t.stats[s].update_norm == 0.0);
                if (i < 3) assert_true(t.stats[s].weight_norm == 0.0);
            }
            close_tensor(&t);
        }
}

/* A step that is skipped, refused, or does not touch the parameter; through the object too. */
static void left_alone(void **state)
{
    (void)state;
    largo_hyper h = test_hyper(LARGO_LAMB, "");
    for (int way = 0; way < 4; way++) {
        tensor t;
        open_tensor(&t, 5000, 1, 0);
        largo_ctx *ctx = test_ctx(2);
        largo_optim *o;
        h.non_finite = way == 1 ? LARGO_NON_FINITE_ERROR : LARGO_NON_FINITE_SKIP;
        if (way < 2) t.g[4999] = NAN;
        if (way == 2) t.param.grad.data = NULL;
        if (way == 3) t.param.flags = LARGO_PARAM_FROZEN;
        const largo_status expected = way == 0   ? LARGO_SKIPPED
                                      : way == 1 ? LARGO_ERR_NON_FINITE
                                                 : LARGO_OK;
        const largo_param_stats before = {3.0, 4.0, 5.0, 6.0};
        t.stats[0] = before;
        assert_status(expected, largo_step(ctx, &h, 1, 1, &t.param));
        assert_memory_equal(&t.stats[0], &before, sizeof before);
        assert_ok(largo_optim_create(ctx, &o));
        assert_ok(largo_optim_add_group(o, &h, 1, &t.param, NULL));
        assert_status(expected, largo_optim_step(o));
        assert_memory_equal(&t.stats[0], &before, sizeof before);
        largo_optim_destroy(o);
        largo_ctx_destroy(ctx);
        close_tensor(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lars),
        cmocka_unit_test(merit),
        cmocka_unit_test(nothing_where_there_is_no_ratio),
        cmocka_unit_test(empty_tensors),
        cmocka_unit_test(left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
