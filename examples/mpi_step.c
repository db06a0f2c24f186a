/* mpi_step.c - steps of LAMB over MPI processes that each hold a part of every tensor.
 *
 *   mpirun -np 4 mpi_step
 *
 * Trust ratios and the gradient norm are those of whole tensors: largo asks for a reduction and
 * MPI_Allreduce makes it. Rank 0 then makes the same steps alone and compares. Exit status: 0 the
 * bits are the same, 1 they differ, 2 trouble. */
#include <largo.h>
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 4, STEPS = 5, MOST_PROCESSES = 64 };
enum { SAME = 0, DIFFERENT = 1, TROUBLE = 2 };

static const int64_t shapes[TENSORS][2] = {{1000, 64}, {64, 1}, {17003, 1}, {300, 100}};

/* The callback: integers and maxima, exact in any order, so whatever MPI does is right. */
static int all_reduce(void *user, void *values, size_t n, largo_dtype dtype, largo_reduce_op op,
                      void *stream)
{
    (void)stream;
    const MPI_Comm *comm = user;
    const MPI_Datatype type = dtype == LARGO_I64   ? MPI_INT64_T
                              : dtype == LARGO_U32 ? MPI_UINT32_T
                                                   : MPI_DOUBLE;
    if (n > INT_MAX) return MPI_ERR_COUNT;
    return MPI_Allreduce(MPI_IN_PLACE, values, (int)n, type, op == LARGO_SUM ? MPI_SUM : MPI_MAX,
                         *comm);
}

static void must(largo_status status)
{
    if (!largo_failed(status)) return;
    fprintf(stderr, "mpi_step: %s: %s\n", largo_status_name(status), largo_last_error());
    MPI_Abort(MPI_COMM_WORLD, TROUBLE);
}

/* Some number for element i of tensor k; t = 0: the weight, else the gradient of step t. */
static float element(int k, int t, int64_t i)
{
    uint64_t x = ((uint64_t)k * 1000 + (uint64_t)t) * 1000003 + (uint64_t)i;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return (float)((double)(x >> 40) * 0x1p-24 - 0.5) * (t ? 0.01f : 1.0f);
}

/* What this process has of tensor k: elements [begin, end). */
typedef struct part {
    int64_t begin, end;
    float *w, *g;
} part;

static void free_part(part *p)
{
    free(p->w);
    free(p->g);
}

/* Part `rank` of `world` of tensor k, with its weights. */
static largo_param make_part(const largo_hyper *hyper, int k, int world, int rank, part *p,
                             largo_shard *shard)
{
    const largo_param whole = largo_param_f32(NULL, NULL, shapes[k][0], shapes[k][1]);
    must(largo_shard_cut(hyper, &whole, world, rank, &p->begin, &p->end));
    const int64_t n = p->end - p->begin;
    p->w = malloc(((size_t)n + 1) * sizeof *p->w);
    p->g = malloc(((size_t)n + 1) * sizeof *p->g);
    if (!p->w || !p->g) MPI_Abort(MPI_COMM_WORLD, TROUBLE);
    for (int64_t i = 0; i < n; i++) p->w[i] = element(k, 0, p->begin + i);
    shard->placement = LARGO_SHARDED;
    shard->ndim = whole.value.ndim;
    memcpy(shard->shape, whole.value.shape, sizeof shard->shape);
    shard->offset = p->begin;
    largo_param param = largo_param_f32(p->w, p->g, n, 1);
    param.shard = world > 1 ? shard : NULL;
    return param;
}

/* The steps of process `rank`; without `comm`, of one that has everything. */
static void train(MPI_Comm *comm, int rank, int world, part parts[])
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = 1;
    options.all_reduce = comm ? all_reduce : NULL;
    options.all_reduce_user = comm;
    largo_ctx *ctx;
    largo_optim *optim;
    largo_hyper lamb;
    must(largo_ctx_create(&options, &ctx));
    must(largo_hyper_preset(&lamb, "apex_lamb")); /* with clip */
    lamb.lr = 0.01;
    largo_param params[TENSORS];
    largo_shard shards[TENSORS];
    for (int k = 0; k < TENSORS; k++)
        params[k] = make_part(&lamb, k, world, rank, &parts[k], &shards[k]);
    must(largo_optim_create(ctx, &optim));
    must(largo_optim_add_group(optim, &lamb, TENSORS, params, NULL));
    for (int t = 1; t <= STEPS; t++) {
        for (int k = 0; k < TENSORS; k++)
            for (int64_t i = parts[k].begin; i < parts[k].end; i++)
                parts[k].g[i - parts[k].begin] = element(k, t, i);
        must(largo_optim_step(optim));
    }
    largo_optim_destroy(optim);
    largo_ctx_destroy(ctx);
}

/* On rank 0: are the parts of tensor k together the one that it has made alone? */
static int is_same(int k, const part *mine, const part *alone)
{
    int count[MOST_PROCESSES], first[MOST_PROCESSES];
    const int here = (int)(mine->end - mine->begin), begin = (int)mine->begin;
    const size_t n = (size_t)(shapes[k][0] * shapes[k][1]);
    float *all = malloc(n * sizeof *all);
    if (!all) MPI_Abort(MPI_COMM_WORLD, TROUBLE);
    MPI_Gather(&here, 1, MPI_INT, count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gather(&begin, 1, MPI_INT, first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Gatherv(mine->w, here, MPI_FLOAT, all, count, first, MPI_FLOAT, 0, MPI_COMM_WORLD);
    const int same = !alone->w || memcmp(all, alone->w, n * sizeof *all) == 0;
    free(all);
    return same;
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    int rank, world, same = 1;
    part parts[TENSORS] = {0}, alone[TENSORS] = {0};
    if (MPI_Init(&argc, &argv)) return TROUBLE;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &world);
    if (world > MOST_PROCESSES) {
        fprintf(stderr, "mpi_step: %d processes; at most %d\n", world, MOST_PROCESSES);
        MPI_Abort(comm, TROUBLE);
    }
    train(&comm, rank, world, parts);
    if (rank == 0) train(NULL, 0, 1, alone);
    for (int k = 0; k < TENSORS; k++) {
        same &= is_same(k, &parts[k], &alone[k]);
        free_part(&parts[k]);
        free_part(&alone[k]);
    }
    if (rank == 0)
        printf("%d processes, %d tensors, %d steps of LAMB: %s as one process\n", world, TENSORS,
               STEPS, same ? "the same bits" : "OTHER BITS");
    MPI_Bcast(&same, 1, MPI_INT, 0, comm);
    MPI_Finalize();
    return same ? SAME : DIFFERENT;
}
