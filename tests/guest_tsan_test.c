/* labels: tsan only-tsan
 *
 * The host's pool of threads under the thread sanitizer, which reports two accesses that nothing orders
 * wherever they happen in time: every family of kernels in waves and without, through both entries, and
 * contexts side by side. OpenMP is never entered: gcc's is not instrumented.
 *
 * With an argument the program is its own control: a step with a planted race. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support_guest.h"
#include "support_options.h"

static void every_family_in_a_pool(void **state)
{
    (void)state;
    static guest g;
    for (int o = 0; o < TEST_OPTIONS; o++) {
        const largo_hyper hyper = test_option_hyper(&test_options[o]);
        guest_open(&g, &hyper, test_options[o].flags);
        const uint64_t want = guest_run_alone(&g, 1);
        assert_true(want != 0);
        for (int way = 0; way < 3; way++) {
            guest_pool pool;
            guest_pool_open(&pool, 2 + (size_t)way);
            largo_ctx *ctx = guest_pool_ctx(&pool);
            if (way > 0) test_set_cache(ctx, way == 1 ? 1 << 14 : 1 << 18);
            if (guest_run(&g, ctx, way % 2 ? GUEST_OBJECT : GUEST_STEP) != want)
                fail_msg("%s, way %d: other bits", test_options[o].name, way);
            largo_ctx_destroy(ctx);
            guest_pool_close(&pool);
        }
        guest_close(&g);
    }
}

/* A step that is refused: the pass that looks for bad gradients, and where it stops. */
static void a_bad_gradient(void **state)
{
    (void)state;
    static guest g;
    guest_open_algo(&g, LARGO_ADAMW);
    for (size_t i = 0; i < g.n; i++) g.q[i].g0[g.q[i].n / 2] = __builtin_nanf("");
    guest_pool pool;
    guest_pool_open(&pool, 3);
    largo_ctx *ctx = guest_pool_ctx(&pool);
    assert_int_equal(guest_run(&g, ctx, GUEST_STEP), 0);
    largo_outcome outcome = {.struct_size = sizeof outcome};
    assert_ok(largo_last_outcome(ctx, &outcome));
    assert_int_equal(outcome.skipped, 1);
    assert_int_equal(outcome.bad_param, 0);
    largo_ctx_destroy(ctx);
    guest_pool_close(&pool);
    guest_close(&g);
}

typedef struct host {
    pthread_t thread;
    guest g;
    guest_pool pool;
    uint64_t want, got;
} host;

static void *use_a_context(void *arg)
{
    host *h = arg;
    largo_ctx *ctx = guest_pool_ctx(&h->pool);
    size_t n;
    assert_ok(largo_capabilities(0, NULL, &n));
    for (int i = 0; i < 3; i++) h->got = guest_run(&h->g, ctx, GUEST_OBJECT);
    largo_ctx_destroy(ctx);
    return NULL;
}

static void contexts_side_by_side(void **state)
{
    (void)state;
    static const largo_algo algos[3] = {LARGO_LAMB, LARGO_CAME, LARGO_MERIT};
    static host hosts[3];
    for (int i = 0; i < 3; i++) {
        guest_open_algo(&hosts[i].g, algos[i]);
        hosts[i].want = guest_run_alone(&hosts[i].g, 1);
        guest_pool_open(&hosts[i].pool, 2);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&hosts[i].thread, NULL, use_a_context, &hosts[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(hosts[i].thread, NULL);
        assert_int_equal(hosts[i].got, hosts[i].want);
        guest_pool_close(&hosts[i].pool);
        guest_close(&hosts[i].g);
    }
}

/* ---- controls ---- */

/* A host whose items touch, unordered, a counter of its own or a tensor that the library writes. */
typedef struct racy {
    guest_pool pool;
    const probe *peek; /* NULL: the counter */
    void (*body)(void *arg, size_t i);
    void *arg;
    volatile float sink[GUEST_POOL_MOST];
    long counter;
} racy;

static void racy_item(void *user, size_t i)
{
    racy *r = user;
    r->body(r->arg, i);
    if (!r->peek) r->counter++;
    for (size_t e = 0; r->peek && e < r->peek->n; e++) r->sink[i] = r->peek->p[e];
}

static void racy_run(void *user, size_t n, void (*body)(void *arg, size_t i), void *arg)
{
    racy *r = user;
    r->body = body;
    r->arg = arg;
    guest_pool_run(&r->pool, n, racy_item, r);
}

static int plant(const char *what)
{
    static guest g;
    static racy r;
    guest_open_algo(&g, LARGO_LAMB);
    guest_pool_open(&r.pool, 2);
    if (strcmp(what, "tensor") == 0) r.peek = &g.q[10];
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = 2;
    options.parallel = racy_run;
    options.parallel_user = &r;
    largo_ctx *ctx;
    if (largo_ctx_create(&options, &ctx) != LARGO_OK) return 1;
    guest_run(&g, ctx, GUEST_STEP);
    largo_ctx_destroy(ctx);
    guest_pool_close(&r.pool);
    guest_close(&g);
    return 0;
}

/* The program with a planted race ends with 66, and its report names the function. */
static void check_control(const char *what, const char *where)
{
    char self[512], command[800], line[512];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = 0;
    snprintf(command, sizeof command, "TSAN_OPTIONS=exitcode=66 timeout 60 '%s' %s 2>&1", self,
             what);
    FILE *report = popen(command, "r");
    assert_non_null(report);
    int races = 0, named = 0;
    while (fgets(line, sizeof line, report)) {
        races += strstr(line, "WARNING: ThreadSanitizer: data race") != NULL;
        named += strstr(line, where) != NULL;
    }
    const int status = pclose(report);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 66 || !races || !named)
        fail_msg("planted race \"%s\": status %x, %d races, %s named %d times", what,
                 (unsigned)status, races, where, named);
}

/* In the host, and between the host and a kernel: both are looked at. */
static void planted_races_are_found(void **state)
{
    (void)state;
    check_control("counter", "racy_item");
    check_control("tensor", "largo__span_lamb");
}

int main(int argc, char **argv)
{
    if (argc > 1) return plant(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_races_are_found),
        cmocka_unit_test(every_family_in_a_pool),
        cmocka_unit_test(a_bad_gradient),
        cmocka_unit_test(contexts_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
