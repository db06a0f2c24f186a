#include "machine.h"

#include <benchmark/benchmark.h>
#include <omp.h>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include "internals.h"
#include "options.h"

namespace largo_bench
{

namespace
{

const Loops *const all_loops[] = {
#define ISA(name, test) &loops_##name,
#include "../cpu/isa.def"
#undef ISA
};

// The first "key : value" of /proc/cpuinfo; "" if there is none.
std::string cpuinfo(const std::string &key)
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::size_t end = line.find_last_not_of(" \t", colon ? colon - 1 : 0);
        if (line.substr(0, end + 1) != key) continue;
        const std::size_t value = line.find_first_not_of(" \t", colon + 1);
        return value == std::string::npos ? "" : line.substr(value);
    }
    return "";
}

} // namespace

std::string cpu_model()
{
    std::string name = cpuinfo("model name"), family = cpuinfo("cpu family");
    if (!family.empty()) return name + " (family " + family + " model " + cpuinfo("model") + ")";
    family = cpuinfo("CPU implementer"); // Arm
    if (!family.empty()) return "Arm implementer " + family + " part " + cpuinfo("CPU part");
    return name.empty() ? "unknown CPU" : name;
}

std::string cpu_slug()
{
    std::string slug;
    for (const char c : cpu_model()) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            slug += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        else if (!slug.empty() && slug.back() != '-')
            slug += '-';
    }
    while (!slug.empty() && slug.back() == '-') slug.pop_back();
    return slug;
}

std::string today()
{
    const std::time_t now = std::time(nullptr);
    char text[16];
    std::strftime(text, sizeof text, "%Y-%m-%d", std::localtime(&now));
    return text;
}

std::string isa_name(std::size_t i, bool *here)
{
    const char *missing = "";
    const char *name = largo__cpu_isa(i, &missing);
    *here = name && !*missing;
    return name ? name : "";
}

std::string isa_in_use()
{
    std::size_t isa;
    if (largo__cpu_isa_choose(&isa) != LARGO_OK) fail(largo_last_error());
    bool here;
    return isa_name(isa, &here);
}

const Loops &loops_of(std::size_t i)
{
    return *all_loops[i];
}

const Loops &best_loops()
{
    std::size_t best = 0;
    bool here;
    for (std::size_t i = 0; !isa_name(i, &here).empty(); i++)
        if (here) best = i;
    return loops_of(best);
}

std::size_t cache_bytes(int level)
{
    std::size_t bytes = 0;
    for (const auto &cache : benchmark::CPUInfo::Get().caches)
        if (cache.level == level && cache.type != "Instruction")
            bytes = static_cast<std::size_t>(cache.size);
    if (bytes) return bytes;
    return level >= 3 ? std::size_t{32} << 20 : level == 2 ? std::size_t{1} << 20 : 32 << 10;
}

int default_threads()
{
    return omp_get_max_threads();
}

void introduce(int threads)
{
    benchmark::AddCustomContext("cpu", cpu_model());
    benchmark::AddCustomContext("isa", isa_in_use());
    benchmark::AddCustomContext("isa_of_bounds", best_loops().isa);
    benchmark::AddCustomContext("threads", std::to_string(threads));
    benchmark::AddCustomContext("largo_version", std::to_string(largo_version()));
    std::fprintf(stderr, "%s, L2 %zu KiB, L3 %zu KiB; library %s, bounds %s; %d threads\n",
                 cpu_model().c_str(), cache_bytes(2) >> 10, cache_bytes(3) >> 10,
                 isa_in_use().c_str(), best_loops().isa, threads);
    double load;
    if (getloadavg(&load, 1) == 1 && load > 0.5)
        std::fprintf(stderr, "WARNING: the load average is %.1f; the machine was not quiet\n",
                     load);
}

} // namespace largo_bench
