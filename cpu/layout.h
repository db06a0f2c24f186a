/* layout.h - how the CPU backend spreads a plan over threads and time.
 *
 * A step is a row of phases; in each, every thread has a list of items and no item depends on
 * another one of its phase. Lists depend on shapes and on the number of threads, results do not.
 *
 *   small units   one thread makes all passes, without a barrier, the direction kept in its cache
 *   large units   of one pass: streamed. Of several: in waves, of which the later passes find the
 *                 direction in the last-level cache; larger than that, it is made again
 *   matrices      tiles, then rows and columns, pass by pass
 *   shared        units whose statistics cross ranks: the first pass of all of them before anything
 *                 else is written, the second after the reduction
 *
 * The thread that had an element in one pass has it in the next.
 */
#ifndef LARGO_CPU_LAYOUT_H
#define LARGO_CPU_LAYOUT_H

#include "kernels.h"
#include "../core/context.h"
#include "../core/exact.h"

enum {
    LARGO__SMALL = 32768, /* elements of a unit that one thread takes whole */
    LARGO__TINY = 512,    /* of one that is stepped pass by pass together with its neighbours, */
    LARGO__TOGETHER = 8   /* so many of them: their chains of dependent operations overlap */
};

typedef enum largo__item_kind {
    LARGO__ITEM_SCAN,       /* elements [begin, end) */
    LARGO__ITEM_SCAN_UNITS, /* all elements of units [begin, end) */
    LARGO__ITEM_DECIDE,
    LARGO__ITEM_WHOLE, /* all passes of small units [begin, end) */
    LARGO__ITEM_SPAN,  /* elements [begin, end) of one pass */
    LARGO__ITEM_TILES, /* super tiles [begin, end) of one pass */
    LARGO__ITEM_LINES, /* rows and columns of matrices [begin, end), after a pass */
    LARGO__ITEM_ROWS,  /* rows [begin, end) of the only matrix */
    LARGO__ITEM_COLS
} largo__item_kind;

typedef struct largo__item {
    largo__item_kind kind;
    int pass;
    size_t unit;
    int64_t begin, end;
    float *u; /* SPAN of a kept family: the direction of element `begin` */
} largo__item;

/* Statistics of a segment, one for each term: sums or maxima, as its pass asks. */
typedef struct largo__stats {
    largo__exact sum[2];
    uint32_t max[2];
} largo__stats;

/* What a unit needs beyond its tensors. For small units memory comes from the thread. */
typedef struct largo__work {
    const largo__family *family; /* the unit's, or its kept twin */
    float *row, *col;            /* factors */
    double (*row_stat)[2];       /* [rows of all matrices] */
    double (*col_stat)[2];       /* [super tiles][cols] */
    double *mean;                /* [matrices], where there are several: of the averaged rows */
    largo__stats *stats;         /* of the segment */
    largo__exact *rows;          /* [passes], where there is one matrix: sum of the averaged rows */
} largo__work;

/* Memory of one thread. */
typedef struct largo__scratch {
    float *u;
    largo__work lines; /* row, col, row_stat, col_stat, mean */
} largo__scratch;

/* After which phase something is reduced across ranks, and what. */
typedef enum largo__stop_kind {
    LARGO__STOP_FOUND_SUM, /* of the scan: sums, then maxima */
    LARGO__STOP_FOUND_MAX,
    LARGO__STOP_SHARED_SUM, /* of shared units */
    LARGO__STOP_SHARED_MAX,
    LARGO__STOPS
} largo__stop_kind;

typedef struct largo__layout {
    size_t threads, phases, items;
    largo__item *item;
    size_t *first;            /* [phases * threads + 1]: of the list of (phase, thread) */
    largo__work *work;        /* [units] */
    largo__scratch *scratch;  /* [threads] */
    largo__stats (*found)[2]; /* [groups], for the scan: of replicated units the second */
    largo__stats *shared;     /* [plan.n_shared] */
    void *accumulators;       /* found, shared, and every sum and rows: zeroed before a step */
    size_t accumulator_bytes;
    void *wire;                       /* what is reduced, as the host sees it */
    size_t decide_phase, scan_phases; /* a step without a scan begins at phase scan_phases */
    size_t shared_phase;              /* that of the first pass of shared units, if there are any */
    size_t phase;                     /* the next one of the step under way */
    int stop;                         /* the stop where it waits */
    void *block;
    size_t bytes;
} largo__layout;

int64_t largo__super_tiles(const largo__unit *unit); /* of one matrix */

/* NULL: no memory for *bytes. `cache` is what the last-level cache holds, in bytes. */
largo__layout *largo__layout_make(largo_ctx *ctx, const largo__plan *plan, size_t threads,
                                  size_t cache, size_t *bytes);
void largo__layout_free(largo_ctx *ctx, largo__layout *layout);

#endif
