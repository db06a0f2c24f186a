// loops.cc - compiled once for each instruction set, with -DLARGO_ISA=<name>. It includes no C++
// header with inline functions: the linker could choose their copies made for AVX-512.
#include "loops.h"

#if defined(__SSE__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace largo_bench
{
namespace
{

// As integers: their sum may be reordered, and so vectorized.
unsigned read(const float *x, std::size_t n)
{
    typedef unsigned __attribute__((may_alias)) word;
    const word *w = reinterpret_cast<const word *>(x);
    unsigned a = 0, b = 0;
    for (std::size_t i = 0; i < n / 2; i++) {
        a += w[i];
        b ^= w[n / 2 + i];
    }
    return a ^ b;
}

// The factor keeps the compiler from calling memcpy, which picks its own kind of stores.
void copy(float *__restrict to, const float *__restrict from, std::size_t n)
{
    static volatile float given = 1.0f;
    const float one = given;
    INDEPENDENT
    for (std::size_t i = 0; i < n; i++) to[i] = one * from[i];
}

#if defined(__AVX512F__)
void copy_non_temporal(float *to, const float *from, std::size_t n)
{
    for (std::size_t i = 0; i < n; i += 16) _mm512_stream_ps(to + i, _mm512_load_ps(from + i));
    _mm_sfence();
}
#elif defined(__AVX__)
void copy_non_temporal(float *to, const float *from, std::size_t n)
{
    for (std::size_t i = 0; i < n; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
    _mm_sfence();
}
#elif defined(__SSE__)
void copy_non_temporal(float *to, const float *from, std::size_t n)
{
    for (std::size_t i = 0; i < n; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
    _mm_sfence();
}
#else
constexpr auto copy_non_temporal = nullptr;
#endif

void update(float *x, std::size_t n)
{
    INDEPENDENT
    for (std::size_t i = 0; i < n; i++) x[i] = x[i] * 0.999f + 1e-5f;
}

void floor28(float *__restrict p, const float *__restrict g, float *__restrict m,
             float *__restrict v, std::size_t n)
{
    INDEPENDENT
    for (std::size_t i = 0; i < n; i++) {
        m[i] = m[i] * 0.9f + g[i] * 0.1f;
        v[i] = v[i] * 0.999f + (g[i] * g[i]) * 0.001f;
        p[i] = p[i] - 1e-3f * m[i];
    }
}

void adamw(float *__restrict p, const float *__restrict g, float *__restrict m, float *__restrict v,
           std::size_t n)
{
    const float inv_bias1 = 1.1f, rsqrt_bias2 = 3.0f, eps = 1e-8f, lr = 1e-4f, keep = 0.999999f;
    INDEPENDENT
    for (std::size_t i = 0; i < n; i++) {
        m[i] = m[i] * 0.9f + g[i] * 0.1f;
        v[i] = v[i] * 0.999f + (g[i] * g[i]) * 0.001f;
        const float u = (m[i] * inv_bias1) / (__builtin_sqrtf(v[i]) * rsqrt_bias2 + eps);
        p[i] = p[i] * keep - lr * u;
    }
}

} // namespace

#define LOOPS_(isa) loops_##isa
#define LOOPS(isa) LOOPS_(isa)
#define TEXT_(isa) #isa
#define TEXT(isa) TEXT_(isa)
const Loops LOOPS(LARGO_ISA) = {TEXT(LARGO_ISA), read,    copy, copy_non_temporal,
                                update,          floor28, adamw};

} // namespace largo_bench
