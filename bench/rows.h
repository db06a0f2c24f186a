// rows.h - the rows of algos.def as values: what exists, and the bytes each pass moves.
#ifndef LARGO_BENCH_ROWS_H
#define LARGO_BENCH_ROWS_H

#include <array>
#include <string>
#include "internals.h"

namespace largo_bench
{

struct Row {
    const char *family;
    int pass, reads, writes, terms;
    bool matrix;

    std::string name() const { return std::string(family) + "_pass" + std::to_string(pass); }

    // Of one element. A line that is read and written counts twice; factors of rows and columns
    // stay in cache and do not count.
    int bytes() const { return 4 * (streams(reads) + streams(writes)); }

  private:
    static int streams(int set)
    {
        int n = 0;
        for (const int s : {LARGO__P, LARGO__G, LARGO__M, LARGO__V, LARGO__U}) n += (set & s) != 0;
        return n;
    }
};

namespace rows_detail
{
constexpr bool FLAT = false, MATRIX = true;
#define FAMILY(name, algo, rank, ...) constexpr bool matrix_##name = rank;
#include "../optim/algos.def"
} // namespace rows_detail

// In the order of LARGO__ROW_*, so an index here is an index of a table of kernels.
inline const std::array<Row, LARGO__ROWS> &rows()
{
    static const std::array<Row, LARGO__ROWS> all = {{
#define PASS(family, n, update, reads, writes, op, scope, terms, ...)                              \
    {#family, n, reads, writes, terms, rows_detail::matrix_##family},
#include "../optim/algos.def"
    }};
    return all;
}

// Bytes of one element in all passes of a family.
inline int family_bytes(const std::string &family)
{
    int bytes = 0;
    for (const Row &row : rows())
        if (family == row.family) bytes += row.bytes();
    return bytes;
}

} // namespace largo_bench

#endif
