/* work.c - what a thread does for each item: calls kernels, adds their statistics exactly, and makes
 * of them what the next pass needs.
 *
 * No thread waits for another inside a phase. Sums meet by integer atomics, so their order is free;
 * whoever needs a finished statistic in the next phase rounds it itself, all to the same bits.
 */
#include <math.h>
#include <string.h>
#include "items.h"

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
void largo__sum_span(largo__span_kernel *kernel, const largo__unit *unit, const largo__pass *pass,
                     const largo__k *k, int64_t begin, int64_t end, float *u, largo__stats *stats)
{
    double sums[LARGO__BATCH][2];
    for (int64_t at = begin, n; at < end; at += n) {
        const int64_t skew = (unit->lead + at) % LARGO__CHUNK;
        const int64_t most = skew ? LARGO__CHUNK - skew : LARGO__BATCH * LARGO__CHUNK;
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
        largo__sum_span(kernel, unit, pass, k, begin, end, u, stats);
}

void largo__finish_segment(const largo__unit *unit, const largo__family *family, int pass,
                           const largo__stats *stats, const largo__d *d, largo__k *k, int first)
{
    const largo__pass *p = largo__segment_pass(family, pass);
    if (!p) return;
    double stat[2];
    largo__stats_round(p, stats, stat);
    const int tells = first && !unit->shared;
    largo__stats_finish(p, stat, unit->count, d, k->seg, tells ? unit->report : NULL);
}

static void do_span(const largo__run *run, const largo__item *item)
{
    const largo__unit *unit = &run->plan->unit[item->unit];
    const largo__work *work = &run->layout->work[item->unit];
    const largo__constants *c = largo__constants_of(run, item->unit);
    if (item->pass >= largo__passes(work->family)) return;
    const largo__pass *pass = &work->family->pass[item->pass];
    largo__k k = c->k;
    if (work->stats)
        largo__finish_segment(unit, work->family, item->pass, work->stats, &c->d, &k,
                              item->begin == 0);
    float *u = unit->grad_scratch ? unit->g + item->begin : item->u;
    largo__stats stats;
    if (pass->op) largo__stats_clear(&stats);
    pass_span(run, unit, pass, &k, item->begin, item->end, u, &stats);
    if (pass->op) largo__stats_merge(work->stats, &stats, pass);
}

/* ---- small units ---- */

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
        largo__finish_segment(unit, family, pass, &stats, d, k, 1);
        pass_span(run, unit, &family->pass[pass], k, 0, unit->n, u, &stats);
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
        if (c != largo__constants_of(run, u)) {
            c = largo__constants_of(run, u);
            k = c->k;
        }
        n = 1;
        if (unit->family->is_matrix) {
            largo__whole_matrix(run, unit, c, scratch);
        } else if (unit->n > LARGO__CHUNK) {
            several_chunks(run, unit, family, &c->d, &k, scratch->u);
        } else {
            n = (size_t)count_together(run, u, end);
            for (size_t i = 0; i < n; i++) largo__prefetch_unit(run, u + i, end, 1);
            one_chunk(run, unit, (int)n, family, &c->d, &k, scratch->u);
        }
    }
}

void largo__work_list(largo__run *run, size_t phase, size_t thread)
{
    const largo__layout *layout = run->layout;
    const size_t list = phase * layout->threads + thread;
    const size_t begin = layout->first[list], end = layout->first[list + 1];
    if (begin < end && layout->item[begin].kind <= LARGO__ITEM_SCAN_UNITS) {
        largo__do_scans(run, &layout->item[begin], end - begin);
        return;
    }
    for (size_t i = begin; i < end; i++) {
        const largo__item *item = &layout->item[i];
        switch (item->kind) {
        case LARGO__ITEM_DECIDE:
            largo__do_decide(run);
            break;
        case LARGO__ITEM_WHOLE:
            do_whole(run, item, thread);
            break;
        case LARGO__ITEM_SPAN:
            do_span(run, item);
            break;
        default:
            largo__do_matrix(run, item);
        }
    }
}
