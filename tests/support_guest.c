/* support_guest.c - see support_guest.h. */
#include <dirent.h>
#include "support_guest.h"

void guest_open(guest *g, const largo_hyper *hyper, uint32_t flags)
{
    static const int64_t shapes[GUEST_TENSORS][2] = {
        {1, 1},     {7, 1},    {33, 1},   {33, 7},   {1000, 1},  {4097, 1},
        {40000, 1}, {3, 8191}, {300, 70}, {50, 130}, {70001, 1}, {513, 100},
    };
    g->hyper = *hyper;
    g->n = GUEST_TENSORS;
    for (size_t i = 0; i < g->n; i++) {
        probe_open(&g->q[i], hyper, shapes[i][1] > 1 ? 2 : 1, shapes[i], 0, flags);
        probe_fill(&g->q[i], i % 3 == 2 ? ZERO_CHUNK : NORMAL, 50 + i);
    }
}

void guest_open_algo(guest *g, largo_algo algo)
{
    largo_hyper hyper;
    assert_ok(largo_hyper_init(&hyper, algo));
    hyper.lr = 0.01;
    guest_open(g, &hyper, 0);
}

void guest_close(guest *g)
{
    for (size_t i = 0; i < g->n; i++) probe_close(&g->q[i]);
}

static largo_status two_steps(guest *g, largo_ctx *ctx, guest_entry entry)
{
    largo_param params[GUEST_TENSORS];
    for (size_t i = 0; i < g->n; i++) {
        probe_reset(&g->q[i]);
        params[i] = probe_param(&g->q[i], 0);
    }
    largo_optim *optim = NULL;
    largo_status status = LARGO_OK;
    if (entry == GUEST_OBJECT) {
        status = largo_optim_create(ctx, &optim);
        if (!status) status = largo_optim_add_group(optim, &g->hyper, g->n, params, NULL);
    }
    for (int t = 1; t <= 2 && !status; t++)
        status = optim ? largo_optim_step(optim) : largo_step(ctx, &g->hyper, t, g->n, params);
    largo_optim_destroy(optim);
    return status;
}

uint64_t guest_run(guest *g, largo_ctx *ctx, guest_entry entry)
{
    if (two_steps(g, ctx, entry) != LARGO_OK) return 0;
    uint64_t hash = 0;
    for (size_t i = 0; i < g->n; i++) hash = probe_hash(hash, &g->q[i]);
    return hash;
}

uint64_t guest_run_alone(guest *g, int threads)
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = threads;
    largo_ctx *ctx;
    if (largo_ctx_create(&options, &ctx) != LARGO_OK) return 0;
    const uint64_t hash = guest_run(g, ctx, GUEST_STEP);
    largo_ctx_destroy(ctx);
    return hash;
}

int guest_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return -1;
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(tasks));) n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* ---- a pool ---- */

typedef struct member {
    guest_pool *pool;
    size_t index;
} member;

static void run_share(const guest_pool *pool, size_t index)
{
    for (size_t i = index; i < pool->n; i += pool->threads) pool->body(pool->arg, i);
}

static void *work(void *arg)
{
    const member me = *(member *)arg;
    pthread_barrier_wait(&me.pool->end); /* *arg is read */
    for (;;) {
        pthread_barrier_wait(&me.pool->begin);
        if (!me.pool->body) return NULL;
        run_share(me.pool, me.index);
        pthread_barrier_wait(&me.pool->end);
    }
}

void guest_pool_open(guest_pool *pool, size_t threads)
{
    assert_true(threads >= 1 && threads <= GUEST_POOL_MOST);
    pool->threads = threads;
    assert_int_equal(pthread_barrier_init(&pool->begin, NULL, (unsigned)threads), 0);
    assert_int_equal(pthread_barrier_init(&pool->end, NULL, (unsigned)threads), 0);
    member members[GUEST_POOL_MOST];
    for (size_t i = 1; i < threads; i++) {
        members[i] = (member){pool, i};
        assert_int_equal(pthread_create(&pool->thread[i], NULL, work, &members[i]), 0);
    }
    pthread_barrier_wait(&pool->end);
}

void guest_pool_run(void *user, size_t n, void (*body)(void *arg, size_t i), void *arg)
{
    guest_pool *pool = user;
    pool->n = n;
    pool->body = body;
    pool->arg = arg;
    pthread_barrier_wait(&pool->begin);
    run_share(pool, 0);
    pthread_barrier_wait(&pool->end);
}

void guest_pool_close(guest_pool *pool)
{
    pool->body = NULL;
    pthread_barrier_wait(&pool->begin);
    for (size_t i = 1; i < pool->threads; i++) pthread_join(pool->thread[i], NULL);
    pthread_barrier_destroy(&pool->begin);
    pthread_barrier_destroy(&pool->end);
}

largo_ctx *guest_pool_ctx(guest_pool *pool)
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = (int32_t)pool->threads;
    options.parallel = guest_pool_run;
    options.parallel_user = pool;
    largo_ctx *ctx;
    assert_ok(largo_ctx_create(&options, &ctx));
    return ctx;
}
