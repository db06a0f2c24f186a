/* lang.h - the few words that C17 and CUDA C++17 spell differently. */
#ifndef LARGO_CORE_LANG_H
#define LARGO_CORE_LANG_H

#if defined(__CUDACC__)
#define LARGO_FN static __host__ __device__ __forceinline__
#else
#define LARGO_FN static inline __attribute__((always_inline))
#endif

/* A function that must stay out of line: its caller is hot, it is not. */
#define LARGO_COLD __attribute__((noinline, cold))

/* A short loop of constant length that is to be vectorized as a loop: gcc would rather unroll it
 * first and then find the pieces hard to put together. */
#if defined(__clang__) || !defined(__GNUC__)
#define LARGO_ROLLED
#else
#define LARGO_ROLLED _Pragma("GCC unroll 1")
#endif

#if defined(__clang__)
#define LARGO_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define LARGO_IVDEP _Pragma("GCC ivdep")
#else
#define LARGO_IVDEP
#endif

#endif
