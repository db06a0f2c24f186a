/* plan.h - what a step is made of, between optim/ (which makes plans) and a backend (which carries
 * them out). A plan holds pointers and shapes, checked; constants are filled in for each step.
 */
#ifndef LARGO_CORE_PLAN_H
#define LARGO_CORE_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include "largo.h"
#include "elem.h"

enum { LARGO__MAX_PASSES = 4, LARGO__MAX_TERMS = 2, LARGO__MAX_STATE = 5 };

/* A finished line: one row or one column, with the sums or maxima of its terms. Returns its factor. */
typedef float largo__line_fn(const double stat[2], double count, const largo__d *d, float *state);
typedef void largo__matrix_fn(double mean, float *seg);
/* With the sums of the segment's terms, or their maxima. Returns the ratio that they give. */
typedef double largo__segment_fn(const double stat[2], double count, const largo__d *d, float *seg);

/* One PASS row with its FINISH row. */
typedef struct largo__pass {
    int row; /* LARGO__ROW_*: which kernel */
    int reads, writes, op, scope, terms;
    largo__line_fn *line;
    int row_slot, col_slot; /* state that `line` averages into; -1: none */
    largo__matrix_fn *matrix;
    largo__segment_fn *segment;
} largo__pass;

typedef struct largo__family {
    const char *name;
    largo_algo algo;
    int is_matrix;                    /* its passes see rows and columns */
    const struct largo__family *kept; /* same bits, keeps the direction in U; or NULL */
    largo__pass pass[LARGO__MAX_PASSES];
    const char *slot_name[LARGO__MAX_STATE];
    int slot_shape[LARGO__MAX_STATE]; /* LARGO__LIKE ... */
} largo__family;

int largo__passes(const largo__family *family); /* how many it has */

/* The pass before `pass` that has a segment hook; a family has one at most. NULL: none. */
const largo__pass *largo__segment_pass(const largo__family *family, int pass);
int largo__slots(const largo__family *family);

enum { LARGO__LIKE = 1, LARGO__ROWS_OF = 2, LARGO__COLS_OF = 3 };

/* One segment of one parameter: the unit that has statistics of its own. Never empty. */
typedef struct largo__unit {
    /* In one cache line, what a small tensor is stepped by: most tensors of a model are small. */
    _Alignas(64) const largo__family *family;
    float *p, *g;
    int64_t n; /* elements here */
    uint32_t group;
    largo_placement placement;
    largo_param_stats *report; /* where the caller wants its statistics; or NULL */
    float *state[LARGO__MAX_STATE];

    int64_t lead;                 /* elements of the segment before them, on other ranks */
    int64_t count;                /* elements of the segment on all ranks */
    int64_t matrices, rows, cols; /* where the family is_matrix: their product is count */
    int64_t first_row;            /* counted over all matrices, of the rows that are here */
    uint32_t grad_scratch;        /* g may be overwritten */
    uint32_t param;               /* counted over all groups */
    int64_t first;                /* of this segment, in elements of the parameter */
    size_t shared;                /* 1 + its place in plan.shared; 0: its statistics are its own */
} largo__unit;

#define LARGO__NO_UNIT SIZE_MAX

/* Statistics of a segment that several ranks hold parts of. Every rank has the same list of them,
 * with a unit or without. */
typedef struct largo__shared {
    const largo__family *family;
    int64_t count;
    int64_t matrices, rows, cols; /* where the family is_matrix */
    size_t unit;                  /* of this rank; LARGO__NO_UNIT: it has none */
    size_t planned;               /* of optim/stepper.h; where there is a report */
    uint32_t constants;           /* of the report */
    largo_param_stats *report;
} largo__shared;

typedef struct largo__constants {
    largo__k k;
    largo__d d;
    uint32_t group;
} largo__constants;

/* What the scan needs to know of a group. */
typedef struct largo__group_scan {
    largo_non_finite non_finite;
    double grad_scale, max_grad_norm;
    double limit; /* |g| grad_scale clip as a float must stay below it */
    double clip;  /* out */
} largo__group_scan;

typedef struct largo__plan {
    size_t units, groups;
    largo__unit *unit;
    largo__group_scan *group;
    largo__constants *constants; /* room for one per parameter */
    size_t n_constants;
    uint32_t *constants_of; /* [units], which of them; set for each step */
    size_t n_shared;
    largo__shared *shared;
    const largo__pass *scan; /* this step reads all gradients first, by this pass; NULL: not */
    int joint;               /* what the scan finds is reduced across ranks */
    void *backend;           /* the backend's own schedule */
} largo__plan;

/* The outcome of one step, as the backend found it. */
typedef struct largo__result {
    int bad;             /* a gradient is not finite or too large, and a policy says stop */
    int error;           /* that policy is ERROR */
    size_t bad_unit;     /* LARGO__NO_UNIT: on another rank */
    int64_t bad_element; /* in the unit */
    int bad_factor;      /* it is a group's grad_factor that says stop; then the group */
    size_t bad_group;
    float bad_value;
    double grad_norm;
    int written; /* of tensors in parts, some are written, and wait for the next reduction */
} largo__result;

#endif
