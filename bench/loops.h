// loops.h - plain loops that say what the machine can do, for each instruction set.
#ifndef LARGO_BENCH_LOOPS_H
#define LARGO_BENCH_LOOPS_H

#include <cstddef>

namespace largo_bench
{

// Arrays are aligned to 64 bytes and n is a multiple of 16.
struct Loops {
    const char *isa;
    unsigned (*read)(const float *x, std::size_t n);
    void (*copy)(float *to, const float *from, std::size_t n);
    void (*copy_non_temporal)(float *to, const float *from, std::size_t n); // nullptr: not here
    void (*update)(float *x, std::size_t n);
    // Read p, g, m, v and write p, m, v: AdamW's traffic with nothing but multiplies and adds.
    void (*floor28)(float *p, const float *g, float *m, float *v, std::size_t n);
    // AdamW itself, with its division and square root.
    void (*adamw)(float *p, const float *g, float *m, float *v, std::size_t n);
};

#define ISA(name, test) extern const Loops loops_##name;
#include "../cpu/isa.def"
#undef ISA

} // namespace largo_bench

#endif
