/* matrix.c - matrices: tiles, then rows and columns; see items.h. */
#include "items.h"

/* seg of one matrix: the segment's, and what the last averaged rows made of it. */
static void finish_matrix(const largo__unit *unit, const largo__work *work, int pass,
                          int64_t matrix, const largo__d *d, largo__k *k, int first)
{
    largo__finish_segment(unit, work->family, pass, work->stats, d, k, first);
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
    const int64_t per_matrix = largo__super_tiles(unit->rows), matrix = i / per_matrix;
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
    const int64_t per_matrix = largo__super_tiles(unit->rows);
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
    const int64_t tiles = largo__super_tiles(unit->rows), cols = unit->cols;
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

void largo__do_matrix(const largo__run *run, const largo__item *item)
{
    const largo__unit *unit = &run->plan->unit[item->unit];
    const largo__work *work = &run->layout->work[item->unit];
    const largo__constants *c = largo__constants_of(run, item->unit);
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

/* A small matrix, or several: all passes, lines in the thread's memory. */
void largo__whole_matrix(const largo__run *run, const largo__unit *unit, const largo__constants *c,
                         const largo__scratch *scratch)
{
    largo__work work = scratch->lines;
    largo__stats stats;
    largo__stats_clear(&stats);
    work.family = unit->family;
    work.stats = &stats;
    const int64_t tiles = largo__super_tiles(unit->rows) * unit->matrices;
    for (int pass = 0; pass < largo__passes(unit->family); pass++) {
        pass_tiles(run, unit, &work, pass, c, 0, tiles, &stats);
        if (unit->family->pass[pass].line)
            finish_lines(unit, &work, pass, &c->d, 0, unit->matrices);
    }
}
