/* detect.c - run-time choice of the instruction set, on x86-64 by cpuid and xgetbv. */
#include <stdlib.h>
#include <string.h>
#include "detect.h"
#include "../core/status.h"

static const char *test_scalar(void)
{
    return "";
}

#if defined(__x86_64__)
#include <cpuid.h>

/* Register state that the operating system saves: XCR0. */
static unsigned saved_state(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static const char *test_avx2(void)
{
    enum { YMM = 0x6 };
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_FMA)) return "this processor has no FMA";
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
        return "this processor has no AVX2";
    if ((saved_state() & YMM) != YMM) return "the operating system does not save ymm registers";
    return "";
}

static const char *test_avx512(void)
{
    enum { ZMM = 0xe6 };
    const char *missing = test_avx2();
    if (*missing) return missing;
    const unsigned needed = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & needed) != needed)
        return "this processor has no AVX-512 (F, DQ, BW, VL)";
    if ((saved_state() & ZMM) != ZMM) return "the operating system does not save zmm registers";
    return "";
}
#endif

#if defined(__aarch64__)
/* Part of every such processor. */
static const char *test_neon(void)
{
    return "";
}
#endif

static const struct {
    const char *name;
    const char *(*test)(void); /* NULL: of another processor */
    const char *reason;
} isas[] = {
#define ISA(name, test) {#name, test, ""},
#define OTHER(name, reason) {#name, NULL, reason},
#include "isa.def"
#undef ISA
};
enum { N_ISAS = sizeof isas / sizeof *isas };

static const char *missing_of(size_t i)
{
    return isas[i].test ? isas[i].test() : isas[i].reason;
}

const char *largo__cpu_isa(size_t i, const char **missing)
{
    if (i >= N_ISAS) return NULL;
    *missing = missing_of(i);
    return isas[i].name;
}

largo_status largo__cpu_isa_choose(size_t *isa)
{
    size_t best = 0;
    for (size_t i = 0; i < N_ISAS; i++)
        if (!*missing_of(i)) best = i;
    *isa = best;
    const char *wanted = getenv("LARGO_ISA");
    if (!wanted || !*wanted) return LARGO_OK;
    for (size_t i = 0; i < N_ISAS; i++) {
        if (strcmp(wanted, isas[i].name) != 0) continue;
        const char *missing = missing_of(i);
        if (*missing)
            return largo__fail(LARGO_ERR_UNSUPPORTED,
                               "LARGO_ISA is %s, which is not here: %s; the best here is %s",
                               isas[i].name, missing, isas[best].name);
        *isa = i;
        return LARGO_OK;
    }
    return largo__fail(LARGO_ERR_ARGUMENT,
                       "LARGO_ISA is \"%.40s\", which names no instruction set of this build; the "
                       "best here is %s",
                       wanted, isas[best].name);
}
