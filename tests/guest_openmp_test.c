/* labels: property short openmp no-valgrind
 *
 * A host that forks, and one with OpenMP regions of its own. */
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__) && !defined(__clang__)
#include <xmmintrin.h>
#endif
#include "support_guest.h"

/* What a child finds out. */
typedef struct answer {
    uint64_t hash;
    double seconds;
} answer;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Steps in a forked child with the context, or, without one, with one that the child makes. */
static answer run_in_child(guest *g, largo_ctx *ctx)
{
    answer a = {0, 0.0};
    int ends[2], how;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (!child) {
        alarm(20); /* ends a child that hangs */
        const double start = now();
        a.hash = ctx ? guest_run(g, ctx, GUEST_STEP) : guest_run_alone(g, 2);
        a.seconds = now() - start;
        _exit(write(ends[1], &a, sizeof a) != sizeof a);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFSIGNALED(how) && WTERMSIG(how) == SIGALRM) fail_msg("the child hangs");
    assert_int_equal(how, 0);
    assert_int_equal(read(ends[0], &a, sizeof a), sizeof a);
    close(ends[0]);
    close(ends[1]);
    return a;
}

/* The best of several tries, for the machine may be busy. */
static void check_child(guest *g, largo_ctx *ctx, uint64_t want)
{
    double least = 20.0;
    for (int i = 0; i < 3; i++) {
        const answer a = run_in_child(g, ctx);
        assert_int_equal(a.hash, want);
        if (a.seconds < least) least = a.seconds;
    }
    if (least >= 1.0) fail_msg("%.2f s in a forked child", least);
}

static void h68_forked_child(void **state)
{
    (void)state;
    static guest g;
    guest_open_algo(&g, LARGO_LAMB);
    largo_ctx *ctx = test_ctx(2);
    const uint64_t want = guest_run(&g, ctx, GUEST_STEP);
    assert_true(want != 0);
    check_child(&g, ctx, want);
    check_child(&g, NULL, want);
    assert_int_equal(guest_run(&g, ctx, GUEST_STEP), want); /* the parent goes on as before */
    largo_ctx_destroy(ctx);
    guest_close(&g);
}

/* The host's OpenMP made threads, largo none yet; the context is from before the fork. */
static void h68_threads_of_the_host(void **state)
{
    (void)state;
    static guest g;
    guest_open_algo(&g, LARGO_MERIT);
    largo_ctx *ctx = test_ctx(2);
    int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
    threads++;
    assert_int_equal(threads, 2);
    check_child(&g, ctx, guest_run_alone(&g, 1));
    largo_ctx_destroy(ctx);
    guest_close(&g);
}

/* Two threads of the host's region step different optimizers: no threads are added. */
static void h70_inside_a_region(void **state)
{
    (void)state;
    static guest g[2];
    guest_open_algo(&g[0], LARGO_LAMB);
    guest_open_algo(&g[1], LARGO_CAME);
    const uint64_t want[2] = {guest_run_alone(&g[0], 1), guest_run_alone(&g[1], 1)};
    uint64_t got[2] = {0, 0};
    int before[2] = {0, 0}, after[2] = {0, 0};
    omp_set_max_active_levels(4); /* nested regions would make threads */
#pragma omp parallel num_threads(2)
    {
        const int me = omp_get_thread_num();
        before[me] = guest_threads();
        for (int i = 0; i < 5; i++) got[me] = guest_run_alone(&g[me], 3);
        after[me] = guest_threads();
    }
    omp_set_max_active_levels(1);
    for (int i = 0; i < 2; i++) {
        assert_true(want[i] != 0);
        assert_int_equal(got[i], want[i]);
        assert_int_equal(after[i], before[i]);
        guest_close(&g[i]);
    }
}

typedef struct count_case {
    guest *g;
    int threads, before, found;
    uint64_t hash;
} count_case;

/* libgomp's threads belong to the thread that opened the region: a fresh one starts with none. libomp's
 * belong to all, and those of earlier tests may be here still. */
#if defined(__clang__)
enum { HAS_ALL_IN_COMMON = 1 };
#else
enum { HAS_ALL_IN_COMMON = 0 };
#endif

static void *count_threads(void *arg)
{
    count_case *c = arg;
    c->hash = guest_run_alone(c->g, c->threads);
    for (int i = 0; i < 200 && guest_threads() > c->before + c->threads; i++)
        usleep(10000); /* those of the thread before this one are ending */
    c->found = guest_threads() - c->before;
    return NULL;
}

/* The threads of the context are what is used, whatever the host set for itself. */
static void h70_threads_asked_for(void **state)
{
    (void)state;
    static guest g;
    guest_open_algo(&g, LARGO_LAMB);
    const uint64_t want = guest_run_alone(&g, 1);
    const int asked[3] = {1, 2, 4}, before = guest_threads();
    omp_set_num_threads(7);
    for (int i = 0; i < 3; i++) {
        count_case c = {&g, asked[i], before, -1, 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, count_threads, &c), 0);
        pthread_join(thread, NULL);
        assert_int_equal(c.hash, want);
        assert_in_range(c.found, HAS_ALL_IN_COMMON ? 1 : asked[i], asked[i]);
    }
    assert_int_equal(omp_get_max_threads(), 7); /* and it is still the host's */
    guest_close(&g);
}

#if defined(__x86_64__) && !defined(__clang__)
/* OpenMP's threads are the host's too: each finds the control word that it left. Not so with libomp, which
 * gives all threads of a region the control word of the opener. */
static void h71_control_words_of_all_threads(void **state)
{
    (void)state;
    /* FTZ, DAZ and rounding up; rounding to zero; division by zero and invalid operations trap */
    static const unsigned control[3] = {0xdfc0, 0x7f80, 0x1d00};
    enum { HOST = 0xffc0 }; /* the rest says which exceptions happened */
    static guest g;
    guest_open_algo(&g, LARGO_LAMB);
    largo_ctx *ctx = test_ctx(3);
    const uint64_t want = guest_run(&g, ctx, GUEST_STEP);
    unsigned before[3] = {0}, after[3] = {0};
#pragma omp parallel num_threads(3)
    {
        before[omp_get_thread_num()] = _mm_getcsr();
        _mm_setcsr(control[omp_get_thread_num()]);
    }
    const uint64_t got = guest_run(&g, ctx, GUEST_STEP);
#pragma omp parallel num_threads(3)
    {
        after[omp_get_thread_num()] = _mm_getcsr();
        _mm_setcsr(before[omp_get_thread_num()]);
    }
    assert_int_equal(got, want);
    for (int i = 0; i < 3; i++) assert_int_equal(after[i] & HOST, control[i] & HOST);
    largo_ctx_destroy(ctx);
    guest_close(&g);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h68_threads_of_the_host), /* first: no step was made with threads */
        cmocka_unit_test(h68_forked_child),
        cmocka_unit_test(h70_inside_a_region),
        cmocka_unit_test(h70_threads_asked_for),
#if defined(__x86_64__) && !defined(__clang__)
        cmocka_unit_test(h71_control_words_of_all_threads),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
