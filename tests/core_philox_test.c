/* labels: oracle short
 *
 * core/philox.h against the known answers for philox4x32-10 that Random123 ships (kat_vectors). */
#include <string.h>
#include "core/philox.h"
#include "support.h"

typedef struct answer {
    uint32_t counter[4], key[2], want[4];
} answer;

static const answer answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};

static largo__draw draw(const answer *a)
{
    const uint64_t key = (uint64_t)a->key[1] << 32 | a->key[0];
    return largo__philox(key, a->counter[0], a->counter[1], a->counter[2], a->counter[3]);
}

static void known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const largo__draw d = draw(&answers[i]);
        for (int w = 0; w < 4; w++)
            if (d.word[w] != answers[i].want[w])
                fail_msg("answer %zu, word %d: %08x, wanted %08x", i, w, d.word[w],
                         answers[i].want[w]);
    }
}

/* Every bit of key and counter matters: each flip turns about half of the 128 bits. */
static void every_bit_counts(void **state)
{
    (void)state;
    const answer *a = &answers[2];
    const largo__draw before = draw(a);
    for (int bit = 0; bit < 192; bit++) {
        answer b = *a;
        uint32_t *word = bit < 128 ? &b.counter[bit / 32] : &b.key[bit / 32 - 4];
        *word ^= 1u << bit % 32;
        const largo__draw after = draw(&b);
        int turned = 0;
        for (int w = 0; w < 4; w++) turned += __builtin_popcount(before.word[w] ^ after.word[w]);
        if (turned < 32 || turned > 96) fail_msg("bit %d turns %d of 128 bits", bit, turned);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_answers),
                                       cmocka_unit_test(every_bit_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
