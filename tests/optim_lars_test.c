/* labels: oracle short every-isa
 *
 * LARS against golden/lars.json; every mixture of its options against the reference of
 * support_probe.h; what holds of LARC, bounds, flags, factors past the range of float, and a
 * learning rate that changes. */
#include <math.h>
#include <string.h>
#include "support_golden.h"
#include "support_probe.h"

static const golden_state states[] = {{"v", "momentum_buffer", 1e-5}};

static void vectors(void **state)
{
    (void)state;
    golden_check_file(&(golden_file){.name = "lars.json",
                                     .algo = LARGO_LARS,
                                     .n_states = 1,
                                     .states = states,
                                     .ok = 114,
                                     .rejected = 0});
}

static void policies(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(2);
    assert_int_equal(golden_check_policies(ctx, "lars", LARGO_LARS), 6);
    largo_ctx_destroy(ctx);
}

static largo_hyper hyper(const char *fields)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_LARS));
    test_hyper_set(&h, fields);
    return h;
}

static const char *const denominators[3] = {"denominator=1", "denominator=2", "denominator=3"};
static const char *const velocities[3] = {"velocity=1", "velocity=2", "velocity=3"};
enum { PLACES = 7 }; /* pairs of a denominator and a velocity */

static void set_place(largo_hyper *h, int place)
{
    test_hyper_set(h, velocities[place < 6 ? place % 3 : 2]);
    test_hyper_set(h, denominators[place / 3]);
}

/* One step of a random tensor in a context of its own; the probe holds what came of it. */
static void step(const largo_hyper *h, probe *q)
{
    largo_ctx *ctx = test_ctx(2);
    probe_reset(q);
    const largo_param p = probe_param(q, 0);
    assert_ok(largo_step(ctx, h, 1, 1, &p));
    largo_ctx_destroy(ctx);
}

static probe stepped(const largo_hyper *h, int64_t n, uint32_t flags)
{
    probe q;
    probe_open(&q, h, 1, &n, 0, flags);
    probe_fill(&q, NORMAL, 31);
    step(h, &q);
    return q;
}

/* Each option in two settings, of which each is also tried with all the others'. */
static void all_options(void **state)
{
    (void)state;
    static const char *const options[][2] = {{"nesterov=0", "nesterov=1"},
                                             {"eps=0", "eps=0.25"},
                                             {"larc=0", "larc=1"},
                                             {"clip_threshold=0.0625", "clip_threshold=inf"},
                                             {"weight_decay=0.125", "adapt=2"},
                                             {"trust_ratio_max=1", "trust_ratio_max=inf"},
                                             {"weight_norm_max=2", "adapt=1"},
                                             {"momentum=0.75", "momentum=0 nesterov=0"},
                                             {"trust_ratio_min=0", "trust_ratio_min=0.5"}};
    enum { OPTIONS = sizeof options / sizeof *options };
    static const int64_t sizes[2] = {300, 4500};
    for (int place = 0; place < PLACES; place++)
        for (unsigned mixture = 0; mixture < 1u << OPTIONS; mixture++) {
            largo_hyper h = hyper("lr=0.5 trust_coefficient=0.75");
            set_place(&h, place);
            for (unsigned o = 0; o < OPTIONS; o++) test_hyper_set(&h, options[o][mixture >> o & 1]);
            probe q = stepped(&h, sizes[mixture % 64 == 0], 0);
            assert_int_equal(q.slots, h.momentum > 0.0);
            probe_check(&q, &h, 1.0);
            probe_close(&q);
        }
}

/* ---- bits: one setting is another ---- */

static void same(const largo_hyper *a, uint32_t a_flags, const largo_hyper *b, uint32_t b_flags)
{
    probe x = stepped(a, 5000, a_flags), y = stepped(b, 5000, b_flags);
    assert_int_equal(x.slots, y.slots);
    assert_true(probe_hash(0, &x) == probe_hash(0, &y));
    assert_true(memcmp(x.p, x.p0, 5000 * sizeof(float)) != 0);
    probe_close(&x);
    probe_close(&y);
}

static void flags(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++)
        for (int larc = 0; larc < 2; larc++) {
            largo_hyper h = hyper("weight_decay=0.25 lr=2"), bare, never, never_bare, decayed;
            h.larc = larc ? LARGO_ON : LARGO_OFF;
            set_place(&h, place);
            never = bare = decayed = h;
            bare.weight_decay = 0.0;
            never.adapt = LARGO_ADAPT_NEVER;
            never_bare = never;
            never_bare.weight_decay = 0.0;
            decayed.adapt = LARGO_ADAPT_IF_DECAYED;
            same(&h, LARGO_PARAM_NO_DECAY, &bare, 0);
            same(&h, LARGO_PARAM_NO_TRUST, &never, 0);
            same(&h, LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST, &never_bare, 0);
            same(&decayed, 0, &h, 0);
            same(&decayed, LARGO_PARAM_NO_DECAY, &never_bare, 0);
        }
}

/* Where nothing adapts, LARS is SGD, to a few roundings, for lr is multiplied in elsewhere. */
static void without_ratio_it_is_sgd(void **state)
{
    (void)state;
    largo_hyper sgd;
    assert_ok(largo_hyper_init(&sgd, LARGO_SGD));
    test_hyper_set(&sgd, "lr=0.25 momentum=0.9 nesterov=1 weight_decay=0.1");
    probe want = stepped(&sgd, 500, 0);
    for (int place = 0; place < PLACES; place++) {
        largo_hyper h = hyper("lr=0.25 momentum=0.9 nesterov=1 weight_decay=0.1 adapt=3");
        set_place(&h, place);
        probe q;
        probe_open(&q, &h, 1, &(int64_t){500}, 0, 0);
        probe_fill(&q, NORMAL, 31);
        for (size_t i = 0; i < q.n; i++) /* the velocity that SGD has, in this one's unit */
            q.state0[0][i] =
                want.state0[0][i] * (h.velocity == LARGO_VELOCITY_LR_RATIO ? 0.25f : 1);
        step(&h, &q);
        for (size_t i = 0; i < q.n; i++)
            assert_true(fabsf(q.p[i] - want.p[i]) <= 0x1p-22f * (fabsf(want.p[i]) + 0.25f));
        probe_close(&q);
    }
    probe_close(&want);
}

/* ---- LARC ---- */

/* The step is min(ratio, lr) d: below the ratio lr alone counts, above it not at all. */
static void larc_is_bounded_by_lr_and_by_the_ratio(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        largo_hyper larc = hyper("larc=1 momentum=0 trust_coefficient=0.5 weight_decay=0.01");
        set_place(&larc, place);
        largo_hyper plain = larc;
        plain.larc = LARGO_OFF;
        plain.lr = 1.0;
        probe whole = stepped(&plain, 5000, 0); /* ratio d */
        plain.adapt = LARGO_ADAPT_NEVER;
        for (double lr = 0x1p-10; lr <= 0x1p12; lr *= 4) {
            plain.lr = larc.lr = lr;
            if (lr <= 0.25) { /* the ratio is above 1 */
                same(&larc, 0, &plain, 0);
                continue;
            }
            if (lr < 64) continue; /* and below 64 */
            probe q = stepped(&larc, 5000, 0);
            for (size_t i = 0; i < q.n; i++) {
                const float moved = q.p0[i] - whole.p[i];
                assert_true(fabsf(q.p[i] - whole.p[i]) <=
                            0x1p-22f * (fabsf(moved) + fabsf(q.p0[i])));
            }
            probe_close(&q);
        }
        probe_close(&whole);
    }
}

/* A ratio that is 1 by the zero rule is bounded too, and no lr divides by zero; a NaN is no 1. */
static void larc_of_zeros_and_nans(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    static const double lr[3] = {4, 0.5, 0}, want[3] = {-3, -1.5, 0};
    for (int i = 0; i < 4; i++) {
        largo_hyper h = hyper("larc=1 momentum=0 velocity=2 non_finite=3");
        h.lr = lr[i % 3];
        float w[2] = {0, i < 3 ? 0 : NAN}, g[2] = {3, 4};
        largo_param_stats stats;
        largo_param p = largo_param_f32(w, g, 2, 1);
        p.stats = &stats;
        assert_ok(largo_step(ctx, &h, 1, 1, &p));
        if (i == 3) {
            assert_true(isnan(w[0]) && isnan(stats.trust_ratio));
            break;
        }
        assert_true((double)w[0] == want[i]);
        assert_true(stats.trust_ratio == (i ? 1.0 : 0.25));
    }
    largo_ctx_destroy(ctx);
}

/* ---- the element clip ---- */

static void clip_threshold_bounds_elements(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    for (int velocity = 0; velocity < 3; velocity++) {
        largo_hyper h = hyper("lr=1 trust_coefficient=1 weight_decay=0.5 clip_threshold=10");
        test_hyper_set(&h, velocities[velocity]);
        float w[4] = {2, 2, 2, 2}, g[4] = {1, 9.5f, 1000, -1000}, m[4] = {0};
        const double d[4] = {2, 10, 10, -10}; /* the norm is that of g, not of d */
        const double ratio = 4 / (sqrt(1 + 9.5 * 9.5 + 2e6) + 0.5 * 4);
        largo_param p = largo_param_f32(w, g, 4, 1);
        p.state[0] = m;
        assert_ok(largo_step(ctx, &h, 1, 1, &p));
        for (int i = 0; i < 4; i++) assert_true(fabs((double)w[i] - 2 + ratio * d[i]) < 2.5e-7);
    }
    largo_ctx_destroy(ctx);
}

/* ---- factors past the range of float ---- */

/* The first step is lr trust_coefficient |w| long, whatever g: lr ratio is 1e70 or 1e-66 here,
 * far outside of float. */
static void ratio_past_float(void **state)
{
    (void)state;
    static const double size[][2] = {{1e36, 1},    {1e36, 1e-30}, {1e36, 1e30},
                                     {1e-40, 1},   {1e-40, 1e30}, {1e-40, 1e-30},
                                     {1e-30, 1e3}, {1e20, 1},     {1, 1e-30}};
    const int64_t n = 5000;
    for (int place = 0; place < PLACES; place++)
        for (size_t k = 0; k < sizeof size / sizeof *size; k++) {
            largo_hyper h = hyper("lr=0.5 trust_coefficient=1 nesterov=0");
            set_place(&h, place);
            probe q;
            probe_open(&q, &h, 1, &n, 0, 0);
            probe_fill(&q, NORMAL, 31);
            for (size_t i = 0; i < q.n; i++) {
                q.g0[i] *= (float)size[k][0];
                q.p0[i] *= (float)size[k][1];
                q.state0[0][i] = 0.0f;
            }
            step(&h, &q);
            const double want = 0.5 * test_distance(q.p0, NULL, q.n),
                         got = test_distance(q.p, q.p0, q.n);
            if (!(fabs(got / want - 1.0) <= 1e-6))
                fail_msg("place %d, g %g, w %g: %.9g of the length", place, size[k][0], size[k][1],
                         got / want);
            probe_close(&q);
        }
}

/* ---- a learning rate that changes ---- */

/* Three steps in double with the ratios that the library tells, at another rate each. */
static void lr_changes(void **state)
{
    (void)state;
    static const double lr[3] = {1, 0.125, 8}, grad[3][2] = {{.6, .8}, {6, -8}, {-.3, .1}};
    largo_ctx *ctx = test_ctx(1);
    for (int k = 0; k < 2 * PLACES; k++) {
        largo_hyper h = hyper("trust_coefficient=0.01 weight_decay=0.01");
        set_place(&h, k / 2);
        if (k % 2) h.nesterov = LARGO_ON;
        float w[2] = {3, 4}, g[2], m[2] = {0};
        double x[2] = {3, 4}, v[2] = {0};
        largo_param_stats stats;
        largo_param p = largo_param_f32(w, g, 2, 1);
        p.state[0] = m;
        p.stats = &stats;
        for (int t = 0; t < 3; t++) {
            h.lr = lr[t];
            for (int i = 0; i < 2; i++) g[i] = (float)grad[t][i];
            assert_ok(largo_step(ctx, &h, t + 1, 1, &p));
            const double r = stats.trust_ratio;
            const double in[3] = {h.lr * r, r, 1}, out[3] = {1, h.lr, h.lr * r};
            for (int i = 0; i < 2; i++) {
                const double added = in[h.velocity - 1] * (grad[t][i] + 0.01 * x[i]);
                v[i] = 0.9 * v[i] + added;
                x[i] -= out[h.velocity - 1] * (k % 2 ? 0.9 * v[i] + added : v[i]);
                assert_true(fabs((double)w[i] - x[i]) <= 2e-6);
            }
        }
    }
    largo_ctx_destroy(ctx);
}

/* With lr 0 the old velocity moves w on only where it was made with the old rate. */
static void lr_zero_stops_all_but_lr_ratio(void **state)
{
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        largo_hyper h = hyper("lr=0");
        set_place(&h, place);
        probe q = stepped(&h, 500, 0);
        for (size_t i = 0; i < q.n; i++) {
            const float moved = h.velocity == LARGO_VELOCITY_LR_RATIO ? q.state[0][i] : 0.0f;
            assert_true(q.p[i] == q.p0[i] - moved);
            if (h.velocity == LARGO_VELOCITY_LR_RATIO)
                assert_true(q.state[0][i] == 0.9f * q.state0[0][i]);
        }
        probe_close(&q);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(policies),
        cmocka_unit_test(all_options),
        cmocka_unit_test(flags),
        cmocka_unit_test(without_ratio_it_is_sgd),
        cmocka_unit_test(larc_is_bounded_by_lr_and_by_the_ratio),
        cmocka_unit_test(larc_of_zeros_and_nans),
        cmocka_unit_test(clip_threshold_bounds_elements),
        cmocka_unit_test(ratio_past_float),
        cmocka_unit_test(lr_changes),
        cmocka_unit_test(lr_zero_stops_all_but_lr_ratio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
