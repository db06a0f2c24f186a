/* families.c - algos.def as data, and the choice of a family. */
#define LARGO_EXPERIMENTAL /* the table has all algorithms */
#include <string.h>
#include "all.h"
#include "families.h"

/* Kept families by name; "none" has none. */
enum { LARGO__FAMILY_none = -1 };
#define KEPT(kept) (LARGO__FAMILY_##kept < 0 ? NULL : &largo__families[LARGO__FAMILY_##kept])

/* Algorithms by name; the scan belongs to none. */
enum {
    ALGO_none = 0,
#define ALGO(name, enumerator) ALGO_##name = enumerator,
#include "algos.def"
};

enum { FLAT = 0, MATRIX = 1 };

#define SUMSQ LARGO__SUMSQ
#define MAX LARGO__MAX
#define SUMSQ_MAX LARGO__SUMSQ_MAX
#define NO_OP LARGO__NO_OP
#define SEGMENT LARGO__SEGMENT
#define ROW_COL LARGO__ROW_COL
#define NO_SCOPE LARGO__NO_SCOPE
#define LIKE LARGO__LIKE
#define ROWS LARGO__ROWS_OF
#define COLS LARGO__COLS_OF

/* The rows of a family fill one struct together: each names the members that it sets. */
const largo__family largo__families[LARGO__FAMILIES] = {
#define FAMILY(id, algorithm, rank, kept_id)                                                       \
    [LARGO__FAMILY_##id].name = #id, [LARGO__FAMILY_##id].algo = (largo_algo)ALGO_##algorithm,     \
    [LARGO__FAMILY_##id].is_matrix = rank, [LARGO__FAMILY_##id].kept = KEPT(kept_id),
#define SLOT(family, index, title, shape)                                                          \
    [LARGO__FAMILY_##family].slot_name[index] = #title,                                            \
    [LARGO__FAMILY_##family].slot_shape[index] = shape,
#define PASS(family, n, update, in, out, operator, where, count, term0, term1)                     \
    [LARGO__FAMILY_##family].pass[n].row = LARGO__ROW_##family##_##n,                              \
    [LARGO__FAMILY_##family].pass[n].reads = in, [LARGO__FAMILY_##family].pass[n].writes = out,    \
    [LARGO__FAMILY_##family].pass[n].op = operator,                                                \
    [LARGO__FAMILY_##family].pass[n].scope = where,                                                \
    [LARGO__FAMILY_##family].pass[n].terms = count,
#define FINISH(family, n, line_fn, row, col, matrix_fn, segment_fn)                                \
    [LARGO__FAMILY_##family].pass[n].line = line_fn,                                               \
    [LARGO__FAMILY_##family].pass[n].row_slot = row,                                               \
    [LARGO__FAMILY_##family].pass[n].col_slot = col,                                               \
    [LARGO__FAMILY_##family].pass[n].matrix = matrix_fn,                                           \
    [LARGO__FAMILY_##family].pass[n].segment = segment_fn,
#include "algos.def"
};

int largo__passes(const largo__family *family)
{
    int n = 0;
    while (n < LARGO__MAX_PASSES && family->pass[n].reads) n++;
    return n;
}

const largo__pass *largo__segment_pass(const largo__family *family, int pass)
{
    for (int before = 0; before < pass; before++)
        if (family->pass[before].segment) return &family->pass[before];
    return NULL;
}

int largo__slots(const largo__family *family)
{
    int n = 0;
    while (n < LARGO__MAX_STATE && family->slot_name[n]) n++;
    return n;
}

static const largo__family *sgd_family(const largo_hyper *hyper)
{
    if (hyper->momentum == 0.0) return &largo__families[LARGO__FAMILY_sgd];
    return &largo__families[hyper->nesterov == LARGO_ON ? LARGO__FAMILY_sgd_nesterov
                                                        : LARGO__FAMILY_sgd_momentum];
}

static int is_decayed(const largo_hyper *hyper, uint32_t flags)
{
    return hyper->weight_decay != 0.0 && !(flags & LARGO_PARAM_NO_DECAY);
}

/* Has the parameter a trust ratio of its own? */
static int adapts(const largo_hyper *hyper, uint32_t flags)
{
    if (flags & LARGO_PARAM_NO_TRUST || hyper->adapt == LARGO_ADAPT_NEVER) return 0;
    return hyper->adapt == LARGO_ADAPT_ALWAYS || is_decayed(hyper, flags);
}

static const largo__family *lars_family(const largo_hyper *hyper, uint32_t flags)
{
    static const int by_denominator[2][4] = {
        {LARGO__FAMILY_lars0_plain, LARGO__FAMILY_lars0, LARGO__FAMILY_lars0_decayed,
         LARGO__FAMILY_lars0_update},
        {LARGO__FAMILY_lars_plain, LARGO__FAMILY_lars, LARGO__FAMILY_lars_decayed,
         LARGO__FAMILY_lars_update}};
    const int denominator = adapts(hyper, flags) ? (int)hyper->denominator : 0;
    return &largo__families[by_denominator[hyper->momentum != 0.0][denominator]];
}

static const largo__family *lamb_family(const largo_hyper *hyper, uint32_t flags)
{
    const int l2 = hyper->l2 == LARGO_ON && is_decayed(hyper, flags);
    if (!adapts(hyper, flags))
        return &largo__families[l2 ? LARGO__FAMILY_lamb_l2_plain : LARGO__FAMILY_lamb_plain];
    return &largo__families[l2 ? LARGO__FAMILY_lamb_l2 : LARGO__FAMILY_lamb];
}

/* The first family of an algorithm in the table: its only one, where no option or rank chooses. */
static const largo__family *first_family(largo_algo algo)
{
    for (int f = 0; f < LARGO__FAMILIES; f++)
        if (largo__families[f].algo == algo) return &largo__families[f];
    return NULL;
}

const largo__family *largo__family_of(const largo_hyper *hyper, uint32_t flags, int32_t ndim)
{
    switch ((int)hyper->algo) {
    case LARGO_SGD:
        return sgd_family(hyper);
    case LARGO_LARS:
        return lars_family(hyper, flags);
    case LARGO_LAMB:
        return lamb_family(hyper, flags);
    case LARGO_CAME:
        return &largo__families[ndim >= 2 ? LARGO__FAMILY_came2d : LARGO__FAMILY_came1d];
    case LARGO_MERIT:
        return &largo__families[ndim >= 2 ? LARGO__FAMILY_merit2d : LARGO__FAMILY_merit1d];
    default:
        return first_family(hyper->algo);
    }
}
