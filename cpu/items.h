/* items.h - what carries out the items of a layout: work.c, matrix.c and scan.c among themselves. */
#ifndef LARGO_CPU_ITEMS_H
#define LARGO_CPU_ITEMS_H

#include "stats.h"
#include "work.h"

/* Statistics of chunks that a kernel hands over at once. */
enum { LARGO__BATCH = 64 };

static inline const largo__constants *largo__constants_of(const largo__run *run, size_t unit)
{
    return &run->plan->constants[run->plan->constants_of[unit]];
}

/* The first elements of a unit that is soon to come, and the description of a later one: a core does
 * not see past the two or three tiny ones that it works on. */
static inline void largo__prefetch_unit(const largo__run *run, size_t u, size_t end, int writes)
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

/* A pass with statistics over elements [begin, end) of a flat unit; u is the direction of element
 * `begin`. Statistics are added. */
void largo__sum_span(largo__span_kernel *kernel, const largo__unit *unit, const largo__pass *pass,
                     const largo__k *k, int64_t begin, int64_t end, float *u, largo__stats *stats);

/* What the statistics of the segment left for `pass`: seg. `first`: the caller has the first element
 * of the unit in this pass, and tells them if that is wanted. */
void largo__finish_segment(const largo__unit *unit, const largo__family *family, int pass,
                           const largo__stats *stats, const largo__d *d, largo__k *k, int first);

/* Items of matrices, and a small unit of them whole. */
void largo__do_matrix(const largo__run *run, const largo__item *item);
void largo__whole_matrix(const largo__run *run, const largo__unit *unit, const largo__constants *c,
                         const largo__scratch *scratch);

/* A thread's scans, n items in a row; and for one thread, the decision. */
void largo__do_scans(const largo__run *run, const largo__item *item, size_t n);
void largo__do_decide(largo__run *run);

#endif
