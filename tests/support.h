/* support.h - what every test uses: a context of the backend under test, generated inputs, hashes. */
#ifndef LARGO_TESTS_SUPPORT_H
#define LARGO_TESTS_SUPPORT_H

#define LARGO_EXPERIMENTAL
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "largo.h"

/* A context of the backend in LARGO_TEST_BACKEND (cpu by default), with this many threads. Exits
 * with 77, which ctest counts as skipped, where LARGO_ISA names an instruction set that is not here. */
largo_ctx *test_ctx(int threads);

/* The same with options of yours; the backend is filled in. */
largo_ctx *test_ctx_of(const largo_ctx_options *options);

/* From its next plan on, a CPU context works as if the cache were this large: a small one makes many waves. */
void test_set_cache(largo_ctx *ctx, size_t bytes);

/* The call succeeded, or the test fails with the library's sentence. */
#define assert_ok(call) test_assert_status((call), LARGO_OK, #call, __FILE__, __LINE__)
#define assert_status(expected, call)                                                              \
    test_assert_status((call), (expected), #call, __FILE__, __LINE__)
void test_assert_status(largo_status status, largo_status expected, const char *call,
                        const char *file, int line);

/* The call failed so, and its sentence holds `text`. */
#define assert_refused(expected, text, call)                                                       \
    do {                                                                                           \
        assert_status(expected, call);                                                             \
        test_assert_contains(largo_last_error(), (text), __FILE__, __LINE__);                      \
    } while (0)
void test_assert_contains(const char *string, const char *part, const char *file, int line);

/* Set fields by a text such as "momentum=0.9 nesterov=1". */
void test_hyper_set(largo_hyper *hyper, const char *fields);

/* Defaults of an algorithm with some fields set so. */
largo_hyper test_hyper(largo_algo algo, const char *fields);

/* Within 1e-6, relative; of floats, absolute 1e-9 will do. */
void test_close(double got, double want);
void test_near(int n, const float got[], const double want[]);

/* Elements of a tensor. */
int64_t test_numel(const largo_tensor *tensor);

/* value_i = lcg_i * 2^(exponent - (i mod spread)), exact in float; tests/golden/README.md. */
void test_fill(float *out, size_t n, uint64_t seed, int exponent, int spread);

/* Euclidean norm of x - y, in double; y NULL: of x. */
double test_distance(const float *x, const float *y, size_t n);

/* n floats of 64-byte aligned memory with a guard behind them; zeroed. Never NULL. */
float *test_floats(size_t n);

/* XXH3 of the bits, NaNs of any payload taken as one. */
uint64_t test_hash(uint64_t seed, const float *x, size_t n);

/* XXH3 of the bits of numbers. */
uint64_t test_hash_doubles(const double *x, size_t n);

/* Instruction sets that are here, from the lowest; NULL at the end. */
const char *const *test_isas(void);

#endif
