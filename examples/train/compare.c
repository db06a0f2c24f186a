#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "message.h"

/* Accuracy over the seeds of one optimizer at one batch. */
struct cell {
    int runs, diverged;
    double sum, least, most;
};

static void add(struct cell *cell, enum ending ending, double accuracy)
{
    cell->least = cell->runs ? fmin(cell->least, accuracy) : accuracy;
    cell->most = cell->runs ? fmax(cell->most, accuracy) : accuracy;
    cell->sum += accuracy;
    cell->diverged += ending == RUN_DIVERGED;
    cell->runs++;
}

static enum ending run_seeds(const struct session *session, const struct options *options,
                             const struct optimizer_kind *optimizer, int64_t batch,
                             struct cell *cell)
{
    for (int i = 0; i < options->seeds; i++) {
        const uint64_t seed = options->recipe.seed + (uint64_t)i;
        const struct recipe recipe = options_recipe(options, optimizer, batch, seed);
        struct run_result result;
        const enum ending ending = train(session, &recipe, &result);
        if (ending == RUN_INTERRUPTED || ending == RUN_FAILED) return ending;
        add(cell, ending, result.accuracy);
    }
    return RUN_DONE;
}

static void print_heading(const struct session *session, const struct options *options)
{
    char over[COMPARED][64];
    for (int b = 0; b < COMPARED; b++) {
        const struct recipe recipe =
            options_recipe(options, options->optimizers[0], compared_batch[b], 0);
        snprintf(over[b], sizeof over[b], "batch %lld, %lld steps", (long long)compared_batch[b],
                 (long long)recipe_steps(&recipe, session->data->train.n));
    }
    printf("%s accuracy in percent after %lld epochs, lr = lr0%s, %d seed%s from %llu\n\n",
           session->validate ? "Validation" : "Test", (long long)options->recipe.epochs,
           options->recipe.scaling == LARGO_SCALING_SQRT     ? " sqrt(batch/256)"
           : options->recipe.scaling == LARGO_SCALING_LINEAR ? " batch/256"
                                                             : "",
           options->seeds, options->seeds > 1 ? "s" : "", (unsigned long long)options->recipe.seed);
    printf("%-9s  %7s  %24s  %24s\n", "", "", over[0], over[1]);
    printf("%-9s  %7s  %17s  %5s  %17s  %5s\n", "optimizer", "lr0", "range", "mean", "range",
           "mean");
}

static void print_row(const struct options *options, const struct optimizer_kind *optimizer,
                      const struct cell cells[COMPARED])
{
    printf("%-9s  %7.4g", optimizer->name, options_recipe(options, optimizer, 1, 0).lr0);
    for (int b = 0; b < COMPARED; b++) {
        char range[32];
        snprintf(range, sizeof range, "%.2f - %.2f", cells[b].least, cells[b].most);
        printf("  %17s  %5.2f", range, cells[b].sum / cells[b].runs);
    }
    putchar('\n');
}

enum ending compare(const struct session *session, const struct options *options)
{
    struct cell cells[OPTIMIZERS][COMPARED];
    memset(cells, 0, sizeof cells);
    int diverged = 0;
    for (int o = 0; o < options->n_optimizers; o++) {
        for (int b = 0; b < COMPARED; b++) {
            const enum ending ending = run_seeds(session, options, options->optimizers[o],
                                                 compared_batch[b], &cells[o][b]);
            if (ending != RUN_DONE) return ending;
            diverged += cells[o][b].diverged;
        }
    }
    print_heading(session, options);
    for (int o = 0; o < options->n_optimizers; o++)
        print_row(options, options->optimizers[o], cells[o]);
    if (diverged) complain("%d runs diverged; the table counts them as they ended", diverged);
    return diverged ? RUN_DIVERGED : RUN_DONE;
}
