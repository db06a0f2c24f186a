/* kernels.c - every pass of every optimizer, for one instruction set. The build compiles this file
 * once for each with -DLARGO_ISA=<name> and its flags; nothing here names an instruction.
 *
 * The loops take the element functions as arguments and are always inlined, so each row of algos.def
 * becomes one loop that the compiler vectorizes. Bodies are real functions: a debugger can enter.
 */
#include <string.h>
#include "kernels.h"
#include "../optim/all.h"

/* FEW: up to so many elements, lanes are cleared and added with a constant bound. */
enum { LANES = LARGO__LANES, CHUNK = LARGO__CHUNK, AHEAD = 512, FEW = 16 };

/* Streams at the element that a loop is at. No restrict: u may be g. */
typedef struct streams {
    float *p, *m, *v, *u;
    const float *g, *col;
    float row;
    double scale;
} streams;

LARGO_FN largo__elem load(const streams *s, int reads, int scaled, int64_t i)
{
    largo__elem x = {0};
    if (reads & LARGO__P) x.p = s->p[i];
    if (reads & LARGO__G) x.g = scaled ? (float)((double)s->g[i] * s->scale) : s->g[i];
    if (reads & LARGO__M) x.m = s->m[i];
    if (reads & LARGO__V) x.v = s->v[i];
    if (reads & LARGO__U) x.u = s->u[i];
    if (reads & LARGO__RC) {
        x.row = s->row;
        x.col = s->col[i];
    }
    return x;
}

LARGO_FN void store(const streams *s, int writes, const largo__elem *x, int64_t i)
{
    if (writes & LARGO__P) s->p[i] = x->p;
    if (writes & LARGO__M) s->m[i] = x->m;
    if (writes & LARGO__V) s->v[i] = x->v;
    if (writes & LARGO__U) s->u[i] = x->u;
}

/* The row of algos.def, as compile-time constants. */
typedef struct row {
    largo__update_fn *update;
    largo__term_fn *term[2];
    int reads, writes, op, scope, terms;
} row;

/* What lies AHEAD of LANES elements, into the first-level cache: division and square root fill the window of an
 * out-of-order core, so that it does not reach far enough by itself. Addresses are integers: they may lie
 * past the end, where a prefetch does nothing. The direction, if kept, is near already, and beyond its
 * end is another thread's. */
LARGO_FN void prefetch_one(const float *x, int64_t at, int writes)
{
    const uintptr_t first = (uintptr_t)x + sizeof *x * (uintptr_t)(at + AHEAD);
    for (uintptr_t i = 0; i < sizeof *x * LANES; i += 64) {
        if (writes)
            __builtin_prefetch((const void *)(first + i), 1, 3);
        else
            __builtin_prefetch((const void *)(first + i), 0, 3);
    }
}

LARGO_FN void prefetch(const row *r, const streams *s, int64_t at)
{
    if (r->reads & LARGO__P) prefetch_one(s->p, at, r->writes & LARGO__P);
    if (r->reads & LARGO__G) prefetch_one(s->g, at, 0);
    if (r->reads & LARGO__M) prefetch_one(s->m, at, r->writes & LARGO__M);
    if (r->reads & LARGO__V) prefetch_one(s->v, at, r->writes & LARGO__V);
}

/* Lanes of one chunk or one row of a tile. */
typedef struct lanes {
    float sum[2][LANES];
    int32_t max[2][LANES];
} lanes;

/* A lane for each column of a tile. */
typedef struct columns {
    float sum[2][LARGO__TILE_COLS];
    int32_t max[2][LARGO__TILE_COLS];
} columns;

/* What one lane has gathered. */
typedef struct gathered {
    float sum[2];
    int32_t max[2];
} gathered;

/* Add term t of one element. t is a constant wherever this is inlined: compilers follow a function
 * pointer out of a constant struct only at a constant index, so no loop runs over t. */
LARGO_FN void add_term(const row *r, int t, const largo__elem *x, const largo__k *k, gathered *lane,
                       columns *col, int64_t j)
{
    const float y = r->term[t](x, k);
    if (r->op & LARGO__SUMSQ) {
        lane->sum[t] = fmaf(y, y, lane->sum[t]);
        if (col) col->sum[t][j] = fmaf(y, y, col->sum[t][j]);
    }
    if (r->op & LARGO__MAX) {
        const int32_t bits = (int32_t)largo__magnitude_bits(y);
        lane->max[t] = bits > lane->max[t] ? bits : lane->max[t];
        if (col) col->max[t][j] = bits > col->max[t][j] ? bits : col->max[t][j];
    }
}

/* Element i, in column j of a tile where `col` is not NULL. */
LARGO_FN void element(const row *r, int scaled, const streams *s, const largo__k *k, int64_t i,
                      gathered *lane, columns *col, int64_t j)
{
    largo__elem x = load(s, r->reads, scaled, i);
    r->update(&x, k);
    store(s, r->writes, &x, i);
    if (r->terms > 0) add_term(r, 0, &x, k, lane, col, j);
    if (r->terms > 1) add_term(r, 1, &x, k, lane, col, j);
}

/* fresh: nothing was put there yet, and memory is not looked at.
 *
 * Blocks are taken one after the other: several at once would spare lanes a way to memory, but read
 * as many more streams, each in steps, and memory that prefetches linear streams was 1.7 times
 * slower. */
LARGO_FN gathered get_lane(const row *r, const lanes *acc, int l, int fresh)
{
    gathered lane = {{0}, {0}};
    if (fresh) return lane;
    if (r->op & LARGO__SUMSQ) {
        if (r->terms > 0) lane.sum[0] = acc->sum[0][l];
        if (r->terms > 1) lane.sum[1] = acc->sum[1][l];
    }
    if (r->op & LARGO__MAX) {
        if (r->terms > 0) lane.max[0] = acc->max[0][l];
        if (r->terms > 1) lane.max[1] = acc->max[1][l];
    }
    return lane;
}

LARGO_FN void put_lane(const row *r, lanes *acc, int l, const gathered *lane)
{
    if (r->op & LARGO__SUMSQ) {
        if (r->terms > 0) acc->sum[0][l] = lane->sum[0];
        if (r->terms > 1) acc->sum[1][l] = lane->sum[1];
    }
    if (r->op & LARGO__MAX) {
        if (r->terms > 0) acc->max[0][l] = lane->max[0];
        if (r->terms > 1) acc->max[1][l] = lane->max[1];
    }
}

/* Zero the lanes that fewer elements than LANES reach in the tree, and no more: most tensors of a
 * model are small. */
LARGO_FN void clear(const row *r, int64_t n, lanes *acc)
{
    const gathered zero = {{0}, {0}};
    if (n <= FEW)
        for (int l = 0; l < FEW; l++) put_lane(r, acc, l, &zero);
    else
        for (int l = 0; l < largo__used_lanes(n); l++) put_lane(r, acc, l, &zero);
}

/* n <= LANES elements, one for each lane. */
LARGO_FN void block(const row *r, int scaled, const streams *s, const largo__k *k, int64_t at,
                    int n, int fresh, lanes *acc, columns *col)
{
    if (n == LANES) prefetch(r, s, at); /* short of that, what follows is another tensor's */
    LARGO_IVDEP
    for (int l = 0; l < n; l++) {
        gathered lane = get_lane(r, acc, l, fresh);
        element(r, scaled, s, k, at + l, &lane, col, at + l);
        put_lane(r, acc, l, &lane);
    }
}

/* What the streams hold after the update. */
LARGO_FN int after(const row *r)
{
    return r->reads | r->writes;
}

/* Squares under- or overflowed, or all terms are zero: look again, in double, in the same order. */
LARGO_FN double second_look(const row *r, int t, int scaled, const streams *s, const largo__k *k,
                            int64_t at, int64_t n)
{
    double lane[LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        const largo__elem x = load(s, after(r), scaled, at + i);
        const double y = (double)r->term[t](&x, k);
        lane[i % LANES] += y * y;
    }
    return largo__tree(lane, LANES);
}

/* Zero chunks are common (embeddings, zero initialisation): cheaper to find than to sum. */
LARGO_FN int all_zero(const row *r, int t, int scaled, const streams *s, const largo__k *k,
                      int64_t at, int64_t n)
{
    uint32_t any = 0;
    for (int64_t i = 0; i < n; i++) {
        const largo__elem x = load(s, after(r), scaled, at + i);
        any |= largo__magnitude_bits(r->term[t](&x, k));
    }
    return any == 0;
}

LARGO_FN uint32_t max_used(const int32_t max[LANES], int used)
{
    int32_t m = 0;
    LARGO_ROLLED
    for (int l = 0; l < used; l++) m = max[l] > m ? max[l] : m;
    return (uint32_t)m;
}

/* The largest over the lanes that n elements reach; the common cases by a constant bound. */
LARGO_FN uint32_t max_lanes(const int32_t max[LANES], int64_t n)
{
    if (n > LANES / 2) return max_used(max, LANES);
    return n <= FEW ? max_used(max, FEW) : max_used(max, largo__used_lanes(n));
}

/* The tree over the lanes that n elements reach, its first level straight from float. */
LARGO_FN double sum_used(const float sum[LANES], int used)
{
    double lane[LANES];
    if (used == 1) return (double)sum[0];
    const int half = used / 2;
    for (int l = 0; l < half; l++) lane[l] = (double)sum[l] + (double)sum[l + half];
    return largo__tree(lane, half);
}

/* The same tree over the FEW lanes. */
LARGO_FN double sum_few(const float sum[LANES])
{
    double eight[FEW / 2], four[FEW / 4];
    LARGO_ROLLED
    for (int l = 0; l < FEW / 2; l++) eight[l] = (double)sum[l] + (double)sum[l + FEW / 2];
    LARGO_ROLLED
    for (int l = 0; l < FEW / 4; l++) four[l] = eight[l] + eight[l + FEW / 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
}

LARGO_FN double sum_lanes(const float sum[LANES], int64_t n)
{
    if (n > LANES / 2) return sum_used(sum, LANES);
    return n <= FEW ? sum_few(sum) : sum_used(sum, largo__used_lanes(n));
}

/* Lanes of n elements from `at` on to one double. */
LARGO_FN double finish_lanes(const row *r, int t, int scaled, const streams *s, const largo__k *k,
                             int64_t at, int64_t n, const lanes *acc)
{
    const double sum = sum_lanes(acc->sum[t], n);
    if (!largo__needs_second_look(sum)) return sum;
    if (sum == 0.0 && all_zero(r, t, scaled, s, k, at, n)) return 0.0;
    return second_look(r, t, scaled, s, k, at, n);
}

LARGO_FN void finish_term(const row *r, int t, int scaled, const streams *s, const largo__k *k,
                          int64_t at, int64_t n, const lanes *acc, largo__span *span, double *sum)
{
    if (r->op & LARGO__SUMSQ) sum[t] = finish_lanes(r, t, scaled, s, k, at, n, acc);
    if (!(r->op & LARGO__MAX)) return;
    const uint32_t max = max_lanes(acc->max[t], n);
    if (max > span->max[t]) span->max[t] = max;
}

LARGO_FN void finish_terms(const row *r, int scaled, const streams *s, const largo__k *k,
                           int64_t at, int64_t n, const lanes *acc, largo__span *span, double *sum)
{
    if (r->terms > 0) finish_term(r, 0, scaled, s, k, at, n, acc, span, sum);
    if (r->terms > 1) finish_term(r, 1, scaled, s, k, at, n, acc, span, sum);
}

/* All blocks of n elements from `at` on, into fresh lanes. */
LARGO_FN void gather(const row *r, int scaled, const streams *s, const largo__k *k, int64_t at,
                     int64_t n, lanes *acc, columns *col)
{
    int64_t i = 0;
    if (n >= LANES) {
        block(r, scaled, s, k, at, LANES, 1, acc, col);
        i = LANES;
    } else {
        clear(r, n, acc);
    }
    for (; i + LANES <= n; i += LANES) block(r, scaled, s, k, at + i, LANES, 0, acc, col);
    if (i < n) block(r, scaled, s, k, at + i, (int)(n - i), 0, acc, col);
}

LARGO_FN void chunk(const row *r, int scaled, const streams *s, const largo__k *k, int64_t at,
                    int64_t n, largo__span *span, double *sum)
{
    lanes acc;
    gather(r, scaled, s, k, at, n, &acc, NULL);
    finish_terms(r, scaled, s, k, at, n, &acc, span, sum);
}

/* Chunks at `at` and `away` by turns: memory gives two linear streams a tenth more than one. */
LARGO_FN void two_chunks(const row *r, int scaled, const streams *s, const largo__k *k, int64_t at,
                         int64_t away, largo__span *span, double *sum)
{
    lanes near, far;
    block(r, scaled, s, k, at, LANES, 1, &near, NULL);
    block(r, scaled, s, k, at + away, LANES, 1, &far, NULL);
    for (int64_t i = LANES; i < CHUNK; i += LANES) {
        block(r, scaled, s, k, at + i, LANES, 0, &near, NULL);
        block(r, scaled, s, k, at + away + i, LANES, 0, &far, NULL);
    }
    finish_terms(r, scaled, s, k, at, CHUNK, &near, span, sum);
    finish_terms(r, scaled, s, k, at + away, CHUNK, &far, span, sum + 2 * (away / CHUNK));
}

/* Elements [i, end) of a pass without statistics: no order to keep. */
LARGO_FN void plain(const row *r, int scaled, const streams *s, const largo__k *k, int64_t i,
                    int64_t end)
{
    if (end - i == LANES) prefetch(r, s, i);
    LARGO_IVDEP
    for (; i < end; i++) {
        largo__elem x = load(s, r->reads, scaled, i);
        r->update(&x, k);
        store(s, r->writes, &x, i);
    }
}

LARGO_FN void run_span(const row *r, int scaled, largo__span *span, const largo__k *given)
{
    const largo__k k = *given;
    const streams s = {span->p, span->m, span->v, span->u, span->g, NULL, 0.0f, k.grad_scale};
    if (!r->op) {
        for (int64_t i = 0; i < span->n; i += LANES)
            plain(r, scaled, &s, &k, i, span->n - i < LANES ? span->n : i + LANES);
        return;
    }
    double *sum = span->sum;
    int64_t at = 0;
    if (!r->writes) {
        const int64_t half = span->n / CHUNK / 2 * CHUNK;
        for (; at < half; at += CHUNK, sum += 2) two_chunks(r, scaled, &s, &k, at, half, span, sum);
        at += half;
        sum += 2 * (half / CHUNK);
    }
    for (; at < span->n; at += CHUNK, sum += 2)
        chunk(r, scaled, &s, &k, at, span->n - at < CHUNK ? span->n - at : CHUNK, span, sum);
}

LARGO_FN int is_few(const largo__span *span)
{
    return span->n <= FEW;
}

/* The same for one chunk of at most FEW elements, in a function of its own: what large spans need
 * would fill its registers. */
LARGO_FN void run_few(const row *r, int scaled, largo__span *span, const largo__k *given)
{
    const largo__k k = *given;
    const streams s = {span->p, span->m, span->v, span->u, span->g, NULL, 0.0f, k.grad_scale};
    if (!is_few(span)) __builtin_unreachable();
    chunk(r, scaled, &s, &k, 0, span->n, span, span->sum);
}

LARGO_FN void join_lanes(const row *r, int t, int scaled, const streams *s, const largo__k *k,
                         int64_t n, const lanes *acc, double *stat)
{
    const double part = r->op & LARGO__MAX ? largo__magnitude(max_lanes(acc->max[t], n))
                                           : finish_lanes(r, t, scaled, s, k, 0, n, acc);
    *stat = largo__joined(*stat, part, r->op & LARGO__MAX);
}

/* One row of a tile. */
LARGO_FN void tile_row(const row *r, int scaled, const streams *s, const largo__k *k, int64_t n,
                       columns *col, double stat[2])
{
    lanes acc;
    gather(r, scaled, s, k, 0, n, &acc, col);
    if (r->terms > 0) join_lanes(r, 0, scaled, s, k, n, &acc, &stat[0]);
    if (r->terms > 1) join_lanes(r, 1, scaled, s, k, n, &acc, &stat[1]);
}

/* The streams of a tile from (row, col) on. */
LARGO_FN streams tile_streams(const row *r, const largo__tile *tile, const largo__k *k, int64_t i,
                              int64_t j)
{
    const int64_t at = i * tile->cols + j;
    const int used = after(r);
    streams s = {0};
    if (used & LARGO__P) s.p = tile->p + at;
    if (used & LARGO__G) s.g = tile->g + at;
    if (used & LARGO__M) s.m = tile->m + at;
    if (used & LARGO__V) s.v = tile->v + at;
    if (used & LARGO__U) s.u = tile->u + at;
    if (used & LARGO__RC) {
        s.row = tile->row[i];
        s.col = tile->col + j;
    }
    s.scale = k->grad_scale;
    return s;
}

/* A column of at most TILE_ROWS terms, from its lane. */
LARGO_FN double column_sum(const row *r, int t, int scaled, const largo__tile *tile,
                           const largo__k *k, int64_t row0, int64_t rows, int64_t col, float lane)
{
    if (!largo__needs_second_look((double)lane)) return (double)lane;
    double sum = 0.0;
    for (int64_t i = row0; i < row0 + rows; i++) {
        const streams s = tile_streams(r, tile, k, i, col);
        const largo__elem x = load(&s, after(r), scaled, 0);
        const double y = (double)r->term[t](&x, k);
        sum += y * y;
    }
    return sum;
}

/* Term t of the columns [col0, col0 + cols) of rows [row0, row0 + rows). */
LARGO_FN void join_columns(const row *r, int t, int scaled, const largo__tile *tile,
                           const largo__k *k, int64_t row0, int64_t rows, int64_t col0,
                           int64_t cols, const columns *lane)
{
    for (int64_t j = 0; j < cols; j++) {
        const double part = r->op & LARGO__MAX ? largo__magnitude((uint32_t)lane->max[t][j])
                                               : column_sum(r, t, scaled, tile, k, row0, rows,
                                                            col0 + j, lane->sum[t][j]);
        double *stat = &tile->col_stat[col0 + j][t];
        *stat = row0 ? largo__joined(*stat, part, r->op & LARGO__MAX) : part;
    }
}

LARGO_FN void clear_columns(const row *r, int t, int64_t cols, columns *lane)
{
    if (r->op & LARGO__SUMSQ) memset(lane->sum[t], 0, (size_t)cols * sizeof lane->sum[t][0]);
    if (r->op & LARGO__MAX) memset(lane->max[t], 0, (size_t)cols * sizeof lane->max[t][0]);
}

/* Rows [row0, row0 + rows), at most TILE_ROWS, and columns [col0, col0 + cols), at most TILE_COLS.
 * Rows' statistics, or `strip`, hold what the columns before col0 gave. */
LARGO_FN void one_tile(const row *r, int scaled, const largo__tile *tile, const largo__k *k,
                       int64_t row0, int64_t rows, int64_t col0, int64_t cols, double strip[2])
{
    const int by_line = r->scope == LARGO__ROW_COL;
    columns lane;
    if (by_line && r->terms > 0) clear_columns(r, 0, cols, &lane);
    if (by_line && r->terms > 1) clear_columns(r, 1, cols, &lane);
    for (int64_t i = row0; i < row0 + rows; i++) {
        const streams s = tile_streams(r, tile, k, i, col0);
        double *stat = by_line ? tile->row_stat[i] : strip;
        if (by_line && col0 == 0) stat[0] = stat[1] = 0.0;
        tile_row(r, scaled, &s, k, cols, by_line ? &lane : NULL, stat);
    }
    if (!by_line) return;
    if (r->terms > 0) join_columns(r, 0, scaled, tile, k, row0, rows, col0, cols, &lane);
    if (r->terms > 1) join_columns(r, 1, scaled, tile, k, row0, rows, col0, cols, &lane);
}

LARGO_FN void run_tile(const row *r, int scaled, const largo__tile *tile, const largo__k *given)
{
    const largo__k k = *given;
    for (int64_t row0 = 0; row0 < tile->rows; row0 += LARGO__TILE_ROWS) {
        const int64_t left = tile->rows - row0;
        const int64_t rows = left < LARGO__TILE_ROWS ? left : LARGO__TILE_ROWS;
        double strip[2] = {0.0, 0.0};
        for (int64_t col0 = 0; col0 < tile->cols; col0 += LARGO__TILE_COLS) {
            const int64_t right = tile->cols - col0;
            one_tile(r, scaled, tile, &k, row0, rows, col0,
                     right < LARGO__TILE_COLS ? right : LARGO__TILE_COLS, strip);
        }
        if (!r->op || r->scope == LARGO__ROW_COL) continue;
        memcpy(tile->strip_stat[row0 / LARGO__TILE_ROWS], strip, sizeof strip);
    }
}

/* A gradient factor of exactly 1, the common case, costs nothing; others round once from double. */
#define SUMSQ LARGO__SUMSQ
#define MAX LARGO__MAX
#define SUMSQ_MAX LARGO__SUMSQ_MAX
#define NO_OP LARGO__NO_OP
#define SEGMENT LARGO__SEGMENT
#define ROW_COL LARGO__ROW_COL
#define NO_SCOPE LARGO__NO_SCOPE
#define NAME__(family, n, isa) largo__##family##_pass##n##_##isa
#define NAME_(family, n, isa) NAME__(family, n, isa)
#define NAME(family, n) NAME_(family, n, LARGO_ISA)

/* Both shapes are stamped for every row; the one that its family does not use is never called and
 * dropped, being static and unreferenced. */
enum { FLAT = 0, MATRIX = 1 };
enum {
#define FAMILY(id, algo, rank, kept) RANK_##id = rank,
#include "../optim/algos.def"
};

#define PASS(family, n, update, reads, writes, op, scope, terms, term0, term1)                     \
    static const row row_##family##_##n = {                                                        \
        update, {term0, term1}, reads, writes, op, scope, terms};                                  \
    static void __attribute__((noinline))                                                          \
    NAME(few_##family, n)(largo__span * span, const largo__k *k)                                   \
    {                                                                                              \
        run_few(&row_##family##_##n, 0, span, k);                                                  \
    }                                                                                              \
    static void NAME(span_##family, n)(largo__span * span, const largo__k *k)                      \
    {                                                                                              \
        const int is_plain = !((reads)&LARGO__G) || k->grad_scale == 1.0;                          \
        if ((op) && is_plain && is_few(span))                                                      \
            NAME(few_##family, n)(span, k);                                                        \
        else if (is_plain)                                                                         \
            run_span(&row_##family##_##n, 0, span, k);                                             \
        else                                                                                       \
            run_span(&row_##family##_##n, 1, span, k);                                             \
    }                                                                                              \
    static void NAME(tile_##family, n)(const largo__tile *tile, const largo__k *k)                 \
    {                                                                                              \
        if (!((reads)&LARGO__G) || k->grad_scale == 1.0)                                           \
            run_tile(&row_##family##_##n, 0, tile, k);                                             \
        else                                                                                       \
            run_tile(&row_##family##_##n, 1, tile, k);                                             \
    }
#include "../optim/algos.def"

#define TABLE_(isa) largo__kernels_##isa
#define TABLE(isa) TABLE_(isa)
const largo__kernel TABLE(LARGO_ISA)[LARGO__ROWS] = {
#define PASS(family, n, ...)                                                                       \
    [LARGO__ROW_##family##_##                                                                      \
        n] = {(int)RANK_##family == (int)FLAT ? NAME(span_##family, n) : NULL,                     \
              (int)RANK_##family == (int)MATRIX ? NAME(tile_##family, n) : NULL},
#include "../optim/algos.def"
};
