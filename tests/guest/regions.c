/* regions.c - a host with OpenMP regions of its own that loads a library built by another compiler (H69):
 * both open regions in turn, a thousand times. Prints the number of threads that there are in the end and
 * a hash of results.
 *
 *   regions LIBRARY [deep]     deep: the library binds its own OpenMP, not the host's */
#define _GNU_SOURCE
#include "guest.h"
#include <omp.h>

enum { TURNS = 1000, THREADS = 2 };

/* Items of a region that two threads of the host's OpenMP have shared. */
static int region_of_host(void)
{
    int threads = 0, sum = 0;
#pragma omp parallel for num_threads(THREADS) reduction(+ : sum)
    for (int i = 0; i < 100; i++) sum += i;
#pragma omp parallel num_threads(THREADS) reduction(+ : threads)
    threads++;
    REQUIRE(threads == THREADS, "%d threads in a region of the host", threads);
    return sum;
}

static uint64_t take_turns(int threads, int with_host)
{
    guest_work w;
    guest_open(&w, LARGO_LAMB);
    guest_fill(w.value, 1, 100, 28);
    largo_ctx *ctx = guest_ctx(threads);
    for (int t = 1; t <= TURNS; t++) {
        if (with_host) REQUIRE(region_of_host() == 4950, "a wrong sum in turn %d", t);
        REQUIRE(guest.largo_step(ctx, &w.hyper, t, 1, &w.param) == LARGO_OK, "%s",
                guest.largo_last_error());
    }
    guest.largo_ctx_destroy(ctx);
    const uint64_t hash = guest_hash(0, w.value, GUEST_N);
    guest_close(&w);
    return hash;
}

/* Inside a region of the host the library adds no threads, where both have one OpenMP. */
static void inside(uint64_t want, int is_shared)
{
    uint64_t hash[THREADS] = {0};
    int most[THREADS] = {0};
    const int before = guest_threads();
    omp_set_max_active_levels(4); /* a region inside a region would make threads */
#pragma omp parallel num_threads(THREADS)
    {
        const int me = omp_get_thread_num();
        hash[me] = take_turns(THREADS, 0);
        most[me] = guest_threads();
    }
    for (int i = 0; i < THREADS; i++) {
        REQUIRE(hash[i] == want, "other bits inside a region");
        REQUIRE(!is_shared || most[i] == before, "%d threads, and %d inside a region", before,
                most[i]);
    }
}

int main(int argc, char **argv)
{
    REQUIRE(argc >= 2, "usage: regions LIBRARY [deep]");
    const int is_deep = argc == 3 && strcmp(argv[2], "deep") == 0;
    guest_load(argv[1], is_deep ? RTLD_DEEPBIND : 0);
    const uint64_t want = take_turns(1, 0), hash = take_turns(THREADS, 1);
    REQUIRE(hash == want, "other bits in turns with the host");
    const int threads = guest_threads();
    inside(want, threads == THREADS);
    printf("%d %016llx\n", threads, (unsigned long long)hash);
    return 0;
}
