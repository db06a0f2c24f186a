/* layout.h - how the CPU backend spreads a plan over threads and time.
 *
 * A step is a row of phases; in each, every thread has a list of items and no item depends on
 * another one of its phase. Lists depend on shapes and on the number of threads, results do not.
 *
 *   small units   one thread makes all passes, without a barrier, the direction kept in its cache
 *   large units   of one pass: streamed. Of several: in waves, of which the later passes find the
 *                 direction in the last-level cache; larger than that, it is made again
 *   matrices      tiles, then rows and columns, pass by pass
 *   shared        units whose statistics cross ranks: pass by pass, before anything else is written,
 *                 with a reduction after what the next pass needs
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
    double (*row_stat)[2];       /* [rows that are here] */
    double (*col_stat)[2];       /* [super tiles of all matrices that have a row here][cols] */
    double *mean;                /* [matrices], where `rows` is NULL: of the averaged rows */
    largo__stats *stats;         /* of the segment */
    largo__exact *rows; /* [passes][held matrices]: sum of the averaged rows; where there is one
                                    matrix, or the unit is shared */
} largo__work;

/* Memory of one thread. */
typedef struct largo__scratch {
    float *u;
    largo__work lines; /* row, col, row_stat, col_stat, mean */
} largo__scratch;

/* Where something is reduced across ranks: after the scan, and of shared units after each pass. A stop
 * is FOUND_SUM, FOUND_MAX, or PASSES + kinds of the passes before + kind. */
enum { LARGO__STOP_FOUND_SUM, LARGO__STOP_FOUND_MAX, LARGO__STOP_PASSES };
typedef enum largo__stop_kind {
    LARGO__STOP_SUM, /* of segments */
    LARGO__STOP_MAX,
    LARGO__STOP_COL_SUM, /* of columns: slots, one for each super tile */
    LARGO__STOP_COL_MAX,
    LARGO__STOP_ROWS, /* sums of averaged rows, after the lines */
    LARGO__STOP_KINDS
} largo__stop_kind;
enum { LARGO__STOPS = LARGO__STOP_PASSES + LARGO__MAX_PASSES * LARGO__STOP_KINDS };

/* What every step of a plan finds at a stop. */
typedef struct largo__stop_plan {
    size_t values;  /* to reduce: numbers, or sums of LARGO__EXACT_WORDS of them */
    int is_written; /* something of a shared segment, before that */
} largo__stop_plan;

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
    void *wire; /* what is reduced, as the host sees it */
    largo__stop_plan stop_plan[LARGO__STOPS];
    size_t decide_phase, scan_phases; /* a step without a scan begins at phase scan_phases */
    size_t shared_phase;              /* of shared units: two for each pass, one for their lines */
    size_t phase;                     /* the next one of the step under way */
    int stop;                         /* the stop where it waits */
    void *block;
    size_t bytes;
} largo__layout;

/* Of a matrix with so many rows. */
static inline int64_t largo__super_tiles(int64_t rows)
{
    return (rows + LARGO__SUPER_ROWS - 1) / LARGO__SUPER_ROWS;
}

/* Matrices and super tiles that have a row here, counted over all matrices: [first, end). */
typedef struct largo__held {
    int64_t first, end;
} largo__held;
largo__held largo__held_matrices(const largo__unit *unit);
largo__held largo__held_tiles(const largo__unit *unit);

/* NULL: no memory for *bytes. `cache` is what the last-level cache holds, in bytes. */
largo__layout *largo__layout_make(largo_ctx *ctx, const largo__plan *plan, size_t threads,
                                  size_t cache, size_t *bytes);
void largo__layout_free(largo_ctx *ctx, largo__layout *layout);

#endif
