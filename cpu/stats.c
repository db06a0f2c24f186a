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

/* ---- across ranks ---- */

/* The pass whose statistics of the segment are reduced. */
static const largo__pass *reduced_pass(const largo__plan *plan, size_t shared)
{
    return largo__segment_pass(plan->shared[shared].family, LARGO__MAX_PASSES);
}

static int op_of(int stop)
{
    return stop == LARGO__STOP_FOUND_SUM || stop == LARGO__STOP_SHARED_SUM ? LARGO__SUMSQ
                                                                           : LARGO__MAX;
}

static int is_found(int stop)
{
    return stop == LARGO__STOP_FOUND_SUM || stop == LARGO__STOP_FOUND_MAX;
}

/* Visit each statistic that a stop reduces, in the same order on every rank. */
typedef void visit_fn(largo__stats *stats, int term, void *wire, size_t place);

static size_t visit(const largo__plan *plan, const largo__layout *layout, int stop, visit_fn *body)
{
    size_t n = 0;
    for (size_t g = 0; is_found(stop) && g < plan->groups; g++, n++)
        if (body) body(&layout->found[g][0], 0, layout->wire, n);
    for (size_t i = 0; !is_found(stop) && i < plan->n_shared; i++) {
        const largo__pass *p = reduced_pass(plan, i);
        for (int t = 0; p->op & op_of(stop) && t < p->terms; t++, n++)
            if (body) body(&layout->shared[i], t, layout->wire, n);
    }
    return n;
}

/* Carried out before they leave: a limb of 32 bits leaves room for 2^31 ranks. */
static void pack_sum(largo__stats *stats, int term, void *wire, size_t place)
{
    largo__exact_normalise(&stats->sum[term]);
    ((largo__exact *)wire)[place] = stats->sum[term];
}

static void take_sum(largo__stats *stats, int term, void *wire, size_t place)
{
    stats->sum[term] = ((const largo__exact *)wire)[place];
}

static void pack_max(largo__stats *stats, int term, void *wire, size_t place)
{
    ((uint32_t *)wire)[place] = stats->max[term];
}

static void take_max(largo__stats *stats, int term, void *wire, size_t place)
{
    stats->max[term] = ((const uint32_t *)wire)[place];
}

int largo__next_stop(const largo__plan *plan, int from)
{
    for (int stop = from; stop < LARGO__STOPS; stop++) {
        if (is_found(stop) && !(plan->scan && plan->joint)) continue;
        if (visit(plan, NULL, stop, NULL)) return stop;
    }
    return LARGO__STOPS;
}

size_t largo__stop_phase(const largo__layout *layout, int stop)
{
    if (stop == LARGO__STOPS) return layout->phases;
    return is_found(stop) ? layout->decide_phase : layout->shared_phase + 1;
}

void largo__stop_pack(const largo__plan *plan, largo__layout *layout, int stop,
                      largo_reduction *next)
{
    const int is_sum = op_of(stop) == LARGO__SUMSQ;
    const size_t n = visit(plan, layout, stop, is_sum ? pack_sum : pack_max);
    next->values = layout->wire;
    next->n = is_sum ? n * LARGO__EXACT_WORDS : n;
    next->dtype = is_sum ? LARGO_I64 : LARGO_U32;
    next->op = is_sum ? LARGO_SUM : LARGO_MAX;
}

void largo__stop_take(const largo__plan *plan, largo__layout *layout, int stop)
{
    (void)visit(plan, layout, stop, op_of(stop) == LARGO__SUMSQ ? take_sum : take_max);
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
