/* options.h - the command line of largo-train. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdbool.h>

#include "recipe.h"

struct options {
    struct recipe recipe; /* optimizer and lr0 are set for each run: see options_recipe */
    double lr;            /* 0: the optimizer's own lr0 */
    int n_optimizers;
    const struct optimizer_kind *optimizers[OPTIMIZERS];
    int threads;
    const char *data_dir, *csv;
    bool validate, compare, quiet, check_gradients;
    int seeds; /* runs of each kind in a comparison */
};

/* Fill *options from the command line, or complain in one line and return false. --help, --usage
 * and --version print and exit with 0. */
bool options_parse(struct options *options, int argc, char *argv[]);

/* The recipe of one run. */
struct recipe options_recipe(const struct options *options, const struct optimizer_kind *optimizer,
                             int64_t batch, uint64_t seed);

/* What can be checked only when the data are there. */
bool options_fit(const struct options *options, int64_t n_train);

/* The two batches of --compare. */
enum { COMPARED = 2 };
extern const int64_t compared_batch[COMPARED];

#endif
