/* labels: short
 *
 * The table "who uses which field" of docs/optimizers/README.md against what largo_hyper_init does.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "support.h"

enum { ALGOS = 6 };
static const largo_algo algos[ALGOS] = {LARGO_SGD,  LARGO_ADAMW, LARGO_LARS,
                                        LARGO_LAMB, LARGO_CAME,  LARGO_MERIT};

typedef struct field {
    const char *name;
    size_t offset;
    int is_choice;
} field;

static const field fields[] = {
#define NUMBER(name, ...) {#name, offsetof(largo_hyper, name), 0},
#define CHOICE(name, ...) {#name, offsetof(largo_hyper, name), 1},
#include "optim/fields.def"
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* A cell as the table writes it. */
static void print_cell(char *out, size_t size, const largo_hyper *h, const field *f)
{
    const char *at = (const char *)h + f->offset;
    int32_t choice;
    double number;
    memcpy(&choice, at, sizeof choice);
    memcpy(&number, at, f->is_choice ? sizeof choice : sizeof number);
    if (f->is_choice ? choice == 0 : isnan(number))
        snprintf(out, size, "-");
    else if (f->is_choice)
        snprintf(out, size, "%d", choice);
    else
        snprintf(out, size, "%g", number);
}

static void print_row(char *out, size_t size, const field *f)
{
    size_t used = (size_t)snprintf(out, size, "| %s |", f->name);
    for (int a = 0; a < ALGOS; a++) {
        largo_hyper h;
        char cell[32];
        assert_ok(largo_hyper_init(&h, algos[a]));
        print_cell(cell, sizeof cell, &h, f);
        used += (size_t)snprintf(out + used, size - used, " %s |", cell);
    }
    snprintf(out + used, size - used, "\n");
}

static void table_is_that_of_the_library(void **state)
{
    (void)state;
    FILE *f = fopen(LARGO_GOLDEN "/../../docs/optimizers/README.md", "r");
    assert_non_null(f);
    char line[512], want[512];
    int inside = 0, rows = 0;
    while (fgets(line, sizeof line, f)) {
        if (strstr(line, "<!-- /fields -->")) break;
        inside |= strstr(line, "<!-- fields -->") != NULL;
        if (!inside || strncmp(line, "| ", 2) != 0 || strncmp(line, "| field", 7) == 0) continue;
        assert_true(rows < N_FIELDS);
        print_row(want, sizeof want, &fields[rows++]);
        assert_string_equal(line, want);
    }
    fclose(f);
    assert_int_equal(rows, N_FIELDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table_is_that_of_the_library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
