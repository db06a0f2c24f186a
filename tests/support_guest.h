/* support_guest.h - the library as a guest: work to hash that asserts nothing, so that it may run in any
 * thread and in a forked child, and a host's pool of threads. */
#ifndef LARGO_TESTS_SUPPORT_GUEST_H
#define LARGO_TESTS_SUPPORT_GUEST_H

#include <pthread.h>
#include "support_probe.h"

enum { GUEST_TENSORS = 12 };

/* Tensors of a few elements, of several chunks and of several tiles. */
typedef struct guest {
    largo_hyper hyper;
    size_t n;
    probe q[GUEST_TENSORS];
} guest;

void guest_open(guest *g, const largo_hyper *hyper, uint32_t flags);
void guest_open_algo(guest *g, largo_algo algo); /* with its defaults */
void guest_close(guest *g);

/* Two steps from the start; hash of values and state, or 0 where a call failed. */
typedef enum guest_entry { GUEST_STEP, GUEST_OBJECT } guest_entry;
uint64_t guest_run(guest *g, largo_ctx *ctx, guest_entry entry);

/* The same with a context of OpenMP threads of its own. */
uint64_t guest_run_alone(guest *g, int threads);

/* Threads of this process. */
int guest_threads(void);

/* A pool for largo_ctx_options.parallel, with itself as user: item i runs on thread i mod the number of
 * threads, of which the caller is one. All begin together and end together: items of one call are ordered
 * by nothing, which is what the thread sanitizer needs to see a race. */
enum { GUEST_POOL_MOST = 8 };
typedef struct guest_pool {
    size_t threads, n;
    pthread_t thread[GUEST_POOL_MOST];
    pthread_barrier_t begin, end;
    void (*body)(void *arg, size_t i); /* NULL: the pool closes */
    void *arg;
} guest_pool;

void guest_pool_open(guest_pool *pool, size_t threads);
void guest_pool_close(guest_pool *pool);
largo_parallel_fn guest_pool_run;
largo_ctx *guest_pool_ctx(guest_pool *pool); /* as many threads as the pool */

#endif
