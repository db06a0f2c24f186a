/* stats.c - see stats.h. Sums cross threads and ranks as integers, so their order is free. */
#include <math.h>
#include <string.h>
#include "stats.h"

void largo__stats_clear(largo__stats *stats)
{
    memset(stats, 0, sizeof *stats);
}

void largo__exact_merge_atomic(largo__exact *into, const largo__exact *part)
{
    for (int i = 0; i < LARGO__EXACT_WORDS; i++)
        if (part->limb[i])
            (void)__atomic_fetch_add(&into->limb[i], part->limb[i], __ATOMIC_RELAXED);
}

static void raise_to(uint32_t *max, uint32_t value)
{
    uint32_t seen = __atomic_load_n(max, __ATOMIC_RELAXED);
    while (seen < value &&
           !__atomic_compare_exchange_n(max, &seen, value, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

void largo__stats_merge(largo__stats *into, const largo__stats *part, const largo__pass *pass)
{
    for (int t = 0; t < pass->terms; t++) {
        if (pass->op & LARGO__SUMSQ) largo__exact_merge_atomic(&into->sum[t], &part->sum[t]);
        if (pass->op & LARGO__MAX) raise_to(&into->max[t], part->max[t]);
    }
}

void largo__stats_round(const largo__pass *p, const largo__stats *stats, double stat[2])
{
    stat[0] = stat[1] = 0.0;
    for (int t = 0; t < p->terms; t++)
        stat[t] = p->op & LARGO__MAX ? largo__magnitude(stats->max[t])
                                     : largo__exact_round(&stats->sum[t]);
}

static double norm_of(const largo__pass *p, double stat)
{
    return p->op & LARGO__MAX ? stat : sqrt(stat);
}

void largo__stats_finish(const largo__pass *p, const double stat[2], int64_t count,
                         const largo__d *d, float *seg, largo_param_stats *report)
{
    const double ratio = p->segment(stat, (double)count, d, seg);
    if (!report) return;
    report->weight_norm = p->terms > 1 ? norm_of(p, stat[0]) : NAN;
    report->update_norm = norm_of(p, stat[p->terms - 1]);
    report->trust_ratio = ratio;
    report->reserved = 0.0;
}

/* ---- across ranks ----
 *
 * Every rank has the same list of shared segments, and so the same values at each stop, in the same
 * order. What a rank has no part of it sends as zero. */

typedef struct stop {
    int is_found, pass, kind, op;
} stop;

static stop stop_of(int number)
{
    stop s = {number < LARGO__STOP_PASSES, 0, 0, 0};
    if (s.is_found) {
        s.op = number == LARGO__STOP_FOUND_SUM ? LARGO__SUMSQ : LARGO__MAX;
        return s;
    }
    s.pass = (number - LARGO__STOP_PASSES) / LARGO__STOP_KINDS;
    s.kind = (number - LARGO__STOP_PASSES) % LARGO__STOP_KINDS;
    s.op = s.kind == LARGO__STOP_MAX || s.kind == LARGO__STOP_COL_MAX ? LARGO__MAX : LARGO__SUMSQ;
    return s;
}

/* How many values of 8 or 4 bytes, or sums of LARGO__EXACT_WORDS, a segment has at a stop. */
static size_t values_of(const largo__shared *shared, const stop *s)
{
    const largo__pass *p = &shared->family->pass[s->pass];
    if (s->pass >= largo__passes(shared->family)) return 0;
    if (s->kind == LARGO__STOP_ROWS) return p->matrix ? (size_t)shared->matrices : 0;
    if (!(p->op & s->op)) return 0;
    if (s->kind == LARGO__STOP_SUM || s->kind == LARGO__STOP_MAX)
        return p->segment ? (size_t)p->terms : 0;
    if (p->scope != LARGO__ROW_COL) return 0;
    const size_t cols = (size_t)(shared->matrices * shared->cols * p->terms);
    return s->kind == LARGO__STOP_COL_MAX ? cols : cols * (size_t)largo__super_tiles(shared->rows);
}

/* Has pass `pass` of a family written when its step waits there? */
static int has_written(const largo__family *family, int pass, const stop *s)
{
    const largo__pass *p = &family->pass[pass];
    const int has_lines = pass < s->pass || s->kind == LARGO__STOP_ROWS;
    return p->writes || (has_lines && p->line && p->row_slot >= 0);
}

void largo__stops_count(const largo__plan *plan, largo__stop_plan stops[LARGO__STOPS])
{
    for (int number = 0; number < LARGO__STOPS; number++) {
        const stop s = stop_of(number);
        largo__stop_plan at = {s.is_found ? plan->groups : 0, 0};
        for (size_t i = 0; !s.is_found && i < plan->n_shared; i++) {
            at.values += values_of(&plan->shared[i], &s);
            for (int pass = 0; pass <= s.pass; pass++)
                at.is_written |= has_written(plan->shared[i].family, pass, &s);
        }
        stops[number] = at;
    }
}

static int is_exact(const stop *s)
{
    return s->is_found ? s->op == LARGO__SUMSQ
                       : s->kind == LARGO__STOP_SUM || s->kind == LARGO__STOP_ROWS;
}

static size_t value_bytes(const stop *s)
{
    if (is_exact(s)) return sizeof(largo__exact);
    return s->op == LARGO__MAX ? sizeof(uint32_t) : sizeof(double);
}

size_t largo__wire_words(const largo__layout *layout)
{
    size_t most = 0;
    for (int number = 0; number < LARGO__STOPS; number++) {
        const stop s = stop_of(number);
        const size_t bytes = largo__size(layout->stop_plan[number].values, value_bytes(&s), 0);
        if (bytes > most) most = bytes;
    }
    return most / 8 + (most % 8 != 0);
}

/* Carried out before they leave: a limb of 32 bits leaves room for 2^31 ranks. */
static void pack_exact(largo__exact *sum, largo__exact *wire)
{
    largo__exact_normalise(sum);
    *wire = *sum;
}

/* Statistics of a segment, or what a scan found. */
static void pack_stats(largo__stats *stats, int terms, const stop *s, void *wire)
{
    for (int t = 0; t < terms; t++)
        if (s->op == LARGO__MAX)
            ((uint32_t *)wire)[t] = stats->max[t];
        else
            pack_exact(&stats->sum[t], (largo__exact *)wire + t);
}

static void take_stats(largo__stats *stats, int terms, const stop *s, const void *wire)
{
    for (int t = 0; t < terms; t++)
        if (s->op == LARGO__MAX)
            stats->max[t] = ((const uint32_t *)wire)[t];
        else
            stats->sum[t] = ((const largo__exact *)wire)[t];
}

/* A unit of this rank that has a part of shared matrices. */
typedef struct lines {
    const largo__unit *unit;
    const largo__work *work;
    const largo__pass *p;
    largo__held matrices, tiles;
    int pass;
} lines;

/* One statistic of a column in a super tile, and its value in the wire. */
typedef void move_fn(double *stat, void *wire, int64_t place);

LARGO_FN void pack_slot(double *stat, void *wire, int64_t place)
{
    ((double *)wire)[place] = *stat;
}

LARGO_FN void take_slot(double *stat, void *wire, int64_t place)
{
    *stat = ((const double *)wire)[place];
}

/* The largest over the super tiles of its matrix that are here. */
LARGO_FN void pack_maximum(double *stat, void *wire, int64_t place)
{
    uint32_t *max = (uint32_t *)wire + place;
    const uint32_t bits = largo__magnitude_bits((float)*stat);
    if (bits > *max) *max = bits;
}

/* Each super tile of a column gets that of the whole: joining them is the same. */
LARGO_FN void take_maximum(double *stat, void *wire, int64_t place)
{
    *stat = largo__magnitude(((const uint32_t *)wire)[place]);
}

/* Columns of super tiles [tiles.first, tiles.end). The wire has values for each super tile, or for
 * `per` of them, a matrix, together. */
LARGO_FN void move_cols(const lines *l, largo__held tiles, int64_t per, void *wire, move_fn *move)
{
    const int64_t cols = l->unit->cols, terms = l->p->terms;
    const int64_t first = l->matrices.first * largo__super_tiles(l->unit->rows);
    for (int64_t i = tiles.first; i < tiles.end; i++)
        for (int64_t j = 0; j < cols; j++)
            for (int64_t t = 0; t < terms; t++)
                move(&l->work->col_stat[(i - first) * cols + j][t], wire,
                     (i / per * cols + j) * terms + t);
}

/* A rank sends what it has rows of, and takes what its matrices need. */
static void exchange_cols(const lines *l, const stop *s, void *wire, int packs)
{
    const int64_t per = largo__super_tiles(l->unit->rows);
    const largo__held all = {l->matrices.first * per, l->matrices.end * per};
    if (s->op == LARGO__MAX && packs)
        move_cols(l, l->tiles, per, wire, pack_maximum);
    else if (s->op == LARGO__MAX)
        move_cols(l, all, per, wire, take_maximum);
    else if (packs)
        move_cols(l, l->tiles, 1, wire, pack_slot);
    else
        move_cols(l, all, 1, wire, take_slot);
}

static largo__exact *rows_of(const lines *l)
{
    return &l->work->rows[l->pass * (l->matrices.end - l->matrices.first)];
}

static void exchange_rows(const lines *l, largo__exact *wire, int packs)
{
    for (int64_t m = l->matrices.first; m < l->matrices.end; m++) {
        largo__exact *sum = &rows_of(l)[m - l->matrices.first];
        if (packs)
            pack_exact(sum, &wire[m]);
        else
            *sum = wire[m];
    }
}

/* Put what is reduced at a stop into the wire, or take it from there. */
static void exchange(const largo__plan *plan, largo__layout *layout, const stop *s, int packs)
{
    char *wire = layout->wire;
    for (size_t g = 0; s->is_found && g < plan->groups; g++, wire += value_bytes(s)) {
        largo__stats *found = &layout->found[g][0];
        packs ? pack_stats(found, 1, s, wire) : take_stats(found, 1, s, wire);
    }
    for (size_t i = 0; !s->is_found && i < plan->n_shared; i++) {
        const largo__shared *shared = &plan->shared[i];
        const largo__pass *p = &shared->family->pass[s->pass];
        const size_t n = values_of(shared, s);
        if (n && (s->kind == LARGO__STOP_SUM || s->kind == LARGO__STOP_MAX)) {
            largo__stats *stats = &layout->shared[i];
            packs ? pack_stats(stats, p->terms, s, wire) : take_stats(stats, p->terms, s, wire);
        } else if (n && shared->unit != LARGO__NO_UNIT) {
            const largo__unit *unit = &plan->unit[shared->unit];
            const lines l = {unit,
                             &layout->work[shared->unit],
                             p,
                             largo__held_matrices(unit),
                             largo__held_tiles(unit),
                             s->pass};
            if (s->kind == LARGO__STOP_ROWS)
                exchange_rows(&l, (largo__exact *)wire, packs);
            else
                exchange_cols(&l, s, wire, packs);
        }
        wire += n * value_bytes(s);
    }
}

int largo__next_stop(const largo__plan *plan, const largo__layout *layout, int from)
{
    int number = from;
    if (number < LARGO__STOP_PASSES && !(plan->scan && plan->joint)) number = LARGO__STOP_PASSES;
    while (number < LARGO__STOPS && !layout->stop_plan[number].values) number++;
    return number;
}

size_t largo__stop_phase(const largo__layout *layout, int number)
{
    if (number == LARGO__STOPS) return layout->phases;
    const stop s = stop_of(number);
    if (s.is_found) return layout->decide_phase;
    return layout->shared_phase + 2 * (size_t)s.pass + (s.kind == LARGO__STOP_ROWS ? 2 : 1);
}

void largo__stop_pack(const largo__plan *plan, largo__layout *layout, int number,
                      largo_reduction *next)
{
    const stop s = stop_of(number);
    const size_t n = layout->stop_plan[number].values;
    memset(layout->wire, 0, n * value_bytes(&s));
    exchange(plan, layout, &s, 1);
    next->values = layout->wire;
    next->n = is_exact(&s) ? n * LARGO__EXACT_WORDS : n;
    next->dtype = is_exact(&s) ? LARGO_I64 : s.op == LARGO__MAX ? LARGO_U32 : LARGO_F64;
    next->op = s.op == LARGO__MAX ? LARGO_MAX : LARGO_SUM;
}

void largo__stop_take(const largo__plan *plan, largo__layout *layout, int number)
{
    const stop s = stop_of(number);
    exchange(plan, layout, &s, 0);
}

/* The pass whose statistics of the segment are told. */
static const largo__pass *reduced_pass(const largo__plan *plan, size_t shared)
{
    return largo__segment_pass(plan->shared[shared].family, LARGO__MAX_PASSES);
}

void largo__report_shared(const largo__plan *plan, const largo__layout *layout)
{
    for (size_t i = 0; i < plan->n_shared; i++) {
        const largo__shared *shared = &plan->shared[i];
        if (!shared->report) continue;
        const largo__pass *p = reduced_pass(plan, i);
        double stat[2];
        float seg[4];
        largo__stats_round(p, &layout->shared[i], stat);
        largo__stats_finish(p, stat, shared->count, &plan->constants[shared->constants].d, seg,
                            shared->report);
    }
}
