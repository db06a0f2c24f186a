#include "random.h"

#include <math.h>

static const uint64_t golden = 0x9E3779B97F4A7C15u;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static uint64_t next(struct random *random)
{
    random->state += golden;
    return mix(random->state);
}

struct random random_make(uint64_t seed, enum random_stream stream)
{
    /* Hashed twice, or seed s in stream 2 would be a shifted copy of another seed in stream 1. */
    const struct random made = {mix(mix(seed + golden) + (uint64_t)stream * golden), false, 0.0};
    return made;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
    /* The last, incomplete interval of 2^64 / bound is refused: every result is equally likely. */
    const uint64_t refused = (UINT64_MAX - bound + 1) % bound;
    uint64_t x;
    do x = next(random);
    while (x < refused);
    return x % bound;
}

/* (0, 1]: the logarithm below must not see 0. */
static double uniform(struct random *random)
{
    return (double)((next(random) >> 11) + 1) * 0x1p-53;
}

double random_normal(struct random *random)
{
    if (random->has_spare) {
        random->has_spare = false;
        return random->spare;
    }
    const double radius = sqrt(-2.0 * log(uniform(random)));
    const double angle = 6.283185307179586 * uniform(random);
    random->spare = radius * sin(angle);
    random->has_spare = true;
    return radius * cos(angle);
}

void random_shuffle(struct random *random, size_t n, uint32_t order[])
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)random_below(random, i);
        const uint32_t kept = order[i - 1];
        order[i - 1] = order[j];
        order[j] = kept;
    }
}
