#!/usr/bin/env python3
"""Groups of doubles with their correctly rounded sum, for core/exact.h: fractions.Fraction adds exactly and
float(Fraction) rounds once to nearest even.

Addends are multiples of 2^-320 below 2^308: what three limbs of 32 bits can hold. Sums of squares of floats lie in
2^-298 .. 2^299.

usage: exact.py emit [DIR]   write DIR/exact.txt (default: ../golden); the same bytes on every run
"""
import os, random, struct, sys
from fractions import Fraction

LOW = -320


def bits(x):
    return "%016x" % struct.unpack("<Q", struct.pack("<d", x))[0]


def at_exponent(rng, e, signed=True):
    """A random double in [2^e, 2^(e+1)) that is a multiple of 2^-320."""
    mantissa = rng.getrandbits(52) | 1 << 52
    drop = max(0, LOW - (e - 52))
    x = (mantissa >> drop << drop) * 2.0 ** -52 * 2.0 ** e
    return -x if signed and rng.random() < 0.5 else x


def wide(rng):
    n = rng.choice((1, 2, 3, 5, 8, 17, 40))
    return [at_exponent(rng, rng.randint(-298, 307)) for _ in range(n)]


def near(rng):
    e, n = rng.randint(-298, 300), rng.choice((2, 7, 30, 60))
    return [at_exponent(rng, min(307, max(-298, e + rng.randint(-30, 30)))) for _ in range(n)]


def squares(rng):
    """Positive, as chunk sums are."""
    e = rng.randint(-290, 250)
    return [at_exponent(rng, max(-298, e + rng.randint(-8, 8)), False) for _ in range(rng.choice((4, 32, 64)))]


def cancelling(rng):
    """All but the last few bits, or all, cancel."""
    out = []
    for _ in range(rng.choice((1, 4, 15))):
        x = at_exponent(rng, rng.randint(-240, 307))
        out += [x, -x]
    if rng.random() < 0.8:
        out.append(at_exponent(rng, rng.randint(-298, -250)))
    return out


def tie(rng):
    """x plus half an ulp of it, exactly, or off by the smallest or a middling amount to either side."""
    e = rng.randint(-200, 300)
    x = at_exponent(rng, e)
    half = 2.0 ** (e - 53) * (1 if x > 0 else -1)
    out = [x, half]
    side = rng.choice((0, 1, -1))
    if side:
        out.append(side * 2.0 ** rng.choice((LOW, max(LOW, e - 54 - rng.randint(1, 200)))))
    if rng.random() < 0.3:  # the carry runs through all bits
        x = 2.0 ** (e + 1) - 2.0 ** (e - 52)
        out[0], out[1] = x, 2.0 ** (e - 53)
    if rng.random() < 0.3:  # the half arrives in pieces
        out[1:2] = [out[1] / 2, out[1] / 4, out[1] / 4]
    return out


def one(rng):
    return [at_exponent(rng, rng.randint(-298, 307))]


SPECIAL = [[], [0.0], [-0.0], [0.0, -0.0], [2.0 ** LOW], [-2.0 ** LOW], [2.0 ** LOW, -2.0 ** LOW], [2.0 ** 307], [-2.0 ** 307] * 2,
           [2.0 ** 308 - 2.0 ** 255], [2.0 ** 308 - 2.0 ** 255] * 64, [2.0 ** 256 * (1 - 2.0 ** -24) ** 2] * 3,
           [2.0 ** -298] * 5, [2.0 ** 307, 2.0 ** LOW], [2.0 ** 307, -2.0 ** LOW], [1.0] + [2.0 ** -54] * 4, [1.0] + [2.0 ** -53] * 3,
           [2.0 ** (32 * k) for k in range(-10, 10)] * 2, [2.0 ** (32 * k) * (1 if k % 2 else -1) for k in range(-10, 10)],
           [-(2.0 ** (32 * k)) for k in range(-9, 9)], [4294967295.0 * 2.0 ** (32 * k) for k in range(-9, 7)] * 2]
NOT_HELD = [float("inf"), float("-inf"), float("nan"), 2.0 ** 320, -2.0 ** 1000, 1.7976931348623157e308, 2.0 ** -321, -2.0 ** -400,
            5e-324, 2.0 ** -298 * (1 + 2.0 ** -30), 2.0 ** -1022]


def emit(out):
    rng = random.Random(20240229)
    groups = list(SPECIAL)
    for make, n in ((wide, 500), (near, 400), (squares, 300), (cancelling, 300), (tie, 300), (one, 180)):
        groups += [make(rng) for _ in range(n)]
    with open(os.path.join(out, "exact.txt"), "w") as f:
        for g in groups:
            assert all(abs(x) < 2.0 ** 308 and (Fraction(x) * 2 ** -LOW).denominator == 1 for x in g)
            f.write(" ".join([bits(float(sum(map(Fraction, g), Fraction(0))))] + [bits(x) for x in g]) + "\n")
        for x in NOT_HELD:
            f.write("nan " + " ".join(bits(y) for y in [1.0, x, -2.0 ** 40]) + "\n")


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    if sys.argv[1:2] != ["emit"]:
        sys.exit(__doc__)
    emit(sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "..", "golden"))
