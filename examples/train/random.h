/* random.h - the random numbers of largo-train: the same seed gives the same run. */
#ifndef TRAIN_RANDOM_H
#define TRAIN_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): number i of a stream is a hash of key + i * c. */
struct random {
    uint64_t state;
    bool has_spare;
    double spare; /* Box-Muller makes two normals at a time */
};

/* Streams of one seed are independent: initial weights and sample order do not share numbers, so
 * that two networks of one seed see their data in the same order. */
enum random_stream { STREAM_WEIGHTS = 1, STREAM_ORDER = 2, STREAM_CHECK = 3 };

struct random random_make(uint64_t seed, enum random_stream stream);

/* Uniform over [0, bound); bound >= 1. */
uint64_t random_below(struct random *random, uint64_t bound);

/* Normal with mean 0 and deviation 1. */
double random_normal(struct random *random);

/* A uniform permutation of order[0 .. n), in place (Fisher and Yates). */
void random_shuffle(struct random *random, size_t n, uint32_t order[]);

#endif
