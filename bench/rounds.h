// rounds.h - the one method of timing here. A machine's memory bandwidth moves by half within a
// minute, so no time means anything alone: in every round each variant runs once, and what is
// reported is the median over rounds of the ratio of two times of the same round.
#ifndef LARGO_BENCH_ROUNDS_H
#define LARGO_BENCH_ROUNDS_H

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace largo_bench
{

double now(); // seconds

struct Variant {
    std::string name;
    double bytes;                 // moved by one call, by the model of README.md
    std::function<double()> call; // seconds of one call
};

struct Series {
    std::string name;
    double bytes;
    std::vector<double> seconds; // of each round
};

// The first `drop` rounds warm caches, threads and state, and are not kept. In a round every
// variant makes `inner` calls in a row, after one that is not timed if inner > 1. The order of the
// variants is shuffled from round to round, so that none always finds what the same neighbour left.
std::vector<Series> measure(const std::vector<Variant> &variants, int rounds, int drop, int inner);

double percentile(std::vector<double> x, double percent);
double median(std::vector<double> x);
double mad(const std::vector<double> &x); // median distance from the median

// The times of `a` over those of `b`, paired by round.
struct Ratio {
    double median, mad;
    bool known; // is there a `b`?

    double spread() const { return mad / median; }
    bool noisy() const { return spread() > 0.05; } // then no verdict
};
Ratio paired(const Series &a, const Series *b);
const Series *find(const std::vector<Series> &all, const std::string &name);
double gigabytes_per_second(const Series &s);

// Hand what was measured to Google Benchmark, one repetition for each round, named group/variant,
// with the round's ratio to each of `bases` as a counter x_<base>.
void register_series(const std::string &group, const std::vector<Series> &all,
                     const std::vector<std::string> &bases);

// Its JSON is written here. `lines`: its lines for each variant are printed as well.
void report_registered(bool lines);

} // namespace largo_bench

#endif
