/* canon.h - the one order in which largo sums; docs/determinism.md says it in prose.
 *
 * A segment is cut into chunks of consecutive elements. Inside a chunk element i is squared and
 * added by fmaf to float32 lane i mod LANES; lanes are widened and added by a halving tree in
 * double. A matrix is cut into tiles: there a row sums in LANES lanes (column mod LANES) and the
 * tree, and a column is a lane of at most TILE_ROWS terms. Super tiles bound what a rank must hold
 * for its results to be those of one process. All numbers depend on shapes only.
 */
#ifndef LARGO_CORE_CANON_H
#define LARGO_CORE_CANON_H

#include <stdint.h>
#include <string.h>
#include "lang.h"

enum {
    LARGO__LANES = 128, /* a CUDA warp of float4, or eight zmm registers */
    LARGO__CHUNK = 4096,
    LARGO__TILE_ROWS = 32,
    LARGO__TILE_COLS = 4096,
    LARGO__SUPER_ROWS = 256
};

/* Squares of floats under- and overflow in float32. A sum outside this range, or not finite, is
 * made again in double, from the squares exactly. */
#define LARGO__LOOK_LOW 0x1p-80
#define LARGO__LOOK_HIGH 0x1p100

LARGO_FN int largo__needs_second_look(double sum)
{
    return !(sum >= LARGO__LOOK_LOW && sum <= LARGO__LOOK_HIGH);
}

/* Maxima are those of the bits of |x|: exact in any order, NaN > inf > finite. */
LARGO_FN uint32_t largo__magnitude_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffff;
}

LARGO_FN double largo__magnitude(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

LARGO_FN double largo__larger(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x > y ? a : b;
}

/* A statistic and one more part of it: the larger magnitude, or the sum. */
LARGO_FN double largo__joined(double stat, double part, int is_max)
{
    return is_max ? largo__larger(stat, part) : stat + part;
}

/* Lanes that n elements reach, up to a power of two: the others are +0, and adding them in the tree
 * would change nothing. */
LARGO_FN int largo__used_lanes(int64_t n)
{
    int used = LARGO__LANES;
    while (used / 2 >= n && used > 1) used /= 2;
    return used;
}

/* The halving tree over the used lanes. */
LARGO_FN double largo__tree(double lane[LARGO__LANES], int used)
{
    for (int w = used / 2; w; w /= 2)
        for (int l = 0; l < w; l++) lane[l] += lane[l + w];
    return lane[0];
}

#endif
