/* work.c - what a thread does for each item: calls kernels, adds their statistics exactly, and makes
 * of them what the next pass needs.
 *
 * No thread waits for another inside a phase. Sums meet by integer atomics, so their order is free;
 * whoever needs a finished statistic in the next phase rounds it itself, all to the same bits.
 */
#include <math.h>
#include <string.h>
#include "stats.h"
#include "work.h"

/* Statistics of chunks that a kernel hands over at once. */
enum { BATCH = 64 };

/* ---- flat units ---- */

static largo__span span_at(const largo__unit *unit, int64_t begin, float *u)
{
    largo__span s = {0};
    s.p = unit->p + begin;
    s.g = unit->g + begin;
    s.m = unit->state[0] ? unit->state[0] + begin : NULL;
    s.v = unit->state[1] ? unit->state[1] + begin : NULL;
    s.u = u;
    return s;
}

/* A pass without statistics goes from the end in blocks: what the pass before it touched last is still
 * in the cache. Inside a block it goes forward, as prefetching wants it. */
static void backwards(largo__span_kernel *kernel, const largo__unit *unit, const largo__k *k,
                      int64_t begin, int64_t end, float *u)
{
    enum { BLOCK = 65536 };
    for (int64_t high = end; high > begin;) {
        const int64_t low = high - begin > BLOCK ? high - BLOCK : begin;
        largo__span s = span_at(unit, low, u ? u + (low - begin) : NULL);
        s.n = high - low;
        kernel(&s, k);
        high = low;
    }
}

/* A pass with statistics, in order: by chunks of the segment, of which the first may have begun on
 * another rank. */
static void sum_span(largo__span_kernel *kernel, const largo__unit *unit, const largo__pass *pass,
                     const largo__k *k, int64_t begin, int64_t end, float *u, largo__stats *stats)
{
    double sums[BATCH][2];
    for (int64_t at = begin, n; at < end; at += n) {
        const int64_t skew = (unit->lead + at) % LARGO__CHUNK;
        const int64_t most = skew ? LARGO__CHUNK - skew : BATCH * LARGO__CHUNK;
        largo__span s = span_at(unit, at, u ? u + (at - begin) : NULL);
        s.n = n = end - at < most ? end - at : most;
        s.sum = &sums[0][0];
        kernel(&s, k);
        const int64_t chunks = (s.n + LARGO__CHUNK - 1) / LARGO__CHUNK;
        for (int64_t c = 0; c < chunks && pass->op & LARGO__SUMSQ; c++)
            for (int t = 0; t < pass->terms; t++) largo__exact_add(&stats->sum[t], sums[c][t]);
        for (int t = 0; t < pass->terms; t++)
            if (s.max[t] > stats->max[t]) stats->max[t] = s.max[t];
    }
}

/* One pass over [begin, end); u is the direction of element `begin`. Statistics are added. */
static void pass_span(const largo__run *run, const largo__unit *unit, const largo__pass *pass,
                      const largo__k *k, int64_t begin, int64_t end, float *u, largo__stats *stats)
{
    largo__span_kernel *kernel = run->kernels[pass->row].span;
    if (!pass->op)
        backwards(kernel, unit, k, begin, end, u);
    else
        sum_span(kernel, unit, pass, k, begin, end, u, stats);
}

/* What the statistics of the segment left for `pass`: seg. `first`: the caller has the first element
 * of the unit in this pass, and tells them if that is wanted. */
static void finish_segment(const largo__unit *unit, const largo__family *family, int pass,
                           const largo__stats *stats, const largo__d *d, largo__k *k, int first)
{
    const largo__pass *p = largo__segment_pass(family, pass);
    if (!p) return;
    double stat[2];
    largo__stats_round(p, stats, stat);
    const int tells = first && !unit->shared;
    largo__stats_finish(p, stat, unit->count, d, k->seg, tells ? unit->report : NULL);
}

static const largo__constants *constants_of(const largo__run *run, size_t unit)
{
    return &run->plan->constants[run->plan->constants_of[unit]];
}

static void do_span(const largo__run *run, const largo__item *item)
{
    const largo__unit *unit = &run->plan->unit[item->unit];
    const largo__work *work = &run->layout->work[item->unit];
    const largo__constants *c = constants_of(run, item->unit);
    if (item->pass >= largo__passes(work->family)) return;
    const largo__pass *pass = &work->family->pass[item->pass];
    largo__k k = c->k;
    if (work->stats)
        finish_segment(unit, work->family, item->pass, work->stats, &c->d, &k, item->begin == 0);
    float *u = unit->grad_scratch ? unit->g + item->begin : item->u;
    largo__stats stats;
    if (pass->op) largo__stats_clear(&stats);
    pass_span(run, unit, pass, &k, item->begin, item->end, u, &stats);
    if (pass->op) largo__stats_merge(work->stats, &stats, pass);
}

/* ---- matrices ---- */

/* seg of one matrix: the segment's, and what the last averaged rows made of it. */
static void finish_matrix(const largo__unit *unit, const largo__work *work, int pass,
                          int64_t matrix, const largo__d *d, largo__k *k, int first)
{
    finish_segment(unit, work->family, pass, work->stats, d, k, first);
    const largo__held held = largo__held_matrices(unit);
    const int64_t place = matrix - held.first, per_pass = held.end - held.first;
    for (int before = pass - 1; before >= 0; before--) {
        if (!work->family->pass[before].matrix) continue;
        const double mean =
            work->rows
                ? largo__exact_round(&work->rows[before * per_pass + place]) / (double)unit->rows
                : work->mean[place];
        work->family->pass[before].matrix(mean, k->seg);
        return;
    }
}

/* The rows of super tile i, counted over all matrices, that are here. */
static largo__tile tile_at(const largo__unit *unit, const largo__work *work, int64_t i)
{
    const int64_t per_matrix = largo__super_tiles(unit), matrix = i / per_matrix;
    const int64_t start = matrix * unit->rows, here_end = unit->first_row + unit->n / unit->cols;
    int64_t row = start + i % per_matrix * LARGO__SUPER_ROWS, end = row + LARGO__SUPER_ROWS;
    if (end > start + unit->rows) end = start + unit->rows;
    if (row < unit->first_row) row = unit->first_row;
    if (end > here_end) end = here_end;
    const int64_t at = (row - unit->first_row) * unit->cols;
    const largo__held held = largo__held_matrices(unit);
    largo__tile tile = {0};
    tile.p = unit->p + at;
    tile.g = unit->g + at;
    tile.m = unit->state[0] ? unit->state[0] + at : NULL;
    if (unit->family->slot_shape[1] == LARGO__LIKE) tile.v = unit->state[1] + at;
    tile.rows = end - row;
    tile.cols = unit->cols;
    tile.row = work->row + row - unit->first_row;
    tile.col = work->col + (matrix - held.first) * unit->cols;
    tile.row_stat = work->row_stat + row - unit->first_row;
    tile.col_stat = work->col_stat + (i - held.first * per_matrix) * unit->cols;
    return tile;
}

/* Statistics of the segment from a tile: sums of its strips, or the maxima of its rows. */
static void add_tile(const largo__pass *pass, const largo__tile *tile, largo__stats *stats)
{
    const int by_line = pass->scope == LARGO__ROW_COL;
    const double(*stat)[2] = (const double(*)[2])(by_line ? tile->row_stat : tile->strip_stat);
    const int64_t n = by_line ? tile->rows : (tile->rows + LARGO__TILE_ROWS - 1) / LARGO__TILE_ROWS;
    for (int64_t i = 0; i < n; i++)
        for (int t = 0; t < pass->terms; t++) {
            if (pass->op & LARGO__SUMSQ) largo__exact_add(&stats->sum[t], stat[i][t]);
            const uint32_t max =
                pass->op & LARGO__MAX ? largo__magnitude_bits((float)stat[i][t]) : 0;
            if (max > stats->max[t]) stats->max[t] = max;
        }
}

/* Super tiles [begin, end), counted over all matrices; statistics of the segment are added. */
static void pass_tiles(const largo__run *run, const largo__unit *unit, const largo__work *work,
                       int pass, const largo__constants *c, int64_t begin, int64_t end,
                       largo__stats *stats)
{
    const largo__pass *row = &work->family->pass[pass];
    const int64_t per_matrix = largo__super_tiles(unit);
    double strips[LARGO__SUPER_ROWS / LARGO__TILE_ROWS][2];
    largo__k k = c->k;
    int64_t finished = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t matrix = i / per_matrix;
        largo__tile tile = tile_at(unit, work, i);
        tile.strip_stat = strips;
        if (matrix != finished)
            finish_matrix(unit, work, pass, matrix, &c->d, &k, i == largo__held_tiles(unit).first);
        finished = matrix;
        run->kernels[row->row].tile(&tile, &k);
        if (row->op && row->segment) add_tile(row, &tile, stats);
    }
}

/* Rows [begin, end) of those here: averages, factors; the averages are added to `sum`. */
static void finish_rows(const largo__unit *unit, const largo__work *work, int pass,
                        const largo__d *d, int64_t begin, int64_t end, largo__exact *sum)
{
    const largo__pass *row = &work->family->pass[pass];
    float *state = row->row_slot < 0 ? NULL : unit->state[row->row_slot];
    for (int64_t i = begin; i < end; i++) {
        float *average = state ? &state[i] : NULL;
        work->row[i] = row->line(work->row_stat[i], (double)unit->cols, d, average);
        if (average) largo__exact_add(sum, (double)*average);
    }
}

/* Columns [begin, end), counted over the held matrices: super tiles in order. */
static void finish_cols(const largo__unit *unit, const largo__work *work, int pass,
                        const largo__d *d, int64_t begin, int64_t end)
{
    const largo__pass *row = &work->family->pass[pass];
    const int64_t tiles = largo__super_tiles(unit), cols = unit->cols;
    float *state = row->col_slot < 0 ? NULL : unit->state[row->col_slot];
    for (int64_t j = begin; j < end; j++) {
        double(*slots)[2] = work->col_stat + j / cols * tiles * cols + j % cols;
        double stat[2] = {slots[0][0], slots[0][1]};
        for (int64_t s = 1; s < tiles; s++)
            for (int t = 0; t < row->terms; t++)
                stat[t] = largo__joined(stat[t], slots[s * cols][t], row->op & LARGO__MAX);
        work->col[j] = row->line(stat, (double)unit->rows, d, state ? &state[j] : NULL);
    }
}

/* All lines of matrices [begin, end), which are here whole. */
static void finish_lines(const largo__unit *unit, const largo__work *work, int pass,
                         const largo__d *d, int64_t begin, int64_t end)
{
    for (int64_t matrix = begin; matrix < end; matrix++) {
        largo__exact sum;
        largo__exact_zero(&sum);
        finish_rows(unit, work, pass, d, matrix * unit->rows, (matrix + 1) * unit->rows, &sum);
        finish_cols(unit, work, pass, d, matrix * unit->cols, (matrix + 1) * unit->cols);
        work->mean[matrix] = largo__exact_round(&sum) / (double)unit->rows;
    }
}

/* Rows [begin, end), of one matrix or several; the averages of each are shared. */
static void share_rows(const largo__unit *unit, const largo__work *work, int pass,
                       const largo__d *d, int64_t begin, int64_t end)
{
    const largo__held held = largo__held_matrices(unit);
    largo__exact *sums = &work->rows[pass * (held.end - held.first)];
    while (begin < end) {
        const int64_t matrix = (unit->first_row + begin) / unit->rows;
        int64_t stop = (matrix + 1) * unit->rows - unit->first_row;
        if (stop > end) stop = end;
        largo__exact sum;
        largo__exact_zero(&sum);
        finish_rows(unit, work, pass, d, begin, stop, &sum);
        largo__exact_merge_atomic(&sums[matrix - held.first], &sum);
        begin = stop;
    }
}

static void do_matrix(const largo__run *run, const largo__item *item)
{
    const largo__unit *unit = &run->plan->unit[item->unit];
    const largo__work *work = &run->layout->work[item->unit];
    const largo__constants *c = constants_of(run, item->unit);
    largo__stats stats;
    largo__stats_clear(&stats);
    switch (item->kind) {
    case LARGO__ITEM_TILES:
        pass_tiles(run, unit, work, item->pass, c, item->begin, item->end, &stats);
        largo__stats_merge(work->stats, &stats, &work->family->pass[item->pass]);
        break;
    case LARGO__ITEM_LINES:
        finish_lines(unit, work, item->pass, &c->d, item->begin, item->end);
        break;
    case LARGO__ITEM_ROWS:
        share_rows(unit, work, item->pass, &c->d, item->begin, item->end);
        break;
    default:
        finish_cols(unit, work, item->pass, &c->d, item->begin, item->end);
    }
}

/* ---- small units ---- */

/* The first elements of a unit that is soon to come, and the description of a later one: a core does
 * not see past the two or three tiny ones that it works on. */
static void prefetch_unit(const largo__run *run, size_t u, size_t end, int writes)
{
    enum { AHEAD = LARGO__TOGETHER, FURTHER = 3 * LARGO__TOGETHER };
    const largo__unit *unit = &run->plan->unit[u + AHEAD < end ? u + AHEAD : u];
    __builtin_prefetch(&run->plan->unit[u + FURTHER < end ? u + FURTHER : u], 0, 3);
    __builtin_prefetch(unit->g, 0, 3);
    if (!writes) return;
    __builtin_prefetch(unit->p, 1, 3);
    __builtin_prefetch(unit->state[0], 1, 3);
    __builtin_prefetch(unit->state[1], 1, 3);
}

/* The only chunk of a unit is its sum: exact addition of one double gives it back, and NaN for what
 * it cannot hold. */
static void finish_chunk(const largo__pass *pass, const largo__span *span, const largo__unit *unit,
                         const largo__d *d, float seg[4])
{
    double *stat = span->sum;
    for (int t = 0; t < pass->terms; t++) {
        if (pass->op & LARGO__MAX)
            stat[t] = largo__magnitude(span->max[t]);
        else if (!isfinite(stat[t]))
            stat[t] = NAN;
    }
    largo__stats_finish(pass, stat, unit->n, d, seg, unit->report);
}

/* `n` units of one chunk each, of one family, with the same constants. */
static void one_chunk(const largo__run *run, const largo__unit unit[], int n,
                      const largo__family *family, const largo__d *d, largo__k *k, float *u)
{
    double stat[LARGO__TOGETHER][2];
    float seg[LARGO__TOGETHER][4];
    largo__span span[LARGO__TOGETHER];
    for (int j = 0; j < n; j++) {
        span[j] = span_at(&unit[j], 0, u + j * LARGO__TINY);
        span[j].n = unit[j].n;
        span[j].sum = stat[j];
    }
    int is_finished = 0;
    for (int i = 0; i < LARGO__MAX_PASSES && family->pass[i].reads; i++) {
        const largo__pass *pass = &family->pass[i];
        largo__span_kernel *kernel = run->kernels[pass->row].span;
        for (int j = 0; j < n; j++) {
            if (is_finished) memcpy(k->seg, seg[j], sizeof seg[j]);
            kernel(&span[j], k);
        }
        if (!pass->segment) continue;
        for (int j = 0; j < n; j++) finish_chunk(pass, &span[j], &unit[j], d, seg[j]);
        is_finished = 1;
    }
}

/* How many units from u on are tiny and of one kind. */
static int count_together(const largo__run *run, size_t u, size_t end)
{
    const largo__unit *unit = &run->plan->unit[u];
    const uint32_t *constants = &run->plan->constants_of[u];
    int n = 1;
    if (unit->n > LARGO__TINY) return 1;
    while (n < LARGO__TOGETHER && u + (size_t)n < end && unit[n].n <= LARGO__TINY &&
           unit[n].family == unit->family && constants[n] == *constants)
        n++;
    return n;
}

static void several_chunks(const largo__run *run, const largo__unit *unit,
                           const largo__family *family, const largo__d *d, largo__k *k, float *u)
{
    largo__stats stats;
    largo__stats_clear(&stats);
    for (int pass = 0; pass < largo__passes(family); pass++) {
        finish_segment(unit, family, pass, &stats, d, k, 1);
        pass_span(run, unit, &family->pass[pass], k, 0, unit->n, u, &stats);
    }
}

static void whole_matrix(const largo__run *run, const largo__unit *unit, const largo__constants *c,
                         const largo__scratch *scratch)
{
    largo__work work = scratch->lines;
    largo__stats stats;
    largo__stats_clear(&stats);
    work.family = unit->family;
    work.stats = &stats;
    const int64_t tiles = largo__super_tiles(unit) * unit->matrices;
    for (int pass = 0; pass < largo__passes(unit->family); pass++) {
        pass_tiles(run, unit, &work, pass, c, 0, tiles, &stats);
        if (unit->family->pass[pass].line)
            finish_lines(unit, &work, pass, &c->d, 0, unit->matrices);
    }
}

/* The direction is kept in the thread's memory, nearer than the gradient even where that may be
 * overwritten. */
static void do_whole(const largo__run *run, const largo__item *item, size_t thread)
{
    const largo__scratch *scratch = &run->layout->scratch[thread];
    const largo__constants *c = NULL;
    const size_t end = (size_t)item->end;
    largo__k k = {0};
    for (size_t u = (size_t)item->begin, n; u < end; u += n) {
        const largo__unit *unit = &run->plan->unit[u];
        const largo__family *family = unit->family->kept ? unit->family->kept : unit->family;
        if (c != constants_of(run, u)) {
            c = constants_of(run, u);
            k = c->k;
        }
        n = 1;
        if (unit->family->is_matrix) {
            whole_matrix(run, unit, c, scratch);
        } else if (unit->n > LARGO__CHUNK) {
            several_chunks(run, unit, family, &c->d, &k, scratch->u);
        } else {
            n = (size_t)count_together(run, u, end);
            for (size_t i = 0; i < n; i++) prefetch_unit(run, u + i, end, 1);
            one_chunk(run, unit, (int)n, family, &c->d, &k, scratch->u);
        }
    }
}

/* ---- the scan ---- */

/* What a thread has found since it last shared it, all of one place. */
typedef struct findings {
    largo__stats stats;
    largo__stats *place;
} findings;

static void share(const largo__run *run, findings *f)
{
    if (f->place) largo__stats_merge(f->place, &f->stats, run->plan->scan);
    largo__stats_clear(&f->stats);
}

/* Findings about a unit go to its place; those so far are shared first if that is another one. */
static void go_to(const largo__run *run, const largo__unit *unit, findings *f)
{
    largo__stats *place = &run->layout->found[unit->group][unit->placement == LARGO_REPLICATED];
    if (place == f->place) return;
    share(run, f);
    f->place = place;
}

/* A whole unit of one chunk. */
static void scan_chunk(largo__span_kernel *kernel, const largo__unit *unit, const largo__k *k,
                       findings *f)
{
    double sum[2];
    largo__span s = {0};
    s.g = unit->g;
    s.n = unit->n;
    s.sum = sum;
    kernel(&s, k);
    largo__exact_add(&f->stats.sum[0], sum[0]);
    if (s.max[0] > f->stats.max[0]) f->stats.max[0] = s.max[0];
}

/* Gradients are taken as given; they are scaled in double when all is summed. */
static const largo__k as_given = {.grad_scale = 1.0};

/* A thread's whole list. */
static void do_scans(const largo__run *run, const largo__item *item, size_t n)
{
    const largo__pass *scan = run->plan->scan;
    largo__span_kernel *kernel = run->kernels[scan->row].span;
    findings f;
    f.place = NULL;
    largo__stats_clear(&f.stats);
    for (size_t i = 0; i < n; i++) {
        const int is_part = item[i].kind == LARGO__ITEM_SCAN;
        const size_t first = item[i].unit, end = is_part ? first + 1 : (size_t)item[i].end;
        for (size_t u = first; u < end; u++) {
            const largo__unit *unit = &run->plan->unit[u];
            prefetch_unit(run, u, end, 0);
            go_to(run, unit, &f);
            if (!is_part && unit->placement != LARGO_SHARDED && unit->n <= LARGO__CHUNK)
                scan_chunk(kernel, unit, &as_given, &f);
            else
                sum_span(kernel, unit, scan, &as_given, is_part ? item[i].begin : 0,
                         is_part ? item[i].end : unit->n, NULL, &f.stats);
        }
    }
    share(run, &f);
}

/* As the passes will see it, rounded to float: 2^64 (1 - 2^-53) has reached 2^64. NaN is too large. */
static int too_large(const largo__group_scan *group, double magnitude_of_g)
{
    const float g = (float)(magnitude_of_g * (group->grad_scale * group->clip));
    return !((double)g < group->limit);
}

/* Is it a value for which the policy of its group gives the step this status? */
static int is_minded(const largo__run *run, const largo__group_scan *group, double magnitude)
{
    if (group->non_finite == LARGO_NON_FINITE_PROPAGATE) return 0;
    if (run->result->error && group->non_finite != LARGO_NON_FINITE_ERROR) return 0;
    return too_large(group, magnitude);
}

/* A norm that is not finite cannot be clipped, whatever the policy of the group that made it so. */
static int spoils_norm(const largo__run *run, const largo__group_scan *group, double magnitude)
{
    (void)run;
    (void)group;
    return !isfinite(magnitude);
}

typedef int matches_fn(const largo__run *run, const largo__group_scan *group, double magnitude);

/* The first element that matches, or n. A larger magnitude matches too, so the largest of a stretch
 * tells whether it holds one. */
static int64_t first_of_unit(const largo__run *run, const largo__unit *unit, matches_fn *matches)
{
    const largo__pass *scan = run->plan->scan;
    const largo__group_scan *group = &run->plan->group[unit->group];
    int64_t end;
    for (int64_t at = 0; at < unit->n; at = end) {
        largo__stats most;
        largo__stats_clear(&most);
        end = unit->n - at < BATCH * LARGO__CHUNK ? unit->n : at + BATCH * LARGO__CHUNK;
        sum_span(run->kernels[scan->row].span, unit, scan, &as_given, at, end, NULL, &most);
        if (!matches(run, group, largo__magnitude(most.max[0]))) continue;
        while (!matches(run, group, fabs((double)unit->g[at]))) at++;
        return at;
    }
    return unit->n;
}

static int find_first(largo__run *run, matches_fn *matches)
{
    for (size_t u = 0; u < run->plan->units; u++) {
        const largo__unit *unit = &run->plan->unit[u];
        const int64_t i = first_of_unit(run, unit, matches);
        if (i == unit->n) continue;
        run->result->bad_unit = u;
        run->result->bad_element = i;
        run->result->bad_value = unit->g[i];
        return 1;
    }
    return 0;
}

/* The value to tell of. Only ever runs when there is one, here or on another rank. */
LARGO_COLD static void find_bad(largo__run *run)
{
    if (!find_first(run, is_minded) && !find_first(run, spoils_norm))
        run->result->bad_unit = LARGO__NO_UNIT;
}

/* Norm over all groups, and the factor that brings it under each group's bound. */
static void find_clip(largo__run *run)
{
    largo__plan *plan = run->plan;
    double squares = 0.0;
    for (size_t g = 0; g < plan->groups; g++) {
        const double scale = plan->group[g].grad_scale;
        largo__stats *found = run->layout->found[g];
        largo__stats_merge(&found[0], &found[1], plan->scan); /* each counts once */
        squares += scale * scale * largo__exact_round(&found[0].sum[0]);
    }
    const double norm = run->result->grad_norm = sqrt(squares);
    for (size_t g = 0; g < plan->groups; g++) {
        largo__group_scan *group = &plan->group[g];
        group->clip = norm > group->max_grad_norm ? group->max_grad_norm / norm : 1.0;
    }
}

/* One thread: what is the norm, how much must be clipped, is there a step? */
static void do_decide(largo__run *run)
{
    largo__plan *plan = run->plan;
    find_clip(run);
    for (size_t g = 0; g < plan->groups; g++) {
        const largo__group_scan *group = &plan->group[g];
        if (group->non_finite == LARGO_NON_FINITE_PROPAGATE) continue;
        const int clips_by_nothing =
            group->max_grad_norm < INFINITY && !isfinite(run->result->grad_norm);
        if (!clips_by_nothing &&
            !too_large(group, largo__magnitude(run->layout->found[g][0].max[0])))
            continue;
        run->result->bad = run->stop = 1;
        run->result->error |= group->non_finite == LARGO_NON_FINITE_ERROR;
    }
    if (run->stop) {
        find_bad(run);
        return;
    }
    for (size_t i = 0; i < plan->n_constants; i++)
        plan->constants[i].k.grad_scale *= plan->group[plan->constants[i].group].clip;
}

void largo__work_list(largo__run *run, size_t phase, size_t thread)
{
    const largo__layout *layout = run->layout;
    const size_t list = phase * layout->threads + thread;
    const size_t begin = layout->first[list], end = layout->first[list + 1];
    if (begin < end && layout->item[begin].kind <= LARGO__ITEM_SCAN_UNITS) {
        do_scans(run, &layout->item[begin], end - begin);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        const largo__item *item = &layout->item[i];
        switch (item->kind) {
        case LARGO__ITEM_DECIDE:
            do_decide(run);
            break;
        case LARGO__ITEM_WHOLE:
            do_whole(run, item, thread);
            break;
        case LARGO__ITEM_SPAN:
            do_span(run, item);
            break;
        default:
            do_matrix(run, item);
        }
    }
}
