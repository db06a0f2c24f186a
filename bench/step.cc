// step.cc - whole optimizer steps on lists of tensors, beside what memory and division allow.
#include <omp.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include "lists.h"
#include "machine.h"
#include "memory.h"
#include "options.h"
#include "rounds.h"
#include "rows.h"

using namespace largo_bench;

namespace
{

const char usage[] =
    "largo-bench-step: time of optimizer steps, as ratios of times of the same round\n"
    "\n"
    "  --list A,B          gpt2, square, small, tiny, or all (default gpt2)\n"
    "  --optimizers A,B    sgd, adamw, lars, lamb, lamb_scratch (gradient may be overwritten),\n"
    "                      adamw_skip, lars_skip, lamb_skip (gradients are scanned\n"
    "                      first), or all (default)\n"
    "  --rounds N          rounds that are kept (default 50)\n"
    "  --drop N            rounds before them that are not (default 3)\n"
    "  --inner N           calls in a row in a round; 0: 20 if the list fits the last-level\n"
    "                      cache, else 1 (default 0)\n"
    "  --threads N         default: what OpenMP would use\n"
    "  --stagger BYTES     distance of the arrays modulo a page, a multiple of 64 (default 1088)\n"
    "  --json FILE         Google Benchmark's JSON, every round\n"
    "  --csv FILE          append a row for each variant\n"
    "  --lines             also print Google Benchmark's lines\n"
    "  --cpu-slug          print this processor's name for a file, and stop\n"
    "  --benchmark_...     as in every Google Benchmark program\n"
    "\n"
    "read is a plain loop over the gradients, scan the library's look at them before a step. On the\n"
    "list tiny, x_small is optimizer x on the list small, scaled to as many elements.\n"
    "floor is the traffic of AdamW, 28 bytes an element in place, with trivial arithmetic, on the\n"
    "same memory; bound, for lists that fit the last-level cache, is AdamW from L1, that is its\n"
    "division and square root. LARGO_ISA lowers the instruction set of the library, not that of\n"
    "floor and bound. See bench/README.md.\n";

struct Optimizer {
    const char *name;
    largo_algo algo;
    const char *family; // whose passes are counted in GB/s
    bool scratch, scan;
};

const Optimizer optimizers[] = {
    {"sgd", LARGO_SGD, "sgd_momentum", false, false},
    {"adamw", LARGO_ADAMW, "adamw", false, false},
    {"lars", LARGO_LARS, "lars", false, false},
    {"lamb", LARGO_LAMB, "lamb", false, false},
    {"lamb_scratch", LARGO_LAMB, "lamb_kept", true, false},
    {"adamw_skip", LARGO_ADAMW, "adamw", false, true},
    {"lars_skip", LARGO_LARS, "lars", false, true},
    {"lamb_skip", LARGO_LAMB, "lamb", false, true},
};

// What docs/performance.md promises: a paired median of at most `limit`.
struct Goal {
    const char *list, *optimizer, *base;
    double limit;
};

const Goal goals[] = {
    {"gpt2", "adamw", "floor", 1.05},        {"square", "adamw", "floor", 1.05},
    {"gpt2", "lamb", "adamw", 1.65},         {"square", "lamb", "adamw", 1.65},
    {"gpt2", "lamb_scratch", "adamw", 1.50}, {"square", "lamb_scratch", "adamw", 1.50},
    {"small", "adamw", "bound", 1.10},       {"small", "lamb", "adamw", 1.50},
    {"gpt2", "adamw_skip", "floor", 1.30},   {"square", "adamw_skip", "floor", 1.30},
    {"gpt2", "lars", "adamw", 1.35},         {"square", "lars", "adamw", 1.35},
    {"gpt2", "scan", "read", 1.11},          {"square", "scan", "read", 1.11},
    {"tiny", "adamw", "adamw_small", 4.0},   {"tiny", "adamw_skip", "adamw_skip_small", 4.0},
    {"tiny", "lamb", "lamb_small", 4.0},     {"tiny", "lamb_skip", "lamb_skip_small", 4.0},
    {"tiny", "lars", "lars_small", 4.0},     {"tiny", "lars_skip", "lars_skip_small", 4.0},
    {"tiny", "sgd", "sgd_small", 4.0},
};

struct Settings {
    int rounds, drop, inner, threads;
    std::size_t stagger;
    std::vector<std::string> chosen;
    std::string csv;
};

// One list, with the memory that all variants share: each leaves it as a step would.
struct Bench {
    Bench(const std::string &list, const Settings &settings);
    Variant floor() const;
    Variant bound() const;
    Variant read() const;
    Variant scan() const;
    Variant step(const Optimizer &o) const;
    void refill_gradient() const;

    std::string name;
    int threads;
    std::vector<Shape> shapes;
    std::size_t n = 0;
    enum { P, G, M, V };
    std::unique_ptr<Arrays> arrays;
};

std::size_t aligned(const Shape &s)
{
    return static_cast<std::size_t>(s.first * s.second + 15) / 16 * 16;
}

Bench::Bench(const std::string &list, const Settings &settings)
    : name(list), threads(settings.threads), shapes(list_shapes(list))
{
    for (const Shape &s : shapes) n += aligned(s);
    arrays = std::make_unique<Arrays>(4, n, settings.stagger, threads, 0.0f);
    fill_normal((*arrays)[P], n, 0.02f, 1, threads);
    refill_gradient();
    fill_moments((*arrays)[G], (*arrays)[M], (*arrays)[V], n, threads);
}

void Bench::refill_gradient() const
{
    fill_normal((*arrays)[G], n, 1e-3f, 2, threads);
}

// Seconds in which `body` is done with n elements, each thread with its range.
template <class Body> double by_threads(std::size_t n, int threads, const Body &body)
{
    const double start = now();
#pragma omp parallel num_threads(threads)
    {
        const Range r = part(n, omp_get_thread_num(), omp_get_num_threads());
        body(r.begin, r.end - r.begin);
    }
    return now() - start;
}

Variant Bench::floor() const
{
    const Loops &loops = best_loops();
    return {"floor", 28.0 * static_cast<double>(n), [this, &loops] {
                const Arrays &a = *arrays;
                return by_threads(n, threads, [&](std::size_t at, std::size_t count) {
                    loops.floor28(a[P] + at, a[G] + at, a[M] + at, a[V] + at, count);
                });
            }};
}

// Every thread at once makes AdamW steps on 16 KiB of its own; scaled to the elements of the list.
Variant Bench::bound() const
{
    const Loops &loops = best_loops();
    return {"bound", 28.0 * static_cast<double>(n), [this, &loops] {
                const std::size_t small = 1024, repeats = 512;
                double longest = 0.0;
#pragma omp parallel num_threads(threads) reduction(max : longest)
                {
                    alignas(64) float p[small], g[small], m[small], v[small];
                    fill_normal(p, small, 0.02f, 1, 1);
                    fill_normal(g, small, 1e-3f, 2, 1);
                    fill_moments(g, m, v, small, 1);
                    loops.adamw(p, g, m, v, small);
#pragma omp barrier
                    const double start = now();
                    for (std::size_t i = 0; i < repeats; i++) loops.adamw(p, g, m, v, small);
                    longest = now() - start;
                }
                const double share = static_cast<double>(n) / threads;
                return longest * share / static_cast<double>(small * repeats);
            }};
}

volatile unsigned sink;

// The gradients, by a plain loop.
Variant Bench::read() const
{
    const Loops &loops = best_loops();
    return {"read", 4.0 * static_cast<double>(n), [this, &loops] {
                const float *g = (*arrays)[G];
                return by_threads(n, threads, [&](std::size_t at, std::size_t count) {
                    sink = loops.read(g + at, count);
                });
            }};
}

void check(largo_status status, const char *what, largo_status expected = LARGO_OK)
{
    if (status == expected) return;
    fail(std::string(what) + ": " + largo_status_name(status) + ": " + largo_last_error());
}

largo_hyper hyper_of(const Optimizer &o)
{
    largo_hyper hyper;
    check(largo_hyper_init(&hyper, o.algo), "largo_hyper_init");
    hyper.lr = 1e-4;
    hyper.non_finite = o.scan ? LARGO_NON_FINITE_SKIP : LARGO_NON_FINITE_PROPAGATE;
    if (o.algo == LARGO_SGD)
        hyper.momentum = 0.9;
    else
        hyper.weight_decay = 0.01;
    return hyper;
}

// No tensor is exempt from decay and trust ratio: on vectors that would make LAMB an AdamW.
std::vector<largo_param> params_of(const Bench &b, const Optimizer &o)
{
    std::vector<largo_param> params;
    std::size_t at = 0;
    for (const Shape &s : b.shapes) {
        const Arrays &a = *b.arrays;
        largo_param p = largo_param_f32(a[Bench::P] + at, a[Bench::G] + at, s.first, s.second);
        p.state[0] = a[Bench::M] + at;
        if (o.algo != LARGO_SGD && o.algo != LARGO_LARS) p.state[1] = a[Bench::V] + at;
        if (o.scratch) p.flags = LARGO_PARAM_GRAD_SCRATCH;
        params.push_back(p);
        at += aligned(s);
    }
    return params;
}

std::shared_ptr<largo_optim> make_optim(const largo_hyper &hyper,
                                        const std::vector<largo_param> &params, int threads)
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = threads;
    largo_ctx *ctx;
    check(largo_ctx_create(&options, &ctx), "largo_ctx_create");
    largo_optim *raw;
    check(largo_optim_create(ctx, &raw), "largo_optim_create");
    largo_ctx_destroy(ctx); // the object keeps it
    const std::shared_ptr<largo_optim> optim(raw, largo_optim_destroy);
    check(largo_optim_add_group(raw, &hyper, params.size(), params.data(), nullptr),
          "largo_optim_add_group");
    return optim;
}

Variant Bench::step(const Optimizer &o) const
{
    const std::shared_ptr<largo_optim> optim =
        make_optim(hyper_of(o), params_of(*this, o), threads);
    const int bytes = family_bytes(o.family) + (o.scan ? family_bytes("scan") : 0);
    const bool spoils_gradient = o.scratch;
    return {o.name, static_cast<double>(bytes) * static_cast<double>(n),
            [this, optim, spoils_gradient] {
                const double start = now();
                check(largo_optim_step(optim.get()), "largo_optim_step");
                const double seconds = now() - start;
                if (spoils_gradient) refill_gradient();
                return seconds;
            }};
}

// A step that a NaN in front of all other gradients stops when they are scanned: finite or not, and
// their norm.
Variant Bench::scan() const
{
    const Optimizer adamw = {"", LARGO_ADAMW, "adamw", false, true};
    static float bad[4] = {0.0f, NAN, 0.0f, 0.0f};
    std::vector<largo_param> params = params_of(*this, adamw);
    params.insert(params.begin(), largo_param_f32(&bad[0], &bad[1], 1, 1));
    params[0].state[0] = &bad[2];
    params[0].state[1] = &bad[3];
    const std::shared_ptr<largo_optim> optim = make_optim(hyper_of(adamw), params, threads);
    return {"scan", 4.0 * static_cast<double>(n), [optim] {
                const double start = now();
                check(largo_optim_step(optim.get()), "largo_optim_step", LARGO_SKIPPED);
                return now() - start;
            }};
}

// The same optimizer on another list, as if that had as many elements as this one.
Variant scaled(const Variant &v, const std::string &suffix, double factor)
{
    return {v.name + suffix, v.bytes * factor,
            [call = v.call, factor] { return call() * factor; }};
}

// ---- what is printed and written ----

std::string cell(const char *format, double value)
{
    if (std::isnan(value)) return "";
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string verdict(const std::string &list, const Series &s, const std::vector<Series> &all)
{
    for (const Goal &goal : goals) {
        if (list != goal.list || s.name != goal.optimizer) continue;
        const Ratio r = paired(s, find(all, goal.base));
        if (!r.known) continue;
        if (s.seconds.size() < 10) return "none: fewer than 10 rounds";
        if (r.noisy()) return "none: MAD is " + cell("%.1f", 100.0 * r.spread()) + " %";
        return std::string(r.median <= goal.limit ? "met" : "MISSED") + ": " +
               cell("%.2f", r.median) + " <= " + cell("%.2f ", goal.limit) + goal.base;
    }
    return "";
}

std::string ratio_cell(const Ratio &r)
{
    return cell("%.3f", r.median) + cell(" ± %.3f", r.mad) + (r.known && r.noisy() ? " (!)" : "");
}

// printf pads bytes, and the sign ± is two of them.
void print_cell(const std::string &text, std::size_t width)
{
    const auto continued = static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) == 0x80; }));
    std::printf(" %-*s |", static_cast<int>(width + continued), text.c_str());
}

std::vector<std::string> cells_of(const Bench &b, const Series &s, const std::vector<Series> &all)
{
    std::vector<std::string> cells = {s.name};
    for (const char *base : {"floor", "adamw", "bound"})
        cells.push_back(ratio_cell(paired(s, find(all, base))));
    for (const double percent : {50.0, 95.0, 99.0})
        cells.push_back(cell("%.3f", 1e3 * percentile(s.seconds, percent)));
    cells.push_back(cell("%.1f", gigabytes_per_second(s)));
    cells.push_back(verdict(b.name, s, all));
    return cells;
}

void print_table(const Bench &b, const std::vector<Series> &all, const Settings &settings,
                 int inner)
{
    std::printf("\n%s: %zu tensors, %.1f M elements; %s, %d thread%s; %d rounds of %d\n\n|",
                b.name.c_str(), b.shapes.size(), static_cast<double>(b.n) * 1e-6,
                isa_in_use().c_str(), settings.threads, settings.threads == 1 ? "" : "s",
                settings.rounds, inner);
    const std::pair<const char *, std::size_t> columns[] = {
        {"variant", 12}, {"x floor", 20}, {"x adamw", 20}, {"x bound", 20}, {"p50 ms", 8},
        {"p95 ms", 8},   {"p99 ms", 8},   {"GB/s", 6},     {"goal", 26}};
    for (const auto &c : columns) print_cell(c.first, c.second);
    std::printf("\n|");
    for (const auto &c : columns) std::printf("%s|", std::string(c.second + 2, '-').c_str());
    for (const Series &s : all) {
        const std::vector<std::string> cells = cells_of(b, s, all);
        std::printf("\n|");
        for (std::size_t i = 0; i < cells.size(); i++) print_cell(cells[i], columns[i].second);
    }
    std::printf("\n\nx: paired median over rounds ± MAD; (!): MAD above 5 %%, no verdict\n");
    std::fflush(stdout);
}

void append_csv(const std::string &file, const Bench &b, const std::vector<Series> &all,
                const Settings &settings)
{
    const bool fresh = std::ifstream(file).peek() == std::ifstream::traits_type::eof();
    std::ofstream out(file, std::ios::app);
    if (fresh)
        out << "date,cpu,isa,threads,list,optimizer,ratio_floor,mad_floor,ratio_adamw,mad_adamw,"
               "ratio_bound,mad_bound,gb_per_s,p50_ms,p95_ms,p99_ms,rounds\n";
    for (const Series &s : all) {
        const bool ours = s.name != "floor" && s.name != "bound";
        out << today() << ",\"" << cpu_model() << "\"," << (ours ? isa_in_use() : best_loops().isa)
            << ',' << settings.threads << ',' << b.name << ',' << s.name;
        for (const char *base : {"floor", "adamw", "bound"}) {
            const Ratio r = paired(s, find(all, base));
            out << ',' << cell("%.4f", r.median) << ',' << cell("%.4f", r.mad);
        }
        out << ',' << cell("%.2f", gigabytes_per_second(s));
        for (const double percent : {50.0, 95.0, 99.0})
            out << ',' << cell("%.4f", 1e3 * percentile(s.seconds, percent));
        out << ',' << settings.rounds << '\n';
    }
    if (!out.flush()) fail("cannot write " + file);
}

void run_list(const std::string &list, const Settings &settings)
{
    const Bench bench(list, settings);
    const bool fits = bench.n * 4 * sizeof(float) <= cache_bytes(3);
    std::vector<Variant> variants = {bench.floor(), bench.read(), bench.scan()};
    std::unique_ptr<Bench> small;
    if (list == "tiny") small = std::make_unique<Bench>("small", settings);
    if (fits) variants.push_back(bench.bound()); // from DRAM, division hides behind memory
    for (const Optimizer &o : optimizers)
        if (std::count(settings.chosen.begin(), settings.chosen.end(), o.name)) {
            variants.push_back(bench.step(o));
            if (!small) continue;
            const double factor = static_cast<double>(bench.n) / static_cast<double>(small->n);
            variants.push_back(scaled(small->step(o), "_small", factor));
        }
    const int inner = settings.inner ? settings.inner : fits ? 20 : 1;
    const std::vector<Series> all = measure(variants, settings.rounds, settings.drop, inner);
    register_series(list, all, {"floor", "adamw", "bound"});
    print_table(bench, all, settings, inner);
    if (!settings.csv.empty()) append_csv(settings.csv, bench, all, settings);
}

} // namespace

int main(int argc, char **argv)
{
    Options options(argc, argv, usage);
    if (options.flag("--cpu-slug")) {
        std::puts(cpu_slug().c_str());
        return 0;
    }
    std::vector<std::string> known;
    for (const Optimizer &o : optimizers) known.push_back(o.name);
    Settings settings;
    const std::vector<std::string> lists = options.words("--list", "gpt2", list_names);
    settings.chosen = options.words("--optimizers", "all", known);
    settings.rounds = static_cast<int>(options.number("--rounds", 50, 1, 100000));
    settings.drop = static_cast<int>(options.number("--drop", 3, 0, 1000));
    settings.inner = static_cast<int>(options.number("--inner", 0, 0, 100000));
    settings.threads = static_cast<int>(options.number("--threads", default_threads(), 1, 1024));
    settings.stagger =
        static_cast<std::size_t>(options.number("--stagger", 1088, 0, 65536)) / 64 * 64;
    settings.csv = options.text("--csv", "");
    const std::string json = options.text("--json", "");
    const bool lines = options.flag("--lines");
    options.start_benchmark(json);
    introduce(settings.threads);
    for (const std::string &list : lists) run_list(list, settings);
    report_registered(lines);
    return 0;
}
