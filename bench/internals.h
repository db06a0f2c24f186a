// internals.h - what the benchmarks use of the library beyond its public header: the tables of
// kernels and the list of instruction sets.
#ifndef LARGO_BENCH_INTERNALS_H
#define LARGO_BENCH_INTERNALS_H

#include <math.h> // before extern "C": C++ overloads these
#include <stddef.h>
#include <stdint.h>
#include "largo.h"

extern "C" {
#include "../cpu/detect.h"
#include "../cpu/kernels.h"
}

#endif
