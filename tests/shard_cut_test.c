/* labels: property short
 *
 * Where tensors are cut: largo_shard_cut covers each without gap or overlap, at places that keep
 * the bits, in about equal parts. */
#include <math.h>
#include <string.h>
#include "support.h"

static largo_param whole_of(int32_t ndim, const int64_t shape[], int32_t segments)
{
    largo_param p;
    memset(&p, 0, sizeof p);
    p.value.dtype = LARGO_F32;
    p.value.ndim = ndim;
    for (int32_t d = 0; d < ndim; d++) p.value.shape[d] = shape[d];
    p.segments = segments;
    return p;
}

/* Is it the end, or a multiple of 4096 elements of a segment, and of 256 rows of a matrix? */
static int is_block(const largo_param *p, int by_rows, int64_t at)
{
    const int64_t n = test_numel(&p->value), segment = n / (p->segments > 1 ? p->segments : 1);
    if (at == n) return 1;
    if (at % segment % 4096) return 0;
    if (!by_rows || p->value.ndim < 2) return 1;
    const int64_t cols = p->value.shape[p->value.ndim - 1];
    int64_t rows = p->value.shape[p->value.ndim - 2];
    if (p->value.ndim == 2 && p->segments > 1) rows /= p->segments;
    return at % cols == 0 && at / cols % rows % 256 == 0;
}

/* Parts of about one size where there are many blocks; the largest one is returned. */
static int64_t check_cuts(const largo_hyper *h, int by_rows, const largo_param *p, int32_t world)
{
    int64_t next = 0, most = 0;
    for (int32_t r = 0; r < world; r++) {
        int64_t begin = -1, end = -1;
        assert_ok(largo_shard_cut(h, p, world, r, &begin, &end));
        assert_int_equal(begin, next);
        assert_true(end >= begin);
        if (!is_block(p, by_rows, begin)) fail_msg("a cut at %lld", (long long)begin);
        if (end - begin > most) most = end - begin;
        next = end;
    }
    assert_int_equal(next, test_numel(&p->value));
    return most;
}

static void parts_cover_the_tensor(void **state)
{
    (void)state;
    static const struct {
        int32_t ndim, segments;
        int64_t shape[3];
    } rows[] = {
        {1, 0, {0}},           {1, 0, {1}},         {1, 0, {4095}},       {1, 0, {4096}},
        {1, 0, {4097}},        {1, 0, {1000003}},   {0, 0, {0}},          {1, 3, {3 * 5000}},
        {1, 7, {7 * 4097}},    {1, 40, {40}},       {2, 0, {700, 48}},    {2, 0, {2000, 3}},
        {2, 4, {4 * 300, 20}}, {2, 0, {1, 100000}}, {3, 0, {9, 300, 16}}, {3, 0, {500, 3, 5}},
        {3, 3, {6, 257, 7}},   {2, 0, {0, 9}},      {2, 0, {512, 0}}};
    static const largo_algo algos[] = {LARGO_ADAMW, LARGO_LAMB, LARGO_MERIT, LARGO_CAME};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int a = 0; a < 4; a++) {
            if (algos[a] == LARGO_MERIT && rows[i].ndim > 2) continue;
            largo_hyper h;
            assert_ok(largo_hyper_init(&h, algos[a]));
            const largo_param p = whole_of(rows[i].ndim, rows[i].shape, rows[i].segments);
            for (int32_t world = 1; world <= 64; world++) check_cuts(&h, a > 1, &p, world);
        }
}

/* Parts differ by a block at most where blocks can be cut everywhere. */
static void parts_are_about_equal(void **state)
{
    (void)state;
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_LAMB));
    const int64_t n = 10000000, most[1] = {n};
    const largo_param p = whole_of(1, most, 0);
    for (int32_t world = 1; world <= 64; world++)
        assert_true(check_cuts(&h, 0, &p, world) <= n / world + 4096);
    assert_ok(largo_hyper_init(&h, LARGO_CAME));
    const int64_t shape[2] = {65536, 16};
    const largo_param matrix = whole_of(2, shape, 0);
    for (int32_t world = 1; world <= 64; world++)
        assert_true(check_cuts(&h, 1, &matrix, world) <= 65536 * 16 / world + 4096);
}

/* Of the largest tensors, without memory. */
static void no_size_overflows(void **state)
{
    (void)state;
    const int64_t most = (int64_t)1 << 60;
    const int64_t shapes[][2] = {
        {most, 1}, {1, most}, {most / 2, 2}, {2, most / 2}, {1 << 30, 1 << 30}};
    static const largo_algo algos[] = {LARGO_LAMB, LARGO_CAME};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int a = 0; a < 2; a++) {
            largo_hyper h;
            assert_ok(largo_hyper_init(&h, algos[a]));
            const largo_param p = whole_of(2, shapes[i], 0);
            int64_t begin, end, before = 0;
            for (int32_t r = 0; r < 3; r++) {
                const int32_t rank = r == 0 ? 0 : r == 1 ? INT32_MAX / 2 : INT32_MAX - 1;
                assert_ok(largo_shard_cut(&h, &p, INT32_MAX, rank, &begin, &end));
                assert_true(before <= begin && begin <= end && end <= most);
                before = end;
            }
            assert_int_equal(end, most);
        }
}

static void refusals(void **state)
{
    (void)state;
    const largo_status bad = LARGO_ERR_ARGUMENT;
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_LAMB));
    const int64_t n = 10000;
    largo_param p = whole_of(1, &n, 0);
    int64_t b = -5, e = -5;
    assert_refused(bad, "world 0", largo_shard_cut(&h, &p, 0, 0, &b, &e));
    assert_refused(bad, "world -1", largo_shard_cut(&h, &p, -1, 0, &b, &e));
    assert_refused(bad, "rank is 2", largo_shard_cut(&h, &p, 2, 2, &b, &e));
    assert_refused(bad, "rank is -1", largo_shard_cut(&h, &p, 2, -1, &b, &e));
    assert_refused(bad, "begin is NULL", largo_shard_cut(&h, &p, 2, 0, NULL, &e));
    assert_refused(bad, "end is NULL", largo_shard_cut(&h, &p, 2, 0, &b, NULL));
    assert_refused(bad, "whole is NULL", largo_shard_cut(&h, NULL, 2, 0, &b, &e));
    assert_refused(bad, "hyper is NULL", largo_shard_cut(NULL, &p, 2, 0, &b, &e));
    h.lr = NAN;
    assert_refused(bad, "hyper.lr", largo_shard_cut(&h, &p, 2, 0, &b, &e));
    h.lr = 0.1;
    p.segments = 3;
    assert_refused(LARGO_ERR_SHAPE, "segments is 3", largo_shard_cut(&h, &p, 2, 0, &b, &e));
    p.segments = 0;
    p.value.shape[0] = -1;
    assert_refused(LARGO_ERR_SHAPE, "shape[0] is -1", largo_shard_cut(&h, &p, 2, 0, &b, &e));
    p.value.shape[0] = n;
    const largo_shard part = {LARGO_SHARDED, 1, {2 * n, 0, 0, 0, 0, 0}, 0};
    p.shard = &part;
    assert_refused(bad, "must be the whole tensor", largo_shard_cut(&h, &p, 2, 0, &b, &e));
    assert_true(b == -5 && e == -5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cover_the_tensor),
        cmocka_unit_test(parts_are_about_equal),
        cmocka_unit_test(no_size_overflows),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
