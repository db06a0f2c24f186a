/* labels: property short no-valgrind
 *
 * A host with threads of its own and several contexts, all on OpenMP: same bits, no more threads than the
 * contexts ask for (H70). */
#include <sys/wait.h>
#include <unistd.h>
#include "support_guest.h"

typedef struct user {
    pthread_t thread;
    guest g;
    largo_ctx *ctx;
    uint64_t want, got;
    int threads; /* the most that the process had */
} user;

static void user_open(user *u, largo_algo algo, int threads)
{
    guest_open_algo(&u->g, algo);
    u->want = guest_run_alone(&u->g, 1);
    assert_true(u->want != 0);
    u->ctx = test_ctx(threads);
    u->got = 0;
    u->threads = 0;
}

static void user_close(user *u)
{
    largo_ctx_destroy(u->ctx);
    guest_close(&u->g);
}

static void *run(void *arg)
{
    user *u = arg;
    for (int i = 0; i < 5; i++) {
        const uint64_t hash = guest_run(&u->g, u->ctx, i % 2 ? GUEST_OBJECT : GUEST_STEP);
        u->got = i == 0 || hash == u->got ? hash : 0;
        const int threads = guest_threads();
        if (threads > u->threads) u->threads = threads;
    }
    return NULL;
}

static void start(user *u)
{
    assert_int_equal(pthread_create(&u->thread, NULL, run, u), 0);
}

static void h70_different_optimizers_at_once(void **state)
{
    (void)state;
    static const largo_algo algos[2] = {LARGO_LAMB, LARGO_CAME};
    static user users[2];
    const int before = guest_threads();
    for (int i = 0; i < 2; i++) user_open(&users[i], algos[i], 2);
    assert_int_equal(guest_threads(), before); /* contexts have none */
    for (int i = 0; i < 2; i++) start(&users[i]);
    for (int i = 0; i < 2; i++) pthread_join(users[i].thread, NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(users[i].got, users[i].want);
        /* itself, perhaps the other, and one helper of each */
        assert_in_range(users[i].threads, before + 2, before + 4);
        user_close(&users[i]);
    }
}

/* The helpers belong to the calling thread: as many as its largest context needs. */
static void h70_contexts_of_one_thread(void **state)
{
    (void)state;
    static user users[3];
    static const int threads[3] = {2, 3, 1};
    const int before = guest_threads();
    for (int i = 0; i < 3; i++) user_open(&users[i], LARGO_MERIT, threads[i]);
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 3; i++) {
            run(&users[i]);
            assert_int_equal(users[i].got, users[i].want);
            assert_true(users[i].threads <= before + 2);
        }
    for (int i = 0; i < 3; i++) user_close(&users[i]);
}

/* One thread at a time need not be one thread for all time. */
static void context_handed_on(void **state)
{
    (void)state;
    static user u;
    user_open(&u, LARGO_LAMB, 2);
    for (int i = 0; i < 3; i++) {
        start(&u);
        pthread_join(u.thread, NULL);
        assert_int_equal(u.got, u.want);
    }
    run(&u);
    assert_int_equal(u.got, u.want);
    user_close(&u);
}

/* What docs/embedding.md advises a forked child to do: there libgomp has no helpers of a new thread to
 * wait for. */
static void h68_new_thread_in_a_child(void **state)
{
    (void)state;
    static user u;
    user_open(&u, LARGO_LAMB, 2);
    run(&u); /* makes helpers, which the child will not have */
    const pid_t child = fork();
    if (!child) {
        alarm(20); /* ends a child that hangs */
        u.ctx = test_ctx(2);
        u.threads = 0;
        start(&u);
        pthread_join(u.thread, NULL);
        _exit(u.got != u.want || u.threads < 3); /* this one, the new one and its helper */
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    user_close(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h70_different_optimizers_at_once),
        cmocka_unit_test(h70_contexts_of_one_thread),
        cmocka_unit_test(context_handed_on),
        cmocka_unit_test(h68_new_thread_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
