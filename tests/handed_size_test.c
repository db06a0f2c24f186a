/* labels: property short
 *
 * Handed cases H23 and H25: tensors too large for an int, laid out over threads without any memory
 * behind them. A plan reads no tensor. The cases speak of chunks of 65,536 elements; ours have 4096. */
#include <stdlib.h>
#include <string.h>
#include "support.h"
#include "cpu/layout.h"
#include "optim/stepper.h"

enum { TENSORS = 5, ARRAYS = 4 };

typedef struct planned {
    largo_ctx *ctx;
    largo_hyper hyper;
    largo_param params[TENSORS];
    largo__group group;
    largo__stepper stepper;
    const largo__layout *layout;
} planned;

/* k tensors of n elements at addresses where nothing is. */
static void make(planned *p, largo_algo algo, int threads, size_t k, int64_t n)
{
    memset(p, 0, sizeof *p);
    p->ctx = test_ctx(threads);
    assert_ok(largo_hyper_init(&p->hyper, algo));
    uintptr_t at = (uintptr_t)1 << 32;
    for (size_t i = 0; i < k; i++) {
        void *array[ARRAYS];
        for (int a = 0; a < ARRAYS; a++, at += (uintptr_t)n * sizeof(float)) array[a] = (void *)at;
        p->params[i] = largo_param_f32(array[0], array[1], n, 1);
        for (int s = 0; s < 2; s++) p->params[i].state[s] = array[2 + s];
    }
    p->group = (largo__group){"", &p->hyper, k, p->params};
    assert_ok(largo__stepper_make(p->ctx, 1, &p->group, &p->stepper));
    p->layout = p->stepper.plan.backend;
    assert_int_equal(p->layout->threads, threads);
}

static void drop(planned *p)
{
    largo__stepper_free(p->ctx, &p->stepper);
    largo_ctx_destroy(p->ctx);
}

/* Elements [begin, end) of a unit that one thread takes in a pass. */
typedef struct part {
    size_t unit;
    int64_t begin, end;
} part;

static int in_order(const void *a, const void *b)
{
    const part *x = a, *y = b;
    if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

enum { SCAN = -1, MOST_PARTS = 512 };

/* Those of a pass, or of the scan; returns their number. */
static size_t parts_of(const planned *p, int pass, part parts[MOST_PARTS])
{
    size_t n = 0;
    for (size_t i = 0; i < p->layout->items; i++) {
        const largo__item *item = &p->layout->item[i];
        const int is_one = pass == SCAN ? item->kind == LARGO__ITEM_SCAN
                                        : item->kind == LARGO__ITEM_SPAN && item->pass == pass;
        if (is_one) parts[n++] = (part){item->unit, item->begin, item->end};
        if (item->kind == LARGO__ITEM_SCAN_UNITS && pass == SCAN)
            for (int64_t u = item->begin; u < item->end; u++)
                parts[n++] = (part){(size_t)u, 0, p->stepper.plan.unit[u].n};
        assert_true(n < MOST_PARTS - TENSORS);
    }
    qsort(parts, n, sizeof *parts, in_order);
    return n;
}

/* Together they are all elements, each once, cut at whole chunks. Returns the number of chunks. */
static int64_t check_parts(const planned *p, int pass)
{
    const largo__plan *plan = &p->stepper.plan;
    part parts[MOST_PARTS];
    const size_t n = parts_of(p, pass, parts);
    size_t unit = 0;
    int64_t reached = 0, chunks = 0;
    for (size_t i = 0; i < n; i++) {
        if (reached == plan->unit[unit].n) {
            unit++;
            reached = 0;
        }
        assert_int_equal(parts[i].unit, unit);
        assert_int_equal(parts[i].begin, reached);
        assert_int_equal(parts[i].begin % LARGO__CHUNK, 0);
        assert_true(parts[i].end > parts[i].begin && parts[i].end <= plan->unit[unit].n);
        chunks += (parts[i].end - parts[i].begin + LARGO__CHUNK - 1) / LARGO__CHUNK;
        reached = parts[i].end;
    }
    assert_int_equal(unit, plan->units - 1);
    assert_int_equal(reached, plan->unit[unit].n);
    return chunks;
}

static const struct {
    largo_algo algo;
    int passes, threads;
} plans[] = {{LARGO_ADAMW, 1, 1}, {LARGO_ADAMW, 1, 7}, {LARGO_LAMB, 2, 2},
             {LARGO_LAMB, 2, 7},  {LARGO_LARS, 2, 3},  {LARGO_MERIT, 2, 64}};
enum { PLANS = sizeof plans / sizeof *plans };

/* 2,476,250,368 elements are more than 2^31: 604,554 chunks, the last one of 1280. */
static void h23_more_elements_than_an_int(void **state)
{
    (void)state;
    const int64_t n = 2476250368, chunks = 604554;
    assert_int_equal(n - (chunks - 1) * LARGO__CHUNK, 1280);
    for (int i = 0; i < PLANS; i++) {
        planned p;
        make(&p, plans[i].algo, plans[i].threads, 1, n);
        for (int pass = SCAN; pass < plans[i].passes; pass++)
            assert_int_equal(check_parts(&p, pass), chunks);
        drop(&p);
    }
}

static void h25_five_tensors_of_2_to_the_30(void **state)
{
    (void)state;
    const int64_t n = (int64_t)1 << 30, total = 5368709120;
    for (int i = 0; i < PLANS; i++) {
        planned p;
        make(&p, plans[i].algo, plans[i].threads, TENSORS, n);
        assert_int_equal(p.stepper.plan.units, TENSORS);
        for (int pass = SCAN; pass < plans[i].passes; pass++)
            assert_int_equal(check_parts(&p, pass) * LARGO__CHUNK, total);
        drop(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h23_more_elements_than_an_int),
        cmocka_unit_test(h25_five_tensors_of_2_to_the_30),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
