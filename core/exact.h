/* exact.h - a sum of doubles that does not depend on their order.
 *
 * Fixed point in 64-bit integers: limb i holds payload of 32 bits and weighs 2^(32 i - 320). Adding
 * a double touches three limbs; merging two sums adds them limb by limb, which any all-reduce or
 * atomic of integers does exactly, so the order of chunks, threads, blocks and ranks cannot matter.
 * One rounding at the end.
 *
 * Range of an addend: below 2^308, no bit below 2^-320: every sum of squares of floats (2^-298 to
 * 2^256 n). What is outside, inf or NaN is counted in the last limb and makes the result NaN.
 * Head room: an addend puts less than 2^32 into a limb, so 2^31 of them fit before a limb could
 * overflow: 2^43 elements in chunks of 4096.
 */
#ifndef LARGO_CORE_EXACT_H
#define LARGO_CORE_EXACT_H

#include <stdint.h>
#include <string.h>
#include "lang.h"

enum {
    LARGO__EXACT_LOW = -320, /* exponent of the lowest bit */
    LARGO__EXACT_LIMBS = 20,
    LARGO__EXACT_WORDS = LARGO__EXACT_LIMBS + 1
};

typedef struct largo__exact {
    int64_t limb[LARGO__EXACT_WORDS]; /* the last counts what could not be added */
} largo__exact;

/* A double as three limbs beginning at limb `first`; bad: it does not fit. */
typedef struct largo__exact_parts {
    int64_t part[3];
    int first, bad;
} largo__exact_parts;

LARGO_FN void largo__exact_zero(largo__exact *sum)
{
    memset(sum, 0, sizeof *sum);
}

LARGO_FN largo__exact_parts largo__exact_split(double x)
{
    largo__exact_parts s;
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = (int)(bits >> 52 & 2047);
    uint64_t mantissa = (bits & ((1ull << 52) - 1)) | ((uint64_t)(exponent != 0) << 52);
    int at = (exponent ? exponent : 1) - 1075 - LARGO__EXACT_LOW; /* of the lowest bit */
    s.bad = exponent == 2047;
    if (mantissa && at < 0) { /* bits below the lowest limb must be zero */
        s.bad |= at < -52 || (mantissa & ((1ull << -at) - 1));
        mantissa = s.bad ? 0 : mantissa >> -at;
        at = 0;
    }
    s.bad |= mantissa && (at >> 5) + 2 >= LARGO__EXACT_LIMBS;
    if (s.bad || !mantissa) mantissa = 0, at = 0;
    s.first = at >> 5;
    const int shift = at & 31;
    const uint64_t low = mantissa << shift, high = shift ? mantissa >> (64 - shift) : 0;
    const int64_t sign = -(int64_t)(bits >> 63); /* 0 or -1: two's complement by xor and minus */
    s.part[0] = ((int64_t)(low & 0xffffffffu) ^ sign) - sign;
    s.part[1] = ((int64_t)(low >> 32) ^ sign) - sign;
    s.part[2] = ((int64_t)high ^ sign) - sign;
    return s;
}

LARGO_FN void largo__exact_add(largo__exact *sum, double x)
{
    const largo__exact_parts s = largo__exact_split(x);
    sum->limb[LARGO__EXACT_LIMBS] += s.bad;
    for (int i = 0; i < 3; i++) sum->limb[s.first + i] += s.part[i];
}

LARGO_FN void largo__exact_merge(largo__exact *sum, const largo__exact *other)
{
    for (int i = 0; i < LARGO__EXACT_WORDS; i++) sum->limb[i] += other->limb[i];
}

/* Carry, so that every limb but the top one is in [0, 2^32). The value stays. */
LARGO_FN void largo__exact_normalise(largo__exact *sum)
{
    int64_t carry = 0;
    for (int i = 0; i < LARGO__EXACT_LIMBS - 1; i++) {
        const int64_t v = sum->limb[i] + carry;
        carry = v >> 32;
        sum->limb[i] = v & 0xffffffff;
    }
    sum->limb[LARGO__EXACT_LIMBS - 1] += carry;
}

/* The nearest double, ties to even; NaN if an addend could not be held. */
double largo__exact_round(const largo__exact *sum);

#endif
