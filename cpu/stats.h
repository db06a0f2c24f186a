/* stats.h - statistics of segments: merged between threads, reduced across ranks, finished. */
#ifndef LARGO_CPU_STATS_H
#define LARGO_CPU_STATS_H

#include "layout.h"

void largo__stats_clear(largo__stats *stats);

/* Add a thread's part, for the terms of a pass; any thread at any time. */
void largo__exact_merge_atomic(largo__exact *into, const largo__exact *part);
void largo__stats_merge(largo__stats *into, const largo__stats *part, const largo__pass *pass);

/* What the hook of pass `p` makes of the statistics, for seg; *report is told, if it is not NULL. */
void largo__stats_finish(const largo__pass *p, const double stat[2], int64_t count,
                         const largo__d *d, float *seg, largo_param_stats *report);

/* Sums rounded, or maxima, of the terms of a pass. */
void largo__stats_round(const largo__pass *p, const largo__stats *stats, double stat[2]);

/* ---- across ranks ---- */

/* What there is to reduce at each stop. */
void largo__stops_count(const largo__plan *plan, largo__stop_plan stops[LARGO__STOPS]);

/* What the largest of a layout's reductions takes, in words of 8 bytes. */
size_t largo__wire_words(const largo__layout *layout);

/* The first stop from `from` on where this step has something to reduce; LARGO__STOPS: none. */
int largo__next_stop(const largo__plan *plan, const largo__layout *layout, int from);

/* The phase that may begin once it is reduced. */
size_t largo__stop_phase(const largo__layout *layout, int stop);

/* What is to be reduced at a stop, in layout->wire; and the reduced values taken back. */
void largo__stop_pack(const largo__plan *plan, largo__layout *layout, int stop,
                      largo_reduction *next);
void largo__stop_take(const largo__plan *plan, largo__layout *layout, int stop);

/* Tell the statistics of segments in parts, also where no element of them is here. */
void largo__report_shared(const largo__plan *plan, const largo__layout *layout);

#endif
