/* philox.h - counter-based random numbers, Philox4x32-10 of Random123 (Salmon et al., SC 2011).
 *
 * A draw is a pure function of key and counter, so threads, shards and resumption cannot change it.
 */
#ifndef LARGO_CORE_PHILOX_H
#define LARGO_CORE_PHILOX_H

#include <stdint.h>
#include <Random123/philox.h>
#include "lang.h"

typedef struct largo__draw {
    uint32_t word[4];
} largo__draw;

LARGO_FN largo__draw largo__philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3)
{
    const philox4x32_ctr_t counter = {{c0, c1, c2, c3}};
    const philox4x32_key_t k = {{(uint32_t)key, (uint32_t)(key >> 32)}};
    const philox4x32_ctr_t r = philox4x32(counter, k);
    const largo__draw d = {{r.v[0], r.v[1], r.v[2], r.v[3]}};
    return d;
}

#endif
