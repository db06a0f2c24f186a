// options.h - command lines: --name value or --name=value. What is not taken here is left for
// Google Benchmark, whose options begin with --benchmark_.
#ifndef LARGO_BENCH_OPTIONS_H
#define LARGO_BENCH_OPTIONS_H

#include <string>
#include <vector>

namespace largo_bench
{

[[noreturn]] void fail(const std::string &why);

class Options
{
  public:
    // Prints `usage` and exits if --help is given.
    Options(int argc, char **argv, const char *usage);

    bool flag(const std::string &name);
    // The last one given wins, so a script may come first with its own.
    std::string text(const std::string &name, const std::string &otherwise);
    long number(const std::string &name, long otherwise, long least, long most);

    // "a,b" as words; each has to be one of `known`. "all" and "" are all of them.
    std::vector<std::string> words(const std::string &name, const std::string &otherwise,
                                   const std::vector<std::string> &known);

    // Give the rest to Google Benchmark, which stops the program over what it does not know.
    // json: "" or a file for its JSON.
    void start_benchmark(const std::string &json);

  private:
    std::vector<std::string> args_;
};

} // namespace largo_bench

#endif
