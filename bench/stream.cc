// stream.cc - what the memory of this machine gives to the patterns that optimizers are made of.
#include <omp.h>
#include <algorithm>
#include <cstdio>
#include "machine.h"
#include "memory.h"
#include "options.h"
#include "rounds.h"

using namespace largo_bench;

namespace
{

const char usage[] =
    "largo-bench-stream: bandwidth of memory patterns, interleaved, in one run\n"
    "\n"
    "  --sizes A,B         dram, llc, l2, or all (default)\n"
    "  --mib N             of each of the four arrays of `dram` (default 256)\n"
    "  --rounds N          rounds that are kept (default 30)\n"
    "  --threads N         default: what OpenMP would use\n"
    "  --json FILE         Google Benchmark's JSON, every round\n"
    "  --lines             also print Google Benchmark's lines\n"
    "  --benchmark_...     as in every Google Benchmark program\n"
    "\n"
    "GB/s count the bytes that a program sees, not the reads that a store to a new line causes.\n"
    "llc is half the last-level cache, l2 half the second level of each thread, in four arrays.\n";

struct Pattern {
    const char *name;
    double bytes; // of one element
    void (*run)(const Loops &loops, const Arrays &a, std::size_t at, std::size_t n);
};

volatile unsigned sink;

const Pattern patterns[] = {
    {"read", 4.0,
     [](const Loops &l, const Arrays &a, std::size_t at, std::size_t n) {
         sink = l.read(a[0] + at, n);
     }},
    {"copy", 8.0,
     [](const Loops &l, const Arrays &a, std::size_t at, std::size_t n) {
         l.copy(a[2] + at, a[0] + at, n);
     }},
    {"copy_non_temporal", 8.0,
     [](const Loops &l, const Arrays &a, std::size_t at, std::size_t n) {
         l.copy_non_temporal(a[2] + at, a[0] + at, n);
     }},
    {"update_in_place", 8.0,
     [](const Loops &l, const Arrays &a, std::size_t at, std::size_t n) {
         l.update(a[0] + at, n);
     }},
    {"floor28", 28.0,
     [](const Loops &l, const Arrays &a, std::size_t at, std::size_t n) {
         l.floor28(a[0] + at, a[1] + at, a[2] + at, a[3] + at, n);
     }},
};

// Small arrays are passed over many times in one region, so that its start does not count.
double once(const Pattern &pattern, const Arrays &a, std::size_t n, int threads)
{
    const Loops &loops = best_loops();
    const std::size_t passes = std::max<std::size_t>(1, (std::size_t{1} << 24) / n);
    double longest = 0.0;
#pragma omp parallel num_threads(threads) reduction(max : longest)
    {
        const Range r = part(n, omp_get_thread_num(), omp_get_num_threads());
#pragma omp barrier
        const double start = now();
        for (std::size_t i = 0; i < passes; i++) pattern.run(loops, a, r.begin, r.end - r.begin);
        longest = now() - start;
    }
    return longest / static_cast<double>(passes);
}

void print_table(const std::string &size, std::size_t n, const std::vector<Series> &all, int rounds,
                 int threads)
{
    std::printf("\n%s: four arrays of %.2f MiB, %s, %d thread%s, %d rounds\n\n", size.c_str(),
                static_cast<double>(n) * 4.0 / 1048576.0, best_loops().isa, threads,
                threads == 1 ? "" : "s", rounds);
    std::printf(
        "| pattern            | GB/s p50 |   worst |    best |  MAD %% | x read |  MAD %% |\n"
        "|--------------------|----------|---------|---------|--------|--------|--------|\n");
    for (const Series &s : all) {
        std::vector<double> rates;
        for (const double seconds : s.seconds) rates.push_back(s.bytes / seconds * 1e-9);
        const Ratio r = paired(s, &all[0]);
        std::printf("| %-18s | %8.1f | %7.1f | %7.1f | %6.1f | %6.2f | %6.1f |\n", s.name.c_str(),
                    median(rates), percentile(rates, 0.0), percentile(rates, 100.0),
                    100.0 * mad(rates) / median(rates), r.median, 100.0 * r.spread());
    }
    std::printf("\nx read: time over that of reading one array, paired by round\n");
    std::fflush(stdout);
}

void run_size(const std::string &size, std::size_t n, int rounds, int threads)
{
    const Arrays arrays(4, n, 1088, threads, 1e-3f);
    std::vector<Variant> variants;
    for (const Pattern &p : patterns) {
        if (!best_loops().copy_non_temporal && std::string(p.name) == "copy_non_temporal") continue;
        variants.push_back({p.name, p.bytes * static_cast<double>(n),
                            [&p, &arrays, n, threads] { return once(p, arrays, n, threads); }});
    }
    const std::vector<Series> all = measure(variants, rounds, 2, 1);
    register_series(size, all, {"read"});
    print_table(size, n, all, rounds, threads);
}

} // namespace

int main(int argc, char **argv)
{
    Options options(argc, argv, usage);
    const std::vector<std::string> sizes = options.words("--sizes", "all", {"dram", "llc", "l2"});
    const auto mib = static_cast<std::size_t>(options.number("--mib", 256, 1, 65536));
    const int rounds = static_cast<int>(options.number("--rounds", 30, 1, 100000));
    const int threads = static_cast<int>(options.number("--threads", default_threads(), 1, 1024));
    const std::string json = options.text("--json", "");
    const bool lines = options.flag("--lines");
    options.start_benchmark(json);
    introduce(threads);
    for (const std::string &size : sizes) {
        std::size_t bytes = mib << 20; // of one array
        if (size == "llc") bytes = cache_bytes(3) / 2 / 4;
        if (size == "l2") bytes = cache_bytes(2) * static_cast<std::size_t>(threads) / 2 / 4;
        run_size(size, bytes / sizeof(float) / 64 * 64, rounds, threads);
    }
    report_registered(lines);
    return 0;
}
