/* support_ranks.h - several ranks in one process, and one rank that holds everything beside them.
 *
 * Parts of all ranks point into the memory of rank 0, so that together they are what one rank would
 * have; what is replicated or local is its owner's. */
#ifndef LARGO_TESTS_SUPPORT_RANKS_H
#define LARGO_TESTS_SUPPORT_RANKS_H

#include <pthread.h>
#include "support.h"

enum { RANKS_MOST = 8, RANKS_PARAMS = 24, RANKS_SEGMENTS = 3, RANKS_SLOTS = 5, RANKS_CALLS = 32 };

typedef struct rank_spec {
    largo_placement placement;
    int32_t segments, ndim;
    int64_t shape[3];
    uint32_t flags;
    int no_grad_at; /* this step has no gradient of it; 0: all have */
} rank_spec;

/* Parameters of every kind. */
extern const rank_spec ranks_mixed[];
extern const size_t n_ranks_mixed;

/* Where a part begins and ends; as largo_shard_cut. */
typedef largo_status ranks_cut_fn(const largo_hyper *hyper, const largo_param *whole, int32_t world,
                                  int32_t rank, int64_t *begin, int64_t *end);

typedef struct ranks_setup {
    int n;
    int object;   /* largo_optim, else the function */
    int callback; /* ranks are threads that meet in all_reduce, else rounds in turn */
    int threads;  /* of each rank; 0: 1, 2 or 3 */
    const rank_spec *specs;
    size_t n_specs;
    ranks_cut_fn *cut; /* NULL: largo_shard_cut */
    unsigned seed;     /* of the order of reductions */
} ranks_setup;

typedef struct rank {
    struct world *world;
    int number;
    largo_ctx *ctx;
    largo_optim *optim;
    size_t n;
    int which[RANKS_PARAMS]; /* of specs */
    largo_param params[RANKS_PARAMS];
    largo_shard shards[RANKS_PARAMS];
    int64_t counts[RANKS_PARAMS];
    largo_param_stats stats[RANKS_PARAMS][RANKS_SEGMENTS];
    float *value[RANKS_PARAMS], *grad[RANKS_PARAMS], *state[RANKS_PARAMS][RANKS_SLOTS]; /* whole */
    int is_owner[RANKS_PARAMS];
    int64_t first_col[RANKS_PARAMS]; /* of its state by columns, which every rank has of its own */
    largo_reduction calls[RANKS_CALLS]; /* of the last step, as they came */
    int n_calls;
    largo_status status; /* of the last step */
} rank;

typedef struct world {
    ranks_setup setup;
    int n;
    largo_hyper hyper;
    rank rank[RANKS_MOST];
    pthread_barrier_t barrier; /* of callbacks */
    int64_t t;                 /* of the step that the threads make */
} world;

/* Ways to step that together use every kernel that ranks can share. */
typedef struct ranks_option {
    largo_algo algo;
    const char *set;
} ranks_option;
extern const ranks_option ranks_options[];
extern const size_t n_ranks_options;

void world_open(world *w, const ranks_setup *setup, const largo_hyper *hyper);
void world_close(world *w);

/* Gradients of step t, and which parameters have one. bad, if not 0: the last element of
 * parameter 3. */
void world_gradients(world *w, int t, float bad);

/* One step of all ranks; every rank must say the same, and reduce the same. Returns the number of
 * reductions. */
int world_step(world *w, int64_t t, largo_status expected);

size_t ranks_numel(const rank_spec *spec);
largo_tensor ranks_tensor(const rank_spec *spec);

/* Rank r's parameter i (value, state, count, statistics) has the bits of the one rank's. */
void world_compare_param(const world *w, int r, size_t i, const rank *one);

/* All of them, and the outcome. */
void world_compare(const world *w, const world *single);

/* Steps 1 to `steps` made alone and together: the same bits after each, by as many reductions. */
void world_compare_steps(const ranks_setup *alone, const ranks_setup *together,
                         const ranks_option *option, int steps);

#endif
