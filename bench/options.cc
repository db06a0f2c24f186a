#include "options.h"

#include <benchmark/benchmark.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace largo_bench
{

void fail(const std::string &why)
{
    std::fprintf(stderr, "%s\n", why.c_str());
    std::exit(1);
}

Options::Options(int argc, char **argv, const char *usage) : args_(argv, argv + argc)
{
    if (!flag("--help")) return;
    std::fputs(usage, stdout);
    std::exit(0);
}

bool Options::flag(const std::string &name)
{
    const auto at = std::find(args_.begin() + 1, args_.end(), name);
    if (at == args_.end()) return false;
    args_.erase(at);
    return true;
}

std::string Options::text(const std::string &name, const std::string &otherwise)
{
    std::string value = otherwise;
    for (auto at = args_.begin() + 1; at != args_.end();) {
        if (at->rfind(name + "=", 0) == 0) {
            value = at->substr(name.size() + 1);
            at = args_.erase(at);
        } else if (*at == name) {
            if (at + 1 == args_.end()) fail(name + " needs a value; see --help");
            value = at[1];
            at = args_.erase(at, at + 2);
        } else {
            ++at;
        }
    }
    return value;
}

long Options::number(const std::string &name, long otherwise, long least, long most)
{
    const std::string value = text(name, std::to_string(otherwise));
    char *end;
    const long n = std::strtol(value.c_str(), &end, 10);
    if (value.empty() || *end || n < least || n > most)
        fail(name + " is \"" + value + "\"; it must be " + std::to_string(least) + " to " +
             std::to_string(most));
    return n;
}

std::vector<std::string> Options::words(const std::string &name, const std::string &otherwise,
                                        const std::vector<std::string> &known)
{
    const std::string value = text(name, otherwise);
    if (value.empty() || value == "all") return known;
    std::vector<std::string> found;
    for (std::size_t from = 0; from <= value.size();) {
        const std::size_t comma = std::min(value.find(',', from), value.size());
        const std::string word = value.substr(from, comma - from);
        if (std::find(known.begin(), known.end(), word) == known.end()) {
            std::string all;
            for (const std::string &k : known) all += " " + k;
            fail(name + " has \"" + word + "\"; it takes, with commas, all or:" + all);
        }
        found.push_back(word);
        from = comma + 1;
    }
    return found;
}

void Options::start_benchmark(const std::string &json)
{
    if (!json.empty()) {
        args_.push_back("--benchmark_out=" + json);
        args_.push_back("--benchmark_out_format=json");
    }
    std::vector<char *> argv;
    for (std::string &arg : args_) argv.push_back(&arg[0]);
    argv.push_back(nullptr);
    int argc = static_cast<int>(args_.size());
    benchmark::Initialize(&argc, argv.data());
    if (benchmark::ReportUnrecognizedArguments(argc, argv.data())) std::exit(1);
}

} // namespace largo_bench
