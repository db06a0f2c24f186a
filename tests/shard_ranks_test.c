/* labels: property short
 *
 * 1, 2, 3, 5 and 8 ranks in one process, stepped round by round with reductions in shuffled order:
 * value, state, counts and statistics have the bits of one rank that holds everything. Sharded,
 * replicated and local parameters mixed; parts that are empty; parameters without a gradient. */
#include <math.h>
#include <string.h>
#include "support_ranks.h"

enum { STEPS = 3 };

static ranks_setup mixed(int n, int object, unsigned seed)
{
    return (ranks_setup){
        .n = n, .object = object, .specs = ranks_mixed, .n_specs = n_ranks_mixed, .seed = seed};
}

static void run(const ranks_option *o, int n, int object, unsigned seed)
{
    const ranks_setup alone = mixed(1, 0, seed), together = mixed(n, object, seed);
    world_compare_steps(&alone, &together, o, STEPS);
}

static void bits_of_one_rank(void **state)
{
    (void)state;
    static const int worlds[] = {1, 2, 3, 5, 8};
    for (size_t o = 0; o < n_ranks_options; o++)
        for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
            run(&ranks_options[o], worlds[i], (o + i) % 2 == 1, (unsigned)(7 * o + i));
}

/* What is in parts, all of which are here, as one tensor. */
static void make_whole(largo_param *p, int which)
{
    largo_tensor t = ranks_tensor(&ranks_mixed[which]);
    p->shard = NULL;
    t.data = p->value.data;
    p->value = t;
    t.data = p->grad.data;
    p->grad = t;
}

/* The one rank by rounds is the plain step. */
static void rounds_are_a_step(void **state)
{
    (void)state;
    for (size_t o = 0; o < n_ranks_options; o++) {
        const largo_hyper hyper = test_hyper(ranks_options[o].algo, ranks_options[o].set);
        const ranks_setup alone = mixed(1, 0, 1);
        world a, b;
        world_open(&a, &alone, &hyper);
        world_open(&b, &alone, &hyper);
        for (int t = 1; t <= STEPS; t++) {
            world_gradients(&a, t, 0.0f);
            world_gradients(&b, t, 0.0f);
            rank *plain = &b.rank[0];
            for (size_t i = 0; i < plain->n; i++) make_whole(&plain->params[i], plain->which[i]);
            world_step(&a, t, LARGO_OK);
            assert_ok(largo_step(plain->ctx, &hyper, t, plain->n, plain->params));
            world_compare(&a, &b);
        }
        world_close(&a);
        world_close(&b);
    }
}

/* A bad value on the last rank: all skip, nothing is written, and only that rank knows where. */
static void all_skip_together(void **state)
{
    (void)state;
    for (int n = 1; n <= 5; n += 2) {
        const largo_hyper hyper = test_hyper(LARGO_LAMB, "");
        const ranks_setup alone = mixed(1, 0, 3), together = mixed(n, 0, 3);
        world w, before;
        world_open(&w, &together, &hyper);
        world_open(&before, &alone, &hyper);
        world_gradients(&w, 1, NAN);
        world_step(&w, 1, LARGO_SKIPPED);
        for (int r = 0; r < n; r++) {
            largo_outcome o = {.struct_size = sizeof o};
            assert_ok(largo_last_outcome(w.rank[r].ctx, &o));
            assert_int_equal(o.skipped, 1);
            assert_int_equal(o.bad_param, r == n - 1 ? 3 : -1);
            for (size_t i = 0; i < w.rank[r].n; i++) world_compare_param(&w, r, i, &before.rank[0]);
        }
        world_close(&w);
        world_close(&before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_one_rank),
        cmocka_unit_test(rounds_are_a_step),
        cmocka_unit_test(all_skip_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
