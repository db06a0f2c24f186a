/* labels: property short
 *
 * Parts cut in the middle of blocks, where their bits are not promised: the same for any number of
 * threads, and those of one rank to 1e-6. */
#include <math.h>
#include "support_ranks.h"

static const rank_spec specs[] = {
    {LARGO_SHARDED, 0, 1, {70001}, 0, 0},
    {LARGO_SHARDED, 3, 1, {3 * 9001}, 0, 0},
    {LARGO_SHARDED, 0, 1, {5}, 0, 0},
    {LARGO_SHARDED, 0, 2, {700, 48}, 0, 0},
    {LARGO_SHARDED, 2, 2, {2 * 300, 33}, 0, 0},
    {LARGO_REPLICATED, 0, 1, {4097}, 0, 0},
    {LARGO_SHARDED, 0, 2, {90, 1111}, 0, 0},
    {LARGO_SHARDED, 0, 1, {40000}, LARGO_PARAM_NO_TRUST, 0},
};

enum { N_SPECS = sizeof specs / sizeof *specs };

/* Uneven parts, in the middle of blocks and of segments; of whole rows where rows matter. */
static largo_status cut_anywhere(const largo_hyper *hyper, const largo_param *whole, int32_t ranks,
                                 int32_t number, int64_t *begin, int64_t *end)
{
    const int64_t n = test_numel(&whole->value);
    const int by_rows = hyper->algo == LARGO_CAME || hyper->algo == LARGO_MERIT;
    const int64_t unit = by_rows && whole->value.ndim == 2 ? whole->value.shape[1] : 1;
    for (int i = 0; i < 2; i++) {
        const int32_t at = number + i;
        const double share = (double)at / ranks * (0.7 + 0.3 * (double)at / ranks);
        *(i ? end : begin) = at == ranks ? n : (int64_t)(share * (double)(n / unit)) * unit;
    }
    return LARGO_OK;
}

static void near(const char *what, int which, const float *got, const float *want, size_t n)
{
    double largest = 0.0;
    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <= 1e-6 * largest))
            fail_msg("parameter %d, %s[%zu] is %.9g, not %.9g", which, what, i, (double)got[i],
                     (double)want[i]);
}

static void near_one_rank(const world *w, const rank *one)
{
    const rank *first = &w->rank[0]; /* has the memory of all parts */
    for (size_t i = 0; i < first->n; i++) {
        const int which = first->which[i];
        near("value", which, first->value[i], one->value[i], ranks_numel(&specs[which]));
        for (int r = 0; r < w->n; r++) {
            const largo_param_stats *a = w->rank[r].stats[i], *b = one->stats[i];
            const int32_t segments = specs[which].segments ? specs[which].segments : 1;
            for (int32_t s = 0; s < segments; s++) {
                if (isnan(b[s].update_norm))
                    assert_true(isnan(a[s].update_norm));
                else
                    assert_true(fabs(a[s].update_norm / b[s].update_norm - 1.0) < 1e-6);
                assert_true(fabs(a[s].trust_ratio / b[s].trust_ratio - 1.0) < 1e-6);
                assert_memory_equal(&a[s], &first->stats[i][s], sizeof a[s]);
            }
        }
    }
}

/* Of everything that a step wrote, rank by rank. */
static uint64_t hash(const world *w)
{
    uint64_t h = 0;
    for (int r = 0; r < w->n; r++)
        for (size_t i = 0; i < w->rank[r].n; i++) {
            const largo_param *p = &w->rank[r].params[i];
            largo_slot slots[LARGO_MAX_SLOTS];
            size_t n;
            assert_ok(largo_slots(&w->hyper, p, slots, &n));
            h = test_hash(h, p->value.data, (size_t)test_numel(&p->value));
            for (size_t s = 0; s < n; s++)
                h = test_hash(h, p->state[s], slots[s].bytes / sizeof(float));
        }
    return h;
}

static void run(world *w, const ranks_setup *setup, const largo_hyper *hyper)
{
    world_open(w, setup, hyper);
    world_gradients(w, 1, 0.0f);
    world_step(w, 1, LARGO_OK);
}

static void mid_block_cuts(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 3, 7};
    for (size_t o = 0; o < n_ranks_options; o++) {
        const largo_hyper hyper = test_hyper(ranks_options[o].algo, ranks_options[o].set);
        ranks_setup setup = {.n = 1, .threads = 2, .specs = specs, .n_specs = N_SPECS};
        world one, w;
        run(&one, &setup, &hyper);
        setup.n = 2 + (int)o % 4;
        setup.cut = cut_anywhere;
        uint64_t first = 0;
        for (int i = 0; i < 4; i++) {
            setup.threads = threads[i];
            run(&w, &setup, &hyper);
            near_one_rank(&w, &one.rank[0]);
            if (i == 0) first = hash(&w);
            assert_true(hash(&w) == first);
            world_close(&w);
        }
        world_close(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mid_block_cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
