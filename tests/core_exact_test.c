/* labels: oracle short
 *
 * core/exact.h against golden/exact.txt, which Python's fractions made: bit for bit, whatever the
 * order, the split into several accumulators, and however early one is normalised. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/exact.h"
#include "support.h"

enum { MOST = 128, PARTS = 5 };

/* One line of the file. */
typedef struct sums {
    size_t line, n;
    double addend[MOST];
    double want;
} sums;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double parse(const char *hex)
{
    const uint64_t bits = strtoull(hex, NULL, 16);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t next(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

static void shuffle(double *x, size_t n, uint64_t *seed)
{
    for (size_t i = n; i > 1; i--) {
        const size_t j = (size_t)next(seed) % i;
        const double swap = x[i - 1];
        x[i - 1] = x[j];
        x[j] = swap;
    }
}

static void check(const sums *s, const char *how, const largo__exact *sum)
{
    const double got = largo__exact_round(sum);
    if (isnan(s->want) ? isnan(got) : bits_of(got) == bits_of(s->want)) return;
    fail_msg("exact.txt line %zu, %zu addends, %s: got %016llx (%a), wanted %016llx (%a)", s->line,
             s->n, how, (unsigned long long)bits_of(got), got, (unsigned long long)bits_of(s->want),
             s->want);
}

static void in_order(const sums *s, uint64_t *seed)
{
    (void)seed;
    largo__exact sum;
    largo__exact_zero(&sum);
    for (size_t i = 0; i < s->n; i++) largo__exact_add(&sum, s->addend[i]);
    check(s, "in order", &sum);
    check(s, "rounded twice", &sum); /* rounding does not change the sum */
}

static void shuffled(const sums *s, uint64_t *seed)
{
    sums other = *s;
    for (int k = 0; k < 3; k++) {
        largo__exact sum;
        largo__exact_zero(&sum);
        shuffle(other.addend, other.n, seed);
        for (size_t i = 0; i < other.n; i++) largo__exact_add(&sum, other.addend[i]);
        check(s, "shuffled", &sum);
    }
}

/* Several accumulators, merged into a random one of them in random order. */
static void split(const sums *s, uint64_t *seed)
{
    largo__exact part[PARTS];
    for (int p = 0; p < PARTS; p++) largo__exact_zero(&part[p]);
    for (size_t i = 0; i < s->n; i++) largo__exact_add(&part[next(seed) % PARTS], s->addend[i]);
    for (int left = PARTS; left > 1; left--) {
        const int into = (int)(next(seed) % (uint64_t)left);
        const int from = (into + 1 + (int)(next(seed) % (uint64_t)(left - 1))) % left;
        largo__exact_merge(&part[into], &part[from]);
        if (from != left - 1) part[from] = part[left - 1]; /* into the hole */
    }
    check(s, "split", &part[0]);
}

/* Carries made at any moment change nothing. */
static void normalised(const sums *s, uint64_t *seed)
{
    largo__exact sum, part;
    largo__exact_zero(&sum);
    largo__exact_zero(&part);
    for (size_t i = 0; i < s->n; i++) {
        largo__exact *into = next(seed) % 2 ? &sum : &part;
        largo__exact_add(into, s->addend[i]);
        if (next(seed) % 2) largo__exact_normalise(into);
    }
    largo__exact_normalise(&part);
    largo__exact_merge(&part, &sum);
    check(s, "normalised early", &part);
    largo__exact_normalise(&part);
    check(s, "normalised last", &part);
    for (int i = 0; i < LARGO__EXACT_LIMBS - 1; i++)
        assert_true(part.limb[i] >= 0 && part.limb[i] < (int64_t)1 << 32);
}

static int read_line(FILE *file, char *text, size_t size, sums *s)
{
    if (!fgets(text, (int)size, file)) return 0;
    s->line++;
    s->n = 0;
    char *save, *word = strtok_r(text, " \n", &save);
    s->want = strcmp(word, "nan") == 0 ? NAN : parse(word);
    while ((word = strtok_r(NULL, " \n", &save))) {
        assert_true(s->n < MOST);
        s->addend[s->n++] = parse(word);
    }
    return 1;
}

static void each_line(void (*test)(const sums *s, uint64_t *seed))
{
    FILE *file = fopen(LARGO_GOLDEN "/exact.txt", "r");
    assert_non_null(file);
    static char text[MOST * 17 + 32];
    sums s = {0};
    uint64_t seed = 1;
    while (read_line(file, text, sizeof text, &s)) test(&s, &seed);
    fclose(file);
    assert_true(s.line > 2000);
}

static void test_in_order(void **state)
{
    (void)state;
    each_line(in_order);
}

static void test_shuffled(void **state)
{
    (void)state;
    each_line(shuffled);
}

static void test_split(void **state)
{
    (void)state;
    each_line(split);
}

static void test_normalised(void **state)
{
    (void)state;
    each_line(normalised);
}

/* 2^22 addends that fill every bit of a limb: far from overflow, and the sum is known. */
static void head_room(void **state)
{
    (void)state;
    largo__exact sum;
    largo__exact_zero(&sum);
    const double x = 0x1.fffffffffffffp200;
    for (int i = 0; i < 1 << 22; i++) largo__exact_add(&sum, x);
    assert_true(largo__exact_round(&sum) == x * 0x1p22);
    for (int i = 0; i < 1 << 22; i++) largo__exact_add(&sum, -x);
    assert_true(bits_of(largo__exact_round(&sum)) == 0);
    for (int k = 22; k < 31; k++) { /* doubling it reaches the head room promised: 2^31 addends */
        if (k == 22)
            for (int i = 0; i < 1 << 22; i++) largo__exact_add(&sum, x);
        const largo__exact twin = sum;
        largo__exact_merge(&sum, &twin);
    }
    assert_true(largo__exact_round(&sum) == x * 0x1p31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order), cmocka_unit_test(test_shuffled),
        cmocka_unit_test(test_split), cmocka_unit_test(test_normalised),
        cmocka_unit_test(head_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
