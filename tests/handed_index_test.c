/* labels: property short no-valgrind no-sanitizer
 *
 * Handed case H24: indices past 2^31 and 2^32. The gradient is zero pages, of which the kernel needs
 * one, and a 2^64 at the end; value and state may not even be read, for the step stops at it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "support.h"

enum { PAGE = 1 << 16 }; /* a multiple of every machine's */

/* Address space without memory. Where a limit forbids that much of it, the test is skipped. */
static void *reserve(size_t bytes, int protection)
{
    void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED) return p;
    fprintf(stderr, "skipped: no %zu bytes of address space\n", bytes);
    exit(77);
}

static void check(int64_t n, int threads)
{
    const size_t bytes = ((size_t)n * sizeof(float) + PAGE - 1) / PAGE * PAGE;
    float *grad = reserve(bytes, PROT_READ);
    madvise(grad, bytes, MADV_HUGEPAGE); /* fewer faults; no harm where it is refused */
    assert_int_equal(mprotect((char *)grad + bytes - PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    grad[n - 1] = 0x1p64f;
    char *untouchable = reserve(3 * bytes, PROT_NONE);
    largo_ctx *ctx = test_ctx(threads);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_ADAMW));
    largo_param p = largo_param_f32((float *)(void *)untouchable, grad, n, 1);
    p.state[0] = untouchable + bytes;
    p.state[1] = untouchable + 2 * bytes;
    assert_status(LARGO_SKIPPED, largo_step(ctx, &h, 1, 1, &p));
    largo_outcome o = {.struct_size = sizeof o};
    assert_ok(largo_last_outcome(ctx, &o));
    assert_true(o.grad_norm == 0x1p64);
    assert_int_equal(o.bad_param, 0);
    assert_int_equal(o.bad_element, n - 1);
    largo_ctx_destroy(ctx);
    munmap(untouchable, 3 * bytes);
    munmap(grad, bytes);
}

static void h24_past_two_to_the_31(void **state)
{
    (void)state;
    check(INT32_MAX, 2);
    check((int64_t)INT32_MAX + 1, 1);
}

static void h24_past_two_to_the_32(void **state)
{
    (void)state;
    check(((int64_t)1 << 32) + 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h24_past_two_to_the_31),
        cmocka_unit_test(h24_past_two_to_the_32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
