// passes.cc - every kernel of every instruction set, alone, on one thread. The list is algos.def: a
// kernel that is not here does not exist.
#include <benchmark/benchmark.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include "machine.h"
#include "memory.h"
#include "options.h"
#include "rounds.h"
#include "rows.h"

using namespace largo_bench;

namespace
{

const char usage[] =
    "largo-bench-passes: every kernel (row of algos.def, instruction set) on one thread\n"
    "\n"
    "  --elements A,B      16Ki, 1Mi, 64Mi, or all (default); 64Mi needs 1.3 GB\n"
    "  --grad-scale X      not 1: the kernels that scale the gradient first (default 1)\n"
    "  --json FILE         Google Benchmark's JSON\n"
    "  --benchmark_filter=REGEX, --benchmark_min_time=SECONDS, --benchmark_list_tests, ...\n"
    "                      as in every Google Benchmark program\n"
    "\n"
    "A name is row/isa/elements. bytes_per_second counts what the row of algos.def reads and\n"
    "writes; of_copy is that as a share of the bandwidth of copying the same number of elements,\n"
    "measured by turns with the kernel. LARGO_ISA does not act here.\n";

const std::map<std::string, std::size_t> sizes = {{"16Ki", std::size_t{16} << 10},
                                                  {"1Mi", std::size_t{1} << 20},
                                                  {"64Mi", std::size_t{64} << 20}};

constexpr std::size_t COLS = 1024;         // of the matrices
constexpr std::size_t BATCH = 64;          // chunks in a call, as the backend has it
constexpr std::size_t AT_LEAST = 1u << 20; // elements between two looks at the clock

const largo__kernel *const tables[] = {
#define ISA(name, test) largo__kernels_##name,
#include "../cpu/isa.def"
#undef ISA
};

// What every kernel may ask for; one at a time uses it.
struct Memory {
    explicit Memory(std::size_t n)
        : arrays(6, n, 1088, default_threads(), 0.0f), row(n / COLS, 1e3f), col(COLS, 1e6f),
          row_stat(2 * (n / COLS)), col_stat(2 * COLS)
    {
    }
    enum { P, G, M, V, U, SPARE };
    Arrays arrays;
    std::vector<float> row, col;
    std::vector<double> row_stat, col_stat; // pairs
};

void refill(const Memory &memory, std::size_t n)
{
    const Arrays &a = memory.arrays;
    const int threads = default_threads();
    fill_normal(a[Memory::P], n, 0.02f, 1, threads);
    fill_normal(a[Memory::G], n, 1e-3f, 2, threads);
    fill_moments(a[Memory::G], a[Memory::M], a[Memory::V], n, threads);
    fill_normal(a[Memory::U], n, 1.0f, 3, threads);
}

// As after some hundred steps. The learning rate is so small that values stay what they are over
// any number of calls: no overflow, no subnormals.
largo__k constants(double grad_scale)
{
    largo__k k = {};
    k.lr = 1e-6f;
    k.beta1 = k.momentum = 0.9f;
    k.beta2 = 0.999f;
    k.beta1_in = 0.1f;
    k.one_minus_beta2 = 0.001f;
    k.inv_bias1 = 1.0f;
    k.rsqrt_bias2 = 1.1f;
    k.eps = 1e-8f;
    k.weight_decay = 0.01f;
    k.keep = 1.0f - 1e-8f;
    k.momentum_in = 1.0f;
    k.clip = INFINITY;
    for (float *pair : {&k.seg[0], &k.seg[2], k.lr_in, k.lr_out}) {
        pair[0] = 1e-6f;
        pair[1] = 1.0f;
    }
    k.grad_scale = grad_scale;
    return k;
}

void run_spans(const largo__kernel &kernel, const Row &row, const Memory &memory, std::size_t n,
               const largo__k &k)
{
    double sums[BATCH][2];
    const std::size_t step = row.terms ? BATCH * LARGO__CHUNK : n;
    const Arrays &a = memory.arrays;
    for (std::size_t at = 0; at < n; at += step) {
        largo__span span = {};
        span.p = a[Memory::P] + at;
        span.g = a[Memory::G] + at;
        span.m = a[Memory::M] + at;
        span.v = a[Memory::V] + at;
        span.u = a[Memory::U] + at;
        span.n = static_cast<std::int64_t>(std::min(step, n - at));
        span.sum = &sums[0][0];
        kernel.span(&span, &k);
    }
}

void run_tiles(const largo__kernel &kernel, Memory &memory, std::size_t n, const largo__k &k)
{
    double strips[LARGO__SUPER_ROWS / LARGO__TILE_ROWS][2];
    const Arrays &a = memory.arrays;
    const std::size_t rows = n / COLS;
    for (std::size_t i = 0; i < rows; i += LARGO__SUPER_ROWS) {
        largo__tile tile = {};
        tile.p = a[Memory::P] + i * COLS;
        tile.g = a[Memory::G] + i * COLS;
        tile.m = a[Memory::M] + i * COLS;
        tile.v = a[Memory::V] + i * COLS;
        tile.u = a[Memory::U] + i * COLS;
        tile.rows = static_cast<std::int64_t>(std::min<std::size_t>(LARGO__SUPER_ROWS, rows - i));
        tile.cols = static_cast<std::int64_t>(COLS);
        tile.row = memory.row.data() + i;
        tile.col = memory.col.data();
        tile.row_stat = reinterpret_cast<double(*)[2]>(memory.row_stat.data()) + i;
        tile.col_stat = reinterpret_cast<double(*)[2]>(memory.col_stat.data());
        tile.strip_stat = strips;
        kernel.tile(&tile, &k);
    }
}

struct Case {
    const Row *row;
    const largo__kernel *kernel;
    const Loops *loops;
    std::size_t n;
    double grad_scale;
};

void run(benchmark::State &state, const Case &c, Memory &memory)
{
    refill(memory, c.n);
    const largo__k k = constants(c.grad_scale);
    const std::size_t repeats = std::max<std::size_t>(1, AT_LEAST / c.n);
    const auto kernel = [&] {
        if (c.row->matrix)
            run_tiles(*c.kernel, memory, c.n, k);
        else
            run_spans(*c.kernel, *c.row, memory, c.n, k);
    };
    const auto copy = [&] {
        c.loops->copy(memory.arrays[Memory::SPARE], memory.arrays[Memory::G], c.n);
    };
    const auto timed = [repeats](const auto &body) {
        if (repeats > 1) body(); // what the other one left in the caches does not count
        const double start = now();
        for (std::size_t i = 0; i < repeats; i++) body();
        return now() - start;
    };
    const double bytes = static_cast<double>(c.row->bytes());
    std::vector<double> shares;
    double elements = 0.0, seconds = 0.0;
    for (auto _ : state) {
        const double t = timed(kernel), t_copy = timed(copy);
        state.SetIterationTime(t);
        shares.push_back(bytes / t / (8.0 / t_copy));
        elements += static_cast<double>(repeats * c.n);
        seconds += t;
    }
    state.counters["bytes_per_second"] = benchmark::Counter(
        bytes * elements / seconds, benchmark::Counter::kDefaults, benchmark::Counter::kIs1000);
    state.counters["of_copy"] = median(shares);
    state.counters["of_copy_mad"] = mad(shares);
    state.counters["ns_per_element"] = seconds / elements * 1e9;
}

} // namespace

int main(int argc, char **argv)
{
    Options options(argc, argv, usage);
    const std::vector<std::string> chosen =
        options.words("--elements", "all", {"16Ki", "1Mi", "64Mi"});
    const std::string scale = options.text("--grad-scale", "1");
    const double grad_scale = std::atof(scale.c_str());
    if (!(grad_scale > 0.0)) fail("--grad-scale is \"" + scale + "\"; it must be above 0");
    const std::string json = options.text("--json", "");
    options.start_benchmark(json);

    std::size_t most = 0;
    for (const std::string &size : chosen) most = std::max(most, sizes.at(size));
    std::unique_ptr<Memory> memory; // made when the first benchmark runs
    bool here;
    for (std::size_t i = 0; i < rows().size(); i++)
        for (std::size_t isa = 0; !isa_name(isa, &here).empty(); isa++) {
            const std::string name = rows()[i].name() + "/" + isa_name(isa, &here) + "/";
            if (!here) continue;
            for (const std::string &size : chosen) {
                const Case c = {&rows()[i], &tables[isa][i], &loops_of(isa), sizes.at(size),
                                grad_scale};
                benchmark::RegisterBenchmark((name + size).c_str(),
                                             [c, most, &memory](benchmark::State &state) {
                                                 if (!memory)
                                                     memory = std::make_unique<Memory>(most);
                                                 run(state, c, *memory);
                                             })
                    ->UseManualTime()
                    ->Unit(benchmark::kMicrosecond);
            }
        }
    introduce(1);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
    return 0;
}
