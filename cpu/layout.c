/* layout.c - lists of work for every phase and thread; see layout.h.
 *
 * The builder runs twice over the same code: once to count, with no memory behind it, and once to
 * fill.
 */
#include <string.h>
#include "stats.h"

typedef struct builder {
    const largo__plan *plan;
    largo__layout *layout; /* its arrays are NULL while counting */
    size_t threads, items, lists;
    size_t last_unit; /* of the item emitted last, where it is one of whole units */
    size_t cache;
    size_t kept; /* elements of the direction that a thread keeps, the most of any wave */
} builder;

/* ---- classes of units ---- */

static int is_shared_flat(const largo__unit *unit)
{
    return unit->shared && !unit->family->is_matrix;
}

static int is_shared_matrix(const largo__unit *unit)
{
    return unit->shared && unit->family->is_matrix;
}

static int is_small(const largo__unit *unit)
{
    return !unit->shared && unit->n <= LARGO__SMALL;
}

static int is_large(const largo__unit *unit)
{
    return !unit->shared && unit->n > LARGO__SMALL;
}

static int is_stream(const largo__unit *unit)
{
    return is_large(unit) && !unit->family->is_matrix && largo__passes(unit->family) == 1;
}

static int is_wave(const largo__unit *unit)
{
    return is_large(unit) && !unit->family->is_matrix && largo__passes(unit->family) > 1;
}

static int is_matrix(const largo__unit *unit)
{
    return is_large(unit) && unit->family->is_matrix;
}

static int is_any(const largo__unit *unit)
{
    (void)unit;
    return 1;
}

typedef int class_fn(const largo__unit *unit);

static int64_t rows_here(const largo__unit *unit)
{
    return unit->n / unit->cols;
}

largo__held largo__held_matrices(const largo__unit *unit)
{
    const int64_t last = unit->first_row + rows_here(unit) - 1;
    const largo__held held = {unit->first_row / unit->rows, last / unit->rows + 1};
    return held;
}

/* The super tile of a row, counted over all matrices. */
static int64_t tile_of(const largo__unit *unit, int64_t row)
{
    return row / unit->rows * largo__super_tiles(unit->rows) + row % unit->rows / LARGO__SUPER_ROWS;
}

largo__held largo__held_tiles(const largo__unit *unit)
{
    const int64_t last = unit->first_row + rows_here(unit) - 1;
    const largo__held held = {tile_of(unit, unit->first_row), tile_of(unit, last) + 1};
    return held;
}

/* ---- emitting ---- */

static void emit(builder *b, largo__item item)
{
    if (b->layout->item) b->layout->item[b->items] = item;
    b->items++;
}

/* The next list, of (phase, thread) in order, begins here. */
static void begin_list(builder *b)
{
    if (b->layout->first) b->layout->first[b->lists] = b->items;
    b->lists++;
}

/* Elements of the units of a class in [from, to). */
static int64_t elements(const builder *b, size_t from, size_t to, class_fn *is_class)
{
    int64_t n = 0;
    for (size_t u = from; u < to; u++)
        if (is_class(&b->plan->unit[u])) n += b->plan->unit[u].n;
    return n;
}

/* Passes of the unit of a class that has most; 0 if there is none. */
static int most_passes(const builder *b, class_fn *is_class)
{
    int most = 0;
    for (size_t u = 0; u < b->plan->units; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        if (is_class(unit) && largo__passes(unit->family) > most)
            most = largo__passes(unit->family);
    }
    return most;
}

static int64_t thread_share(int64_t n, size_t t, size_t threads)
{
    return largo__share(n, (int64_t)t, (int64_t)threads);
}

/* Place x in a unit that begins at `start`, cut where a chunk of its segment begins. */
static int64_t cut(int64_t x, int64_t start, const largo__unit *unit)
{
    const int64_t at = x - start, skew = unit->lead % LARGO__CHUNK;
    if (at <= 0) return 0;
    if (at >= unit->n) return unit->n;
    const int64_t low = (at + skew) / LARGO__CHUNK * LARGO__CHUNK - skew;
    return low < 0 ? 0 : low;
}

/* Later passes take what the first one touched last before the rest: it is still in the cache. */
static void reverse(builder *b, size_t from)
{
    if (!b->layout->item) return;
    for (size_t i = from, j = b->items; i + 1 < j; i++) {
        const largo__item last = b->layout->item[--j];
        b->layout->item[j] = b->layout->item[i];
        b->layout->item[i] = last;
    }
}

/* Thread t's part of the units of a class, by elements, in spans of whole chunks. */
static void emit_spans(builder *b, size_t t, size_t from, size_t to, class_fn *is_class, int pass,
                       int kept)
{
    const int64_t total = elements(b, from, to, is_class);
    const int64_t low = thread_share(total, t, b->threads),
                  high = thread_share(total, t + 1, b->threads);
    int64_t start = 0;
    size_t used = 0;
    const size_t first = b->items;
    for (size_t u = from; u < to && start < high; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        if (!is_class(unit)) continue;
        largo__item item = {LARGO__ITEM_SPAN,       pass, u, cut(low, start, unit),
                            cut(high, start, unit), NULL};
        start += unit->n;
        if (item.begin == item.end) continue;
        if (kept && !unit->grad_scratch) {
            if (b->layout->scratch) item.u = b->layout->scratch[t].u + used;
            used += (size_t)(item.end - item.begin + 15) / 16 * 16;
        }
        emit(b, item);
    }
    if (used > b->kept) b->kept = used;
    if (pass > 0) reverse(b, first);
}

/* A list of one kind of whole units: neighbours are one item. */
static void emit_unit(builder *b, largo__item_kind kind, size_t first_item, size_t unit)
{
    const largo__item item = {kind, 0, unit, (int64_t)unit, (int64_t)unit + 1, NULL};
    if (b->items > first_item && b->last_unit + 1 == unit) {
        if (b->layout->item) b->layout->item[b->items - 1].end++;
    } else {
        emit(b, item);
    }
    b->last_unit = unit;
}

/* Thread t's small units. A unit costs about as much as this many elements before its first. */
static void emit_whole(builder *b, size_t t)
{
    enum { OVERHEAD = 128 };
    int64_t total = 0, start = 0;
    for (size_t u = 0; u < b->plan->units; u++)
        if (is_small(&b->plan->unit[u])) total += b->plan->unit[u].n + OVERHEAD;
    const int64_t low = thread_share(total, t, b->threads),
                  high = thread_share(total, t + 1, b->threads);
    const size_t first = b->items;
    for (size_t u = 0; u < b->plan->units; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        if (!is_small(unit)) continue;
        if (start >= low && start < high) emit_unit(b, LARGO__ITEM_WHOLE, first, u);
        start += unit->n + OVERHEAD;
    }
}

/* ---- waves ---- */

/* Elements whose value and direction fit the cache. */
static size_t wave_room(const builder *b)
{
    return b->cache / (2 * sizeof(float));
}

/* A wave ends where value and direction of its units no longer fit; a larger unit is a wave of its
 * own. */
static size_t wave_end(const builder *b, size_t from)
{
    size_t used = 0, u = from;
    for (; u < b->plan->units; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        if (!is_wave(unit)) continue;
        if (used && used + (size_t)unit->n > wave_room(b)) break;
        used += (size_t)unit->n;
    }
    return u;
}

/* Is the direction kept between the passes of these units? */
static int wave_keeps(const builder *b, size_t from, size_t to)
{
    return (size_t)elements(b, from, to, is_wave) <= wave_room(b);
}

static void set_wave_families(builder *b)
{
    for (size_t from = 0; from < b->plan->units; from = wave_end(b, from)) {
        const size_t to = wave_end(b, from);
        const int keeps = wave_keeps(b, from, to);
        for (size_t u = from; u < to; u++) {
            const largo__unit *unit = &b->plan->unit[u];
            if (!is_wave(unit) || !unit->family->kept || !(keeps || unit->grad_scratch)) continue;
            b->layout->work[u].family = unit->family->kept;
        }
    }
}

/* Phase by phase: the last pass of the wave before and the first of this one share a phase. */
static void emit_waves(builder *b)
{
    size_t before = 0, from = 0;
    int keeps_before = 0, first = 1;
    const int passes = most_passes(b, is_wave), last = passes ? passes - 1 : 0;
    while (1) {
        const size_t to = wave_end(b, from);
        const int keeps = wave_keeps(b, from, to);
        for (int pass = 0; pass < (last > 0 ? last : 1); pass++)
            for (size_t t = 0; t < b->threads; t++) {
                begin_list(b);
                if (first && pass == 0) {
                    emit_whole(b, t);
                    emit_spans(b, t, 0, b->plan->units, is_stream, 0, 0);
                }
                if (pass == 0 && from > before)
                    emit_spans(b, t, before, from, is_wave, last, keeps_before);
                emit_spans(b, t, from, to, is_wave, pass, keeps);
            }
        first = 0;
        before = from;
        keeps_before = keeps;
        from = to;
        if (from >= b->plan->units) break;
    }
    if (last == 0) return;
    for (size_t t = 0; t < b->threads; t++) {
        begin_list(b);
        emit_spans(b, t, before, from, is_wave, last, keeps_before);
    }
}

/* ---- matrices ---- */

/* Place x in a unit that begins at `start`, in super tiles, each an equal share of the unit. */
static int64_t cut_tiles(int64_t x, int64_t start, const largo__unit *unit)
{
    const largo__held held = largo__held_tiles(unit);
    const int64_t tiles = held.end - held.first, at = x - start;
    if (at <= 0) return held.first;
    const int64_t tile = at / (unit->n / tiles);
    return at >= unit->n || tile > tiles ? held.end : held.first + tile;
}

static void emit_tiles(builder *b, size_t t, class_fn *is_class, int pass)
{
    const int64_t total = elements(b, 0, b->plan->units, is_class);
    const int64_t low = thread_share(total, t, b->threads),
                  high = thread_share(total, t + 1, b->threads);
    int64_t start = 0;
    for (size_t u = 0; u < b->plan->units && start < high; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        if (!is_class(unit)) continue;
        const largo__item item = {LARGO__ITEM_TILES,
                                  pass,
                                  u,
                                  cut_tiles(low, start, unit),
                                  cut_tiles(high, start, unit),
                                  NULL};
        start += unit->n;
        if (item.begin < item.end && pass < largo__passes(unit->family)) emit(b, item);
    }
}

static void emit_part(builder *b, size_t t, largo__item_kind kind, size_t u, int pass, int64_t n,
                      int64_t matrix)
{
    const largo__item item = {kind,
                              pass,
                              u,
                              matrix * n + thread_share(n, t, b->threads),
                              matrix * n + thread_share(n, t + 1, b->threads),
                              NULL};
    if (item.begin < item.end) emit(b, item);
}

/* Lines of several matrices go by matrix, if all of each is here; else rows and columns apart. */
static void emit_lines(builder *b, size_t t, class_fn *is_class, int pass)
{
    for (size_t u = 0; u < b->plan->units; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        if (!is_class(unit) || pass >= largo__passes(unit->family)) continue;
        if (!unit->family->pass[pass].line) continue;
        if (unit->matrices > 1 && !unit->shared) {
            emit_part(b, t, LARGO__ITEM_LINES, u, pass, unit->matrices, 0);
            continue;
        }
        const largo__held held = largo__held_matrices(unit);
        emit_part(b, t, LARGO__ITEM_ROWS, u, pass, rows_here(unit), 0);
        for (int64_t m = 0; m < held.end - held.first; m++)
            emit_part(b, t, LARGO__ITEM_COLS, u, pass, unit->cols, m);
    }
}

static int any_lines(const builder *b, int pass)
{
    for (size_t u = 0; u < b->plan->units; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        if (is_matrix(unit) && pass < largo__passes(unit->family) && unit->family->pass[pass].line)
            return 1;
    }
    return 0;
}

static void emit_matrices(builder *b)
{
    const int passes = most_passes(b, is_matrix);
    for (int pass = 0; pass < passes; pass++) {
        for (size_t t = 0; t < b->threads; t++) {
            begin_list(b);
            emit_tiles(b, t, is_matrix, pass);
        }
        if (!any_lines(b, pass)) continue;
        for (size_t t = 0; t < b->threads; t++) {
            begin_list(b);
            emit_lines(b, t, is_matrix, pass);
        }
    }
}

/* ---- shared units ---- */

/* Two phases for each pass of any of them, here or on other ranks. */
static void emit_shared(builder *b)
{
    int most = 0;
    for (size_t i = 0; i < b->plan->n_shared; i++) {
        const int passes = largo__passes(b->plan->shared[i].family);
        if (passes > most) most = passes;
    }
    for (int pass = 0; pass < most; pass++) {
        for (size_t t = 0; t < b->threads; t++) {
            begin_list(b);
            emit_spans(b, t, 0, b->plan->units, is_shared_flat, pass, 0);
            emit_tiles(b, t, is_shared_matrix, pass);
        }
        for (size_t t = 0; t < b->threads; t++) {
            begin_list(b);
            emit_lines(b, t, is_shared_matrix, pass);
        }
    }
}

/* ---- all lists ---- */

/* Thread t's part of all gradients, by elements. */
static void emit_scan(builder *b, size_t t)
{
    const int64_t total = elements(b, 0, b->plan->units, is_any);
    const int64_t low = thread_share(total, t, b->threads),
                  high = thread_share(total, t + 1, b->threads);
    int64_t start = 0;
    size_t first = b->items;
    for (size_t u = 0; u < b->plan->units && start < high; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        const int64_t begin = cut(low, start, unit), end = cut(high, start, unit);
        start += unit->n;
        if (begin == end) continue;
        if (begin == 0 && end == unit->n) {
            emit_unit(b, LARGO__ITEM_SCAN_UNITS, first, u);
        } else {
            const largo__item item = {LARGO__ITEM_SCAN, 0, u, begin, end, NULL};
            emit(b, item);
            first = b->items;
        }
    }
}

static void emit_all(builder *b)
{
    b->items = b->lists = 0;
    for (size_t t = 0; t < b->threads; t++) {
        begin_list(b);
        emit_scan(b, t);
    }
    for (size_t t = 0; t < b->threads; t++) {
        const largo__item decide = {LARGO__ITEM_DECIDE, 0, 0, 0, 0, NULL};
        begin_list(b);
        if (t == 0) emit(b, decide);
    }
    b->layout->decide_phase = 1;
    b->layout->scan_phases = b->layout->shared_phase = 2;
    emit_shared(b);
    emit_waves(b);
    emit_matrices(b);
    if (b->layout->first) b->layout->first[b->lists] = b->items;
}

/* ---- memory ---- */

/* Where the next array goes; all memory is one block. */
typedef struct arena {
    char *base; /* NULL: only measure */
    size_t used;
} arena;

static void *take(arena *a, size_t n, size_t size)
{
    const size_t at = a->used;
    a->used = largo__size(largo__size(n, size, 63) / 64, 64, a->used);
    return a->base ? a->base + at : NULL;
}

static size_t size_of(int64_t n)
{
    return (size_t)n;
}

static void take_lines(arena *a, const largo__unit *unit, largo__work *work)
{
    const largo__held held = largo__held_matrices(unit);
    const size_t rows = size_of(rows_here(unit));
    const size_t cols = size_of((held.end - held.first) * unit->cols);
    work->row = take(a, rows, sizeof(float));
    work->col = take(a, cols, sizeof(float));
    work->row_stat = take(a, rows, sizeof *work->row_stat);
    work->col_stat =
        take(a, cols * size_of(largo__super_tiles(unit->rows)), sizeof *work->col_stat);
    work->mean = take(a, size_of(held.end - held.first), sizeof(double));
}

/* A thread's memory for the largest small unit that has lines. */
static void take_scratch(arena *a, const builder *b, largo__scratch *scratch, size_t t)
{
    enum { STAGGER = 832 }; /* not at the same place in a page as other threads' or tensors */
    take(a, (t + 1) * STAGGER, 1);
    int64_t u = 0;
    largo__unit most = {0};
    for (size_t i = 0; i < b->plan->units; i++) {
        const largo__unit *unit = &b->plan->unit[i];
        if (!is_small(unit)) continue;
        if (unit->family->kept && unit->n > u) u = unit->n;
        if (!unit->family->is_matrix) continue;
        if (unit->matrices * unit->rows > most.rows) most.rows = unit->matrices * unit->rows;
        const int64_t slots = unit->matrices * unit->cols * largo__super_tiles(unit->rows);
        if (slots > most.cols) most.cols = slots;
    }
    if (u && u < LARGO__TOGETHER * LARGO__TINY) u = LARGO__TOGETHER * LARGO__TINY;
    if ((int64_t)b->kept > u) u = (int64_t)b->kept;
    largo__scratch s = {0};
    s.u = take(a, size_of(u), sizeof(float));
    s.lines.row = take(a, size_of(most.rows), sizeof(float));
    s.lines.col = take(a, size_of(most.cols), sizeof(float));
    s.lines.row_stat = take(a, size_of(most.rows), sizeof *s.lines.row_stat);
    s.lines.col_stat = take(a, size_of(most.cols), sizeof *s.lines.col_stat);
    s.lines.mean = take(a, size_of(most.rows), sizeof(double));
    if (scratch) scratch[t] = s;
}

/* Sums of averaged rows, where threads or ranks add to them. */
static largo__exact *take_rows(arena *a, const largo__unit *unit)
{
    if (!is_shared_matrix(unit) && !(is_matrix(unit) && unit->matrices == 1)) return NULL;
    const largo__held held = largo__held_matrices(unit);
    return take(a, LARGO__MAX_PASSES * size_of(held.end - held.first), sizeof(largo__exact));
}

static void take_accumulators(arena *a, const builder *b, largo__layout *l)
{
    const size_t begin = a->used;
    l->accumulators = take(a, 0, 1);
    l->found = take(a, b->plan->groups, sizeof *l->found);
    l->shared = take(a, b->plan->n_shared, sizeof *l->shared);
    for (size_t u = 0; u < b->plan->units; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        largo__stats *stats = NULL;
        if (unit->shared && l->shared) stats = &l->shared[unit->shared - 1];
        if (is_wave(unit) || is_matrix(unit)) stats = take(a, 1, sizeof *stats);
        largo__exact *rows = take_rows(a, unit);
        if (!l->work) continue;
        l->work[u].stats = stats;
        l->work[u].rows = rows;
    }
    l->accumulator_bytes = a->used - begin;
    l->wire = take(a, largo__wire_words(l), 8);
}

static void lay_out(arena *a, builder *b, largo__layout *l)
{
    take(a, 1, sizeof *l); /* itself, in front */
    l->item = take(a, l->items, sizeof *l->item);
    l->first = take(a, l->phases * l->threads + 1, sizeof *l->first);
    l->work = take(a, b->plan->units, sizeof *l->work);
    l->scratch = take(a, l->threads, sizeof *l->scratch);
    if (l->work) memset(l->work, 0, b->plan->units * sizeof *l->work);
    take_accumulators(a, b, l);
    for (size_t u = 0; u < b->plan->units; u++) {
        const largo__unit *unit = &b->plan->unit[u];
        const int keeps = is_small(unit) || (unit->shared && unit->grad_scratch);
        if (l->work)
            l->work[u].family = keeps && unit->family->kept ? unit->family->kept : unit->family;
        largo__work ignored;
        if (is_matrix(unit) || is_shared_matrix(unit))
            take_lines(a, unit, l->work ? &l->work[u] : &ignored);
    }
    for (size_t t = 0; t < l->threads; t++) take_scratch(a, b, l->scratch, t);
}

/* Fewer threads than there are where there is too little to do. */
static size_t useful_threads(const builder *b, size_t threads)
{
    enum { WORTH = 16384 };
    int64_t work = 0;
    for (size_t u = 0; u < b->plan->units; u++) work += b->plan->unit[u].n + 128;
    const int64_t most = work / WORTH + 1;
    return (int64_t)threads < most ? threads : (size_t)most;
}

largo__layout *largo__layout_make(largo_ctx *ctx, const largo__plan *plan, size_t threads,
                                  size_t cache, size_t *bytes)
{
    largo__layout counted = {0};
    builder b = {plan, &counted, 1, 0, 0, 0, cache, 0};
    b.threads = counted.threads = useful_threads(&b, threads);
    largo__stops_count(plan, counted.stop_plan);
    emit_all(&b);
    counted.items = b.items;
    counted.phases = b.lists / b.threads;
    arena measure = {NULL, 0};
    lay_out(&measure, &b, &counted);
    *bytes = measure.used;

    char *block = measure.used == SIZE_MAX ? NULL : largo__host_alloc(ctx, measure.used);
    if (!block) return NULL;
    largo__layout *l = (largo__layout *)block;
    *l = counted;
    arena real = {block, 0};
    lay_out(&real, &b, l);
    l->block = block;
    l->bytes = measure.used;
    b.layout = l;
    set_wave_families(&b);
    emit_all(&b);
    return l;
}

void largo__layout_free(largo_ctx *ctx, largo__layout *layout)
{
    if (layout) largo__host_free(ctx, layout->block, layout->bytes);
}
