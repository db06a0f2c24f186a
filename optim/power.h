/* power.h - powers of + - * / alone: libm's pow differs between libraries and devices. */
#ifndef LARGO_OPTIM_POWER_H
#define LARGO_OPTIM_POWER_H

#include <stdint.h>

/* x^n by square and multiply; n >= 0. */
double largo__power(double x, int64_t n);

/* x^a for 0 <= x <= 1 and finite a > 0. Relative error below 2^-52 (1 + a) up to a = 64, below 2^-41
 * beyond; where the result is below 2^-1022, below 2^-1073 absolute on top. Where a is whole and at
 * most 64 it never falls as x rises. */
double largo__power_real(double x, double a);

#endif
