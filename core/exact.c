/* exact.c - rounding of the order-free sum; see exact.h. */
#include "exact.h"

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Round mantissa * 2^exponent, of which `sticky` says that more non-zero bits follow below, to
 * nearest even. mantissa has its top bit (63) set; the result is far from the subnormals. */
static double round_to_double(uint64_t mantissa, int exponent, int sticky)
{
    uint64_t kept = mantissa >> 11;
    const uint64_t rest = mantissa & 2047;
    if (rest > 1024 || (rest == 1024 && (sticky || (kept & 1)))) kept++;
    int biased = exponent + 11 + 1075;
    if (kept >> 53) kept >>= 1, biased++;
    return from_bits((uint64_t)biased << 52 | (kept & ((1ull << 52) - 1)));
}

double largo__exact_round(const largo__exact *sum)
{
    if (sum->limb[LARGO__EXACT_LIMBS]) return from_bits(0x7ff8000000000000ull);
    largo__exact s = *sum;
    largo__exact_normalise(&s);
    const int negative = s.limb[LARGO__EXACT_LIMBS - 1] < 0;
    if (negative) {
        for (int i = 0; i < LARGO__EXACT_LIMBS; i++) s.limb[i] = -s.limb[i];
        largo__exact_normalise(&s);
    }
    uint64_t word[LARGO__EXACT_LIMBS + 1]; /* 32 bits each: the top limb may hold more */
    for (int i = 0; i < LARGO__EXACT_LIMBS; i++) word[i] = (uint64_t)s.limb[i] & 0xffffffffu;
    word[LARGO__EXACT_LIMBS] = (uint64_t)s.limb[LARGO__EXACT_LIMBS - 1] >> 32;

    int top = LARGO__EXACT_LIMBS;
    while (top >= 0 && !word[top]) top--;
    if (top < 0) return 0.0;
    const uint64_t middle = top >= 1 ? word[top - 1] : 0, low = top >= 2 ? word[top - 2] : 0;
    int sticky = 0;
    for (int i = top - 3; i >= 0 && !sticky; i--) sticky = word[i] != 0;

    const int shift = __builtin_clzll(word[top]) - 32; /* 0 .. 31 */
    const uint64_t high = word[top] << 32 | middle;
    const uint64_t mantissa = shift ? high << shift | low >> (32 - shift) : high;
    sticky |= (low & ((1ull << (32 - shift)) - 1)) != 0;
    const double r = round_to_double(mantissa, 32 * (top - 1) + LARGO__EXACT_LOW - shift, sticky);
    return negative ? -r : r;
}
