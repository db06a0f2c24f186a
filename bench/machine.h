// machine.h - what a number was measured on.
#ifndef LARGO_BENCH_MACHINE_H
#define LARGO_BENCH_MACHINE_H

#include <cstddef>
#include <string>
#include "loops.h"

namespace largo_bench
{

// "AMD EPYC (family 25 model 17)": virtual machines hide the name, not the numbers.
std::string cpu_model();
// The same for a file name: "amd-epyc-family-25-model-17".
std::string cpu_slug();
// Today, "2024-12-31".
std::string today();

// The instruction set the library chooses; LARGO_ISA lowers it.
std::string isa_in_use();
// Instruction set i in the order of isa.def, "" past the last; is it here?
std::string isa_name(std::size_t i, bool *here);
// Loops of instruction set i, and of the best one that is here.
const Loops &loops_of(std::size_t i);
const Loops &best_loops();

// Bytes of one data cache of this level; a guess where the machine does not tell.
std::size_t cache_bytes(int level);
int default_threads();

// Say what is measured on, in the JSON of Google Benchmark and on stderr, and warn if the machine
// is not quiet: the load counts what others run.
void introduce(int threads);

} // namespace largo_bench

#endif
