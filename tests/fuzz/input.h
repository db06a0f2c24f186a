/* input.h - what every fuzz target uses: bytes of the input as numbers, and the check that fails. */
#ifndef LARGO_TESTS_FUZZ_INPUT_H
#define LARGO_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The property holds, or the run ends: that is how libFuzzer learns of it. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (condition) break;                                                                      \
        fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);             \
        abort();                                                                                   \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What is left of the input. When nothing is, every byte is 0: targets decode zeros to the most
 * ordinary choice. */
typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static inline uint8_t take(input *in)
{
    if (!in->left) return 0;
    in->left--;
    return *in->at++;
}

static inline size_t take_below(input *in, size_t n)
{
    return take(in) % n;
}

static inline void take_bytes(input *in, void *out, size_t n)
{
    uint8_t *bytes = out;
    for (size_t i = 0; i < n; i++) bytes[i] = take(in);
}

/* A string of at most `size` - 1 bytes. */
static inline const char *take_text(input *in, char *out, size_t size)
{
    const size_t n = take_below(in, size);
    take_bytes(in, out, n);
    out[n] = '\0';
    return out;
}

/* Small numbers, edges, or any. */
static inline int64_t take_integer(input *in)
{
    static const int64_t edges[] = {-1,
                                    0,
                                    1,
                                    INT32_MAX,
                                    INT32_MIN,
                                    UINT32_MAX,
                                    INT64_C(1) << 59,
                                    INT64_C(1) << 60,
                                    INT64_C(1) << 61,
                                    INT64_MAX - 1,
                                    INT64_MAX,
                                    INT64_MIN};
    const uint8_t kind = take(in);
    if (kind < 224) return kind;
    int64_t any;
    if (kind < 240) return edges[take_below(in, COUNT(edges))];
    take_bytes(in, &any, sizeof any);
    return any;
}

#endif
