/* power.c - x^n by multiplication, x^a as 2^(a log2 x) with series for the logarithm and 2^f. */
#include "power.h"

static const double SQRT_HALF = 0.70710678118654752440;
static const double TWO_BY_LN2 = 2.88539008177792681472;
static const double LN2 = 0.69314718055994530942;

double largo__power(double x, int64_t n)
{
    double r = 1.0;
    for (uint64_t left = (uint64_t)n; left; left >>= 1) {
        if (left & 1) r *= x;
        x *= x;
    }
    return r;
}

/* log2 of x in [sqrt(1/2), sqrt(2)): 2 / ln 2 artanh(s) with s = (x - 1) / (x + 1), |s| < 0.172. */
static double log2_series(double x)
{
    const double s = (x - 1.0) / (x + 1.0), y = s * s;
    double sum = 0.0;
    for (int i = 25; i > 0; i -= 2) sum = sum * y + 1.0 / i;
    return TWO_BY_LN2 * s * sum;
}

/* 2^f, |f| <= 1/2. */
static double exp2_series(double f)
{
    const double y = f * LN2;
    double sum = 1.0;
    for (int i = 15; i > 0; i--) sum = 1.0 + sum * y / i;
    return sum;
}

double largo__power_real(double x, double a)
{
    enum {
        MOST_MULTIPLIED = 64
    }; /* errors of multiplications add up, those of the series hardly */
    if (a <= MOST_MULTIPLIED && a == (double)(int)a) return largo__power(x, (int64_t)a);
    if (x == 1.0) return 1.0;
    if (x == 0.0 || a >= 0x1p64) return 0.0; /* (1 - 2^-53)^(2^64) is below 2^-2900 */
    int e = 0;
    for (; x < SQRT_HALF; x *= 2.0) e--;

    /* a log2 x = high e + rest, where the upper half of a makes the first product exact. */
    const double shifted = a * 0x1.0000002p27, high = shifted - (shifted - a);
    const double whole = high * e, rest = (a - high) * e + a * log2_series(x);
    if (whole + rest < -1075.0) return 0.0;
    const int n = (int)(0.5 - (whole + rest)); /* nearest: the exponent is not above 0 */
    return exp2_series((whole + n) + rest) * largo__power(0.5, n);
}
