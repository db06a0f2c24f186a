#include "rounds.h"

#include <benchmark/benchmark.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

namespace largo_bench
{

double now()
{
    using clock = std::chrono::steady_clock;
    return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

std::vector<Series> measure(const std::vector<Variant> &variants, int rounds, int drop, int inner)
{
    std::vector<Series> all;
    for (const Variant &v : variants) all.push_back({v.name, v.bytes, {}});
    std::vector<std::size_t> order(variants.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::mt19937 random(1);
    for (int round = -drop; round < rounds; round++) {
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t i : order) {
            if (inner > 1) variants[i].call();
            double sum = 0.0;
            for (int call = 0; call < inner; call++) sum += variants[i].call();
            if (round >= 0) all[i].seconds.push_back(sum / inner);
        }
    }
    return all;
}

// Between the two nearest of the sorted values, as numpy does.
double percentile(std::vector<double> x, double percent)
{
    if (x.empty()) return std::nan("");
    std::sort(x.begin(), x.end());
    const double at = percent / 100.0 * static_cast<double>(x.size() - 1);
    const auto low = static_cast<std::size_t>(at);
    const std::size_t high = std::min(low + 1, x.size() - 1);
    return x[low] + (at - static_cast<double>(low)) * (x[high] - x[low]);
}

double median(std::vector<double> x)
{
    return percentile(std::move(x), 50.0);
}

double mad(const std::vector<double> &x)
{
    const double middle = median(x);
    std::vector<double> distance;
    for (const double y : x) distance.push_back(std::fabs(y - middle));
    return median(distance);
}

Ratio paired(const Series &a, const Series *b)
{
    if (!b) return {std::nan(""), std::nan(""), false};
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.seconds.size(); i++)
        ratios.push_back(a.seconds[i] / b->seconds[i]);
    return {median(ratios), mad(ratios), true};
}

const Series *find(const std::vector<Series> &all, const std::string &name)
{
    for (const Series &s : all)
        if (s.name == name) return &s;
    return nullptr;
}

double gigabytes_per_second(const Series &s)
{
    return s.bytes / median(s.seconds) * 1e-9;
}

namespace
{

// Shared by the repetitions of one benchmark, which come in order.
struct Feed {
    Series series;
    std::vector<std::pair<std::string, Series>> bases;
    std::size_t next = 0;
};

void replay(benchmark::State &state, Feed &feed)
{
    const std::size_t round = feed.next++ % feed.series.seconds.size();
    const double seconds = feed.series.seconds[round];
    for (auto _ : state) state.SetIterationTime(seconds);
    state.counters["bytes_per_second"] = benchmark::Counter(
        feed.series.bytes / seconds, benchmark::Counter::kDefaults, benchmark::Counter::kIs1000);
    for (const auto &base : feed.bases)
        state.counters["x_" + base.first] = seconds / base.second.seconds[round];
}

// The tables are printed by the programs.
class Quiet : public benchmark::BenchmarkReporter
{
  public:
    bool ReportContext(const Context &) override { return true; }
    void ReportRuns(const std::vector<Run> &) override {}
};

} // namespace

void register_series(const std::string &group, const std::vector<Series> &all,
                     const std::vector<std::string> &bases)
{
    for (const Series &s : all) {
        const auto feed = std::make_shared<Feed>();
        feed->series = s;
        for (const std::string &base : bases)
            if (const Series *b = find(all, base)) feed->bases.emplace_back(base, *b);
        benchmark::RegisterBenchmark((group + "/" + s.name).c_str(),
                                     [feed](benchmark::State &state) { replay(state, *feed); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond)
            ->Iterations(1)
            ->Repetitions(static_cast<int>(s.seconds.size()))
            ->DisplayAggregatesOnly()
            ->ComputeStatistics("p95", [](const auto &x) { return percentile(x, 95.0); })
            ->ComputeStatistics("p99", [](const auto &x) { return percentile(x, 99.0); })
            ->ComputeStatistics("mad", [](const auto &x) { return mad(x); });
    }
}

void report_registered(bool lines)
{
    if (lines) {
        benchmark::RunSpecifiedBenchmarks();
    } else {
        Quiet reporter;
        benchmark::RunSpecifiedBenchmarks(&reporter);
    }
    benchmark::Shutdown();
}

} // namespace largo_bench
