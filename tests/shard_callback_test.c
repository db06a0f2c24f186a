/* labels: property short tsan
 *
 * Ranks as threads, each with a context of its own, that meet in all_reduce: the bits of one rank
 * without a callback. The same calls come on every rank, also on one that has nothing. */
#include <math.h>
#include <unistd.h>
#include "support_ranks.h"

enum { STEPS = 3 };

static void run(const ranks_option *o, int n, int object)
{
    const ranks_setup alone = {.n = 1, .specs = ranks_mixed, .n_specs = n_ranks_mixed, .seed = 1};
    ranks_setup together = alone;
    together.n = n;
    together.object = object;
    together.callback = together.threads = 1;
    world_compare_steps(&alone, &together, o, STEPS);
}

static void bits_of_one_rank(void **state)
{
    (void)state;
    for (size_t o = 0; o < n_ranks_options; o++)
        run(&ranks_options[o], 2 + (int)(o % 4), o % 2 == 0);
}

static void step_and_object_alike(void **state)
{
    (void)state;
    for (int object = 0; object < 2; object++) run(&ranks_options[1], 3, object);
}

static void all_skip_together(void **state)
{
    (void)state;
    const largo_hyper hyper = test_hyper(LARGO_LARS, "");
    const ranks_setup setup = {.n = 4,
                               .callback = 1,
                               .threads = 1,
                               .object = 1,
                               .specs = ranks_mixed,
                               .n_specs = n_ranks_mixed,
                               .seed = 2};
    world w;
    world_open(&w, &setup, &hyper);
    world_gradients(&w, 1, INFINITY);
    assert_int_equal(world_step(&w, 1, LARGO_SKIPPED), 2); /* the norm and the largest */
    for (int r = 0; r < w.n; r++) assert_int_equal(largo_optim_step_count(w.rank[r].optim), 0);
    world_gradients(&w, 1, 0.0f);
    assert_true(world_step(&w, 1, LARGO_OK) > 2);
    for (int r = 0; r < w.n; r++) assert_int_equal(largo_optim_step_count(w.rank[r].optim), 1);
    world_close(&w);
}

/* What crosses of one tensor of 4096 elements and one of 5: three of five ranks have no element
 * of them, or no parameter in their list at all. */
static void calls_of_a_rank_with_nothing(void **state)
{
    (void)state;
    static const rank_spec sharded[] = {{LARGO_SHARDED, 0, 1, {4096}, 0, 0},
                                        {LARGO_SHARDED, 0, 1, {5}, 0, 0}};
    static const rank_spec local[] = {{LARGO_LOCAL, 0, 1, {4096}, 0, 0},
                                      {LARGO_LOCAL, 0, 1, {5}, 0, 0}};
    const largo_hyper hyper = test_hyper(LARGO_LAMB, "max_grad_norm=1");
    for (int is_local = 0; is_local < 2; is_local++) {
        const ranks_setup setup = {
            .n = 5, .callback = 1, .threads = 1, .specs = is_local ? local : sharded, .n_specs = 2};
        world w;
        world_open(&w, &setup, &hyper);
        const rank *idle = &w.rank[is_local ? 4 : 0];
        assert_int_equal(idle->n, is_local ? 0 : 2);
        for (size_t i = 0; i < idle->n; i++) assert_int_equal(idle->params[i].value.shape[0], 0);
        world_gradients(&w, 1, 0.0f);
        const int n = world_step(&w, 1, LARGO_OK);
        assert_int_equal(n, is_local ? 2 : 3);
        const largo_reduction *calls = idle->calls; /* as everybody's */
        assert_true(calls[0].n == 21 && calls[0].dtype == LARGO_I64);
        assert_true(calls[1].n == 1 && calls[1].dtype == LARGO_U32);
        if (!is_local) assert_true(calls[2].n == 84 && calls[2].dtype == LARGO_I64);
        world_close(&w);
    }
}

int main(void)
{
    alarm(300); /* ranks that disagree about the number of calls wait for ever */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_one_rank),
        cmocka_unit_test(step_and_object_alike),
        cmocka_unit_test(all_skip_together),
        cmocka_unit_test(calls_of_a_rank_with_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
