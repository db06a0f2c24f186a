/* largo-train: a perceptron on Fashion-MNIST, at batches from 1 to the whole set, with the
 * optimizers of largo. The training step is in trainer.c, the use of largo in recipe.c. */
#include <stdio.h>
#include <string.h>

#include "compare.h"
#include "data.h"
#include "gemm.h"
#include "gradcheck.h"
#include "interrupt.h"
#include "message.h"
#include "options.h"
#include "trainer.h"

static int exit_code(enum ending ending)
{
    switch (ending) {
    case RUN_DONE:
        return EXIT_TRAINED;
    case RUN_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_TROUBLE;
    }
}

/* One run and its table. */
static enum ending single(const struct session *session, const struct options *options)
{
    const struct recipe recipe = options_recipe(options, options->optimizers[0],
                                                options->recipe.batch, options->recipe.seed);
    struct run_result result;
    const enum ending ending = train(session, &recipe, &result);
    if (ending == RUN_INTERRUPTED || ending == RUN_FAILED) return ending;
    printf("%-9s  %6s  %6s  %6s  %s\n", "optimizer", "batch", "epochs", "steps",
           session->validate ? "validation %" : "test %");
    printf("%-9s  %6lld  %6lld  %6lld  %*.2f\n", recipe.optimizer->name, (long long)recipe.batch,
           (long long)result.epochs, (long long)result.steps, session->validate ? 12 : 6,
           result.accuracy);
    return ending;
}

/* The runs, with the context of the library around them. */
static int run(struct session *session, const struct options *options)
{
    largo_ctx_options ctx_options = LARGO_CTX_OPTIONS;
    ctx_options.backend = LARGO_BACKEND_CPU; /* the network is in host memory */
    ctx_options.threads = options->threads;
    if (largo_failed(largo_ctx_create(&ctx_options, &session->ctx))) {
        complain("%s", largo_last_error());
        return EXIT_TROUBLE;
    }
    progress_line(session->progress, "Fashion-MNIST: %lld training, %lld %s images; largo on %s",
                  (long long)session->data->train.n, (long long)session->data->held_out.n,
                  options->validate ? "validation" : "test", largo_ctx_name(session->ctx));
    interrupt_catch();
    gemm_set_threads(1); /* the threads are outside: see trainer.c */
    const enum ending ending =
        options->compare ? compare(session, options) : single(session, options);
    largo_ctx_destroy(session->ctx);
    return exit_code(ending);
}

/* What the runs write to, opened before and checked after them. */
static int with_outputs(const struct options *options, const struct fashion *data)
{
    struct csv csv;
    struct progress progress;
    struct session session = {.data = data,
                              .progress = &progress,
                              .csv = &csv,
                              .threads = options->threads,
                              .validate = options->validate};
    if (!csv_open(&csv, options->csv, options->validate)) return EXIT_BAD_INPUT;
    progress_open(&progress, options->quiet);
    int code = run(&session, options);
    if (!csv_close(&csv)) code = EXIT_TROUBLE;
    if (fflush(stdout) != 0) {
        complain("cannot write the table to stdout");
        code = EXIT_TROUBLE;
    }
    return code;
}

int main(int argc, char *argv[])
{
    struct options options;
    if (!options_parse(&options, argc, argv)) return EXIT_BAD_INPUT;
    if (options.check_gradients) return gradients_agree() ? EXIT_TRAINED : EXIT_TROUBLE;

    struct fashion data;
    if (!fashion_load(&data, options.data_dir, options.validate)) return EXIT_BAD_INPUT;
    const int code =
        options_fit(&options, data.train.n) ? with_outputs(&options, &data) : EXIT_BAD_INPUT;
    fashion_free(&data);
    return code;
}
