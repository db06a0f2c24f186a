/* labels: property short every-isa
 *
 * Small inputs with right values, by their number in the project's list of cases: tensors in parts,
 * norms over ranks, empty tensors. Two or three ranks by rounds. */
#include <math.h>
#include <string.h>
#include "support.h"

/* Of the list: 2 or 3 ranks, at most two tensors of at most six elements. */
enum { RANKS = 3, TENSORS = 2, N = 6 };

typedef struct seat {
    largo_ctx *ctx;
    size_t n;
    largo_param params[TENSORS];
    largo_shard shards[TENSORS];
    largo_param_stats stats[TENSORS];
    float g[TENSORS][N], m[TENSORS][N], v[TENSORS][N];
} seat;

static float w[TENSORS][N]; /* whole tensors: parts point inside */

#define LIST(...) ((const double[]){__VA_ARGS__})

static void set(float *out, int n, const double x[])
{
    for (int i = 0; i < n; i++) out[i] = (float)x[i];
}

/* Elements [begin, end) of tensor `which`, which has n; a REPLICATED one is somebody else's w. */
static void give(seat *s, largo_placement placement, int which, int n, int begin, int end,
                 const double g[])
{
    const size_t i = s->n++;
    set(s->g[i], end - begin, g + begin);
    s->params[i] = largo_param_f32(w[which] + begin, s->g[i], end - begin, 1);
    s->params[i].state[0] = s->m[i];
    s->params[i].state[1] = s->v[i];
    s->params[i].stats = &s->stats[i];
    s->params[i].shard = &s->shards[i];
    s->shards[i].placement = placement;
    if (placement != LARGO_SHARDED) return;
    s->shards[i].ndim = 1;
    s->shards[i].shape[0] = n;
    s->shards[i].offset = begin;
}

static void open_seats(seat s[], int n)
{
    memset(s, 0, (size_t)n * sizeof *s);
    memset(w, 0, sizeof w);
    for (int r = 0; r < n; r++) s[r].ctx = test_ctx(1);
}

static void close_seats(seat s[], int n)
{
    for (int r = 0; r < n; r++) largo_ctx_destroy(s[r].ctx);
}

/* Element i of all ranks. */
static void reduce(const largo_reduction each[], int n, size_t i)
{
    int64_t sum = 0;
    uint32_t max = 0;
    for (int r = 0; r < n; r++)
        if (each[0].dtype == LARGO_I64) {
            sum += ((int64_t *)each[r].values)[i];
        } else {
            assert_int_equal(each[0].dtype, LARGO_U32);
            const uint32_t x = ((uint32_t *)each[r].values)[i];
            max = x > max ? x : max;
        }
    for (int r = 0; r < n; r++)
        if (each[0].dtype == LARGO_I64)
            ((int64_t *)each[r].values)[i] = sum;
        else
            ((uint32_t *)each[r].values)[i] = max;
}

static void step(seat s[], int n, const largo_hyper *h, int64_t t)
{
    for (int32_t round = 0;; round++) {
        largo_reduction each[RANKS];
        for (int r = 0; r < n; r++) {
            assert_ok(largo_step_round(s[r].ctx, h, t, s[r].n, s[r].params, round, &each[r]));
            assert_int_equal(each[r].n, each[0].n);
        }
        if (!each[0].n) return;
        for (size_t i = 0; i < each[0].n; i++) reduce(each, n, i);
    }
}

static double grad_norm(const seat *s)
{
    largo_outcome o = {.struct_size = sizeof o};
    assert_ok(largo_last_outcome(s->ctx, &o));
    return o.grad_norm;
}

/* The parts of one tensor over n ranks, cut[r] to cut[r + 1]. */
static void spread(seat s[], int n, int which, int elements, const int cut[], const double g[])
{
    for (int r = 0; r < n; r++) give(&s[r], LARGO_SHARDED, which, elements, cut[r], cut[r + 1], g);
}

static void h15_lamb_in_two_parts(void **state)
{
    (void)state;
    const double *first = LIST(.1, -.2, .3, .4), *second = LIST(.2, .1, -.3, .05);
    const largo_hyper h = test_hyper(LARGO_LAMB, "lr=0.1 weight_decay=0.01");
    float whole[4];
    for (int n = 1; n <= 2; n++) {
        seat s[2];
        open_seats(s, n);
        set(w[0], 4, LIST(1, -2, 3, -4));
        const int halves[3] = {0, 3, 4}, all[2] = {0, 4};
        const int *cut = n == 1 ? all : halves;
        spread(s, n, 0, 4, cut, first);
        step(s, n, &h, 1);
        test_near(4, w[0], LIST(0.7248762452, -1.7221508587, 2.7194263802, -4.2615056751));
        for (int r = 0; r < n; r++) {
            test_close(s[r].stats[0].trust_ratio, 2.7240245422);
            set(s[r].g[0], cut[r + 1] - cut[r], second + cut[r]);
        }
        step(s, n, &h, 2);
        for (int r = 0; r < n; r++) test_close(s[r].stats[0].trust_ratio, 4.3467822571);
        if (n == 1)
            memcpy(whole, w[0], sizeof whole);
        else
            assert_memory_equal(w[0], whole, sizeof whole);
        close_seats(s, n);
    }
}

static void h16_what_is_replicated_counts_once(void **state)
{
    (void)state;
    const largo_hyper h = test_hyper(LARGO_LAMB, "max_grad_norm=1");
    seat s[2];
    open_seats(s, 2);
    const int cut[3] = {0, 1, 2};
    float other[1] = {0.0f};
    give(&s[0], LARGO_REPLICATED, 0, 1, 0, 1, LIST(3));
    give(&s[1], LARGO_REPLICATED, 0, 1, 0, 1, LIST(3));
    s[1].params[0].value.data = other;
    spread(s, 2, 1, 2, cut, LIST(4, 12));
    step(s, 2, &h, 1);
    for (int r = 0; r < 2; r++) assert_true(grad_norm(&s[r]) == 13.0);
    assert_memory_equal(other, w[0], sizeof other);
    close_seats(s, 2);
}

static void h17_maxima_over_ranks(void **state)
{
    (void)state;
    const largo_hyper h = test_hyper(LARGO_MERIT, "lr=0 weight_decay=0");
    seat s[3];
    open_seats(s, 3);
    set(w[0], 3, LIST(1, -7, 3));
    const int cut[4] = {0, 2, 2, 3};
    spread(s, 3, 0, 3, cut, LIST(.5, .5, .5));
    step(s, 3, &h, 1);
    for (int r = 0; r < 3; r++) {
        assert_true(s[r].stats[0].weight_norm == 7.0);
        assert_memory_equal(&s[r].stats[0], &s[0].stats[0], sizeof s[r].stats[0]);
    }
    close_seats(s, 3);
}

static void h18_lars_on_the_union_of_rows(void **state)
{
    (void)state;
    const largo_hyper h = test_hyper(LARGO_LARS, "momentum=0 lr=1 weight_decay=0.01");
    float whole[6];
    for (int n = 1; n <= 2; n++) {
        seat s[2];
        open_seats(s, n);
        set(w[0], 6, LIST(1, 2, 3, 4, 5, 6));
        const int halves[3] = {0, 4, 6}, all[2] = {0, 6};
        spread(s, n, 0, 6, n == 1 ? all : halves, LIST(.1, .2, .3, -.1, -.2, -.3));
        step(s, n, &h, 1);
        if (n == 1)
            memcpy(whole, w[0], sizeof whole);
        else
            assert_memory_equal(w[0], whole, sizeof whole);
        close_seats(s, n);
    }
}

/* With H20: an empty part and empty tensors, anywhere, change no bit. */
static void h20_empty_parts_anywhere(void **state)
{
    (void)state;
    const largo_hyper h = test_hyper(LARGO_LAMB, "max_grad_norm=0.1");
    float without[5];
    for (int at = -1; at <= 2; at++) { /* -1: no empty part; else rank `at` has it */
        const int n = at < 0 ? 2 : 3;
        seat s[3];
        open_seats(s, n);
        set(w[0], 5, LIST(1, -2, 3, -4, 5));
        int cut[4] = {0}, next = 1;
        for (int r = 0; r < n; r++) cut[r + 1] = r == at ? cut[r] : next++ == 1 ? 3 : 5;
        spread(s, n, 0, 5, cut, LIST(.1, .2, .3, .4, .5));
        if (at >= 0) spread(s, n, 1, 0, (const int[4]){0}, LIST(0));
        step(s, n, &h, 1);
        if (at < 0)
            memcpy(without, w[0], sizeof without);
        else
            assert_memory_equal(w[0], without, sizeof without);
        close_seats(s, n);
    }
}

static void h21_empty_tensors(void **state)
{
    (void)state;
    static const largo_algo algos[] = {LARGO_LAMB, LARGO_LARS, LARGO_MERIT, LARGO_CAME,
                                       LARGO_ADAMW};
    for (int i = 0; i < 10; i++) { /* LOCAL, and in parts */
        const largo_hyper h = test_hyper(algos[i / 2], "max_grad_norm=0.1");
        seat s[1];
        open_seats(s, 1);
        set(w[0], 5, LIST(1, -2, 3, -4, 5));
        const largo_placement placement = i % 2 ? LARGO_SHARDED : LARGO_LOCAL;
        give(&s[0], placement, 0, 5, 0, 5, LIST(3, 0, 0, 4, 0));
        give(&s[0], placement, 1, 0, 0, 0, LIST(0));
        if (algos[i / 2] == LARGO_CAME) { /* 0 x 3 */
            largo_param *p = &s[0].params[1];
            p->value.ndim = p->grad.ndim = 2;
            p->value.shape[1] = p->grad.shape[1] = 3;
            if (i % 2) s[0].shards[1].ndim = 2, s[0].shards[1].shape[1] = 3;
        }
        s[0].stats[1].trust_ratio = -1.0;
        step(s, 1, &h, 1);
        assert_true(grad_norm(&s[0]) == 5.0);
        assert_true(s[0].stats[1].trust_ratio == 1.0);
        for (int k = 0; k < 5; k++) assert_true(isfinite(w[0][k]));
        close_seats(s, 1);
    }
}

static void h22_lars_with_an_empty_part(void **state)
{
    (void)state;
    const largo_hyper h = test_hyper(LARGO_LARS, "lr=1 weight_decay=0.01");
    seat s[3];
    open_seats(s, 3);
    set(w[0], 6, LIST(1, 2, 3, 4, 5, 6));
    const int cut[4] = {0, 2, 2, 6};
    spread(s, 3, 0, 6, cut, LIST(.1, .2, .3, -.1, -.2, -.3));
    step(s, 3, &h, 1);
    for (int r = 0; r < 3; r++) {
        test_close(s[r].stats[0].weight_norm, sqrt(91));
        test_close(s[r].stats[0].update_norm, sqrt(.28));
        test_close(s[r].stats[0].trust_ratio, 0.0152741668);
    }
    test_near(6, w[0], LIST(0.9983198, 1.9966397, 2.9949595, 4.0009165, 5.0022911, 6.0036658));
    close_seats(s, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h15_lamb_in_two_parts),
        cmocka_unit_test(h16_what_is_replicated_counts_once),
        cmocka_unit_test(h17_maxima_over_ranks),
        cmocka_unit_test(h18_lars_on_the_union_of_rows),
        cmocka_unit_test(h20_empty_parts_anywhere),
        cmocka_unit_test(h21_empty_tensors),
        cmocka_unit_test(h22_lars_with_an_empty_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
