// memory.h - large float arrays, touched by the threads that use them, and realistic values.
#ifndef LARGO_BENCH_MEMORY_H
#define LARGO_BENCH_MEMORY_H

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace largo_bench
{

struct Range {
    std::size_t begin, end;
};

// Thread t's part of n elements, in lines of 16.
Range part(std::size_t n, int t, int threads);

// Arrays of n floats each, aligned to 64 bytes, filled with `value`. Their addresses differ by
// `stagger` bytes modulo the page, a multiple of 64: equal ones cost L1 conflicts that have nothing
// to do with the code measured.
class Arrays
{
  public:
    Arrays(std::size_t count, std::size_t n, std::size_t stagger, int threads, float value);
    float *operator[](std::size_t i) const { return array_[i]; }

  private:
    struct Free {
        void operator()(void *memory) const { std::free(memory); }
    };
    std::vector<std::unique_ptr<void, Free>> memory_;
    std::vector<float *> array_;
};

// x[i]: nearly normal, mean 0, standard deviation `scale`; the same for every thread count.
void fill_normal(float *x, std::size_t n, float scale, unsigned seed, int threads);

// Moments as they stand after a few steps with this gradient; no subnormals.
void fill_moments(const float *g, float *m, float *v, std::size_t n, int threads);

} // namespace largo_bench

#endif
