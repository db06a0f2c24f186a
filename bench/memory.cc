#include "memory.h"

#include <omp.h>
#include <cstdint>
#include "options.h"

namespace largo_bench
{

Range part(std::size_t n, int t, int threads)
{
    const std::size_t lines = (n + 15) / 16, all = static_cast<std::size_t>(threads);
    const std::size_t i = static_cast<std::size_t>(t);
    const std::size_t begin = lines * i / all * 16, end = lines * (i + 1) / all * 16;
    return {begin < n ? begin : n, end < n ? end : n};
}

Arrays::Arrays(std::size_t count, std::size_t n, std::size_t stagger, int threads, float value)
{
    const std::size_t page = 4096;
    for (std::size_t k = 0; k < count; k++) {
        const std::size_t bytes = (n * sizeof(float) + k * stagger + page - 1) / page * page;
        memory_.emplace_back(std::aligned_alloc(page, bytes ? bytes : page));
        if (!memory_.back()) fail("no memory for an array of " + std::to_string(bytes) + " bytes");
        array_.push_back(static_cast<float *>(memory_.back().get()) + k * stagger / sizeof(float));
    }
#pragma omp parallel num_threads(threads)
    {
        const Range r = part(n, omp_get_thread_num(), omp_get_num_threads());
        for (float *x : array_)
            for (std::size_t i = r.begin; i < r.end; i++) x[i] = value;
    }
}

// Four uniform 16-bit numbers of one splitmix64 word: their sum has variance 4/12.
static float normal(std::uint64_t i)
{
    std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const std::uint32_t sum = static_cast<std::uint32_t>((z & 0xffff) + (z >> 16 & 0xffff) +
                                                         (z >> 32 & 0xffff) + (z >> 48));
    return (static_cast<float>(sum) - 131070.0f) * (1.7320508f / 65536.0f);
}

void fill_normal(float *x, std::size_t n, float scale, unsigned seed, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        const Range r = part(n, omp_get_thread_num(), omp_get_num_threads());
        const std::uint64_t first = static_cast<std::uint64_t>(seed) << 40;
        for (std::size_t i = r.begin; i < r.end; i++) x[i] = scale * normal(first + i);
    }
}

void fill_moments(const float *g, float *m, float *v, std::size_t n, int threads)
{
#pragma omp parallel num_threads(threads)
    {
        const Range r = part(n, omp_get_thread_num(), omp_get_num_threads());
        for (std::size_t i = r.begin; i < r.end; i++) {
            m[i] = 0.3f * g[i];
            v[i] = 0.01f * g[i] * g[i] + 1e-9f;
        }
    }
}

} // namespace largo_bench
