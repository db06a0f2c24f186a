#define _GNU_SOURCE /* sched_getaffinity */
#include "options.h"

#include <argp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "data.h"
#include "message.h"
#include "numbers.h"

#define DEFAULT_OPTIMIZER "lamb"
#define DEFAULT_COMPARED "adamw,lamb"
#define DEFAULT_BATCH 8192
#define DEFAULT_EPOCHS 12
#define DEFAULT_WARMUP 0.025
#define DEFAULT_WEIGHT_DECAY 1e-4
#define DEFAULT_DATA_DIR "/usr/share/datasets/fashion-mnist"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const int64_t compared_batch[COMPARED] = {256, 8192};

/* A batch has no more lanes than this: see trainer.c. */
enum { MOST_DEFAULT_THREADS = 8, MOST_THREADS = 256 };

static const char documentation[] =
    "Train a perceptron (784-256-256-10, ReLU) on Fashion-MNIST with an optimizer of largo, and "
    "report its accuracy on the test images."
    "\vThe default learning rates were chosen on the validation split, one for the batches 256 "
    "and 8192 together, never on the test images.\n\n"
    "Progress goes to stderr, results to stdout; the last line of the table ends in the accuracy "
    "in percent.\n\n"
    "Exit status: 0 trained; 1 a run diverged or something failed; 2 bad options or data; "
    "130 interrupted.";

enum key {
    KEY_OPTIMIZER = 'o',
    KEY_BATCH = 'b',
    KEY_EPOCHS = 'e',
    KEY_LR = 'l',
    KEY_SEED = 's',
    KEY_THREADS = 't',
    KEY_DATA = 'd',
    KEY_CSV = 'c',
    KEY_QUIET = 'q',
    KEY_SCALING = 0x100,
    KEY_WARMUP,
    KEY_SCHEDULE,
    KEY_DECAY,
    KEY_VALIDATE,
    KEY_COMPARE,
    KEY_SEEDS,
    KEY_CHECK
};

/* clang-format off */
static const struct argp_option described[] = {
    {0, 0, 0, 0, "The recipe", 1},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "sgd (momentum 0.9), adamw or lamb; with --compare a list "
     "such as sgd,lamb (default " DEFAULT_OPTIMIZER ", compared: " DEFAULT_COMPARED ")", 0},
    {"batch", KEY_BATCH, "N", 0, "Images in a batch (default " TEXT(DEFAULT_BATCH) ")", 0},
    {"epochs", KEY_EPOCHS, "N", 0, "Times over the training images, in full batches "
     "(default " TEXT(DEFAULT_EPOCHS) ")", 0},
    {"lr", KEY_LR, "RATE", 0, "Learning rate lr0 at batch 256 (default, tuned on the validation split: "
     "sgd " TEXT(LR0_SGD) ", adamw " TEXT(LR0_ADAMW) ", lamb " TEXT(LR0_LAMB) ")", 0},
    {"scaling", KEY_SCALING, "RULE", 0, "How the rate follows the batch, k = N/256: sqrt (lr0 sqrt k), "
     "linear (lr0 k) or none (default sqrt)", 0},
    {"warmup", KEY_WARMUP, "EPOCHS", 0, "LEGW: epochs of linear warm-up at batch 256; k times as many "
     "at batch N, at most a third of all steps (default " TEXT(DEFAULT_WARMUP) ")", 0},
    {"schedule", KEY_SCHEDULE, "NAME", 0, "Decay after warm-up: linear, cosine (both to 0) or constant "
     "(default linear)", 0},
    {"weight-decay", KEY_DECAY, "X", 0, "Of the matrices; biases are exempt from decay and trust ratio "
     "(default " TEXT(DEFAULT_WEIGHT_DECAY) ")", 0},
    {"seed", KEY_SEED, "N", 0, "Of initial weights and sample order (default 1)", 0},
    {0, 0, 0, 0, "Data, output, machine", 2},
    {"data-dir", KEY_DATA, "DIR", 0, "Where the four IDX .gz files are (default " DEFAULT_DATA_DIR ")", 0},
    {"csv", KEY_CSV, "FILE", 0, "Write one line for each epoch", 0},
    {"threads", KEY_THREADS, "N", 0, "At most 8 work at once (default: processors available, at most 8). They "
     "change no digit of the result. On a busy machine OMP_WAIT_POLICY=passive helps", 0},
    {"quiet", KEY_QUIET, 0, 0, "No progress, only the table", 0},
    {0, 0, 0, 0, "Experiments", 3},
    {"validate", KEY_VALIDATE, 0, 0, "Hold out the last 5,000 training images and report accuracy on them: "
     "for choosing learning rates. The test images are not read", 0},
    {"compare", KEY_COMPARE, 0, 0, "Train each optimizer at batch 256 and 8192 for the same epochs and "
     "print one table", 0},
    {"seeds", KEY_SEEDS, "N", 0, "With --compare: N runs each, from --seed on; mean and range "
     "(default 1)", 0},
    {"check-gradients", KEY_CHECK, 0, OPTION_HIDDEN, "Compare gradients with finite differences", 0},
    {0, 0, 0, 0, 0, 0}};
/* clang-format on */

/* Options as given, before the checks of their combination. */
struct parsed {
    struct options *options;
    const char *optimizer_text;
    bool batch_given, seeds_given;
};

/* The index of text[0 .. length) in names[], or -1 after a complaint. */
static int choose(const char *option, const char *text, size_t length, int n,
                  const char *const names[])
{
    char all[128] = "";
    for (int i = 0; i < n; i++) {
        if (strlen(names[i]) == length && !strncmp(names[i], text, length)) return i;
        if (i) strncat(all, i < n - 1 ? ", " : " or ", sizeof all - strlen(all) - 1);
        strncat(all, names[i], sizeof all - strlen(all) - 1);
    }
    complain("%s: unknown '%.*s'; must be %s", option, (int)length, text, all);
    return -1;
}

/* A name, or names between commas, none of them twice. */
static bool parse_optimizers(struct options *options, const char *text)
{
    const char *names[OPTIMIZERS];
    for (int i = 0; i < OPTIMIZERS; i++) names[i] = optimizer_kinds[i].name;
    options->n_optimizers = 0;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        const int chosen = choose("--optimizer", at, length, OPTIMIZERS, names);
        if (chosen < 0) return false;
        for (int i = 0; i < options->n_optimizers; i++) {
            if (options->optimizers[i] == &optimizer_kinds[chosen])
                return complain("--optimizer: '%s' stands twice in '%s'", names[chosen], text);
        }
        options->optimizers[options->n_optimizers++] = &optimizer_kinds[chosen];
        at += length;
        if (!*at) return true;
    }
}

static bool parse_scaling(struct options *options, const char *text)
{
    static const char *const names[] = {"sqrt", "linear", "none"};
    static const largo_scaling rules[] = {LARGO_SCALING_SQRT, LARGO_SCALING_LINEAR,
                                          LARGO_SCALING_NONE};
    const int chosen = choose("--scaling", text, strlen(text), 3, names);
    if (chosen >= 0) options->recipe.scaling = rules[chosen];
    return chosen >= 0;
}

static bool parse_schedule(struct options *options, const char *text)
{
    static const char *const names[] = {"linear", "cosine", "constant"};
    static const largo_decay decays[] = {LARGO_DECAY_LINEAR, LARGO_DECAY_COSINE,
                                         LARGO_DECAY_CONSTANT};
    const int chosen = choose("--schedule", text, strlen(text), 3, names);
    if (chosen >= 0) options->recipe.decay = decays[chosen];
    return chosen >= 0;
}

static bool parse_count(const char *option, const char *text, int most, int *value)
{
    int64_t read;
    if (!read_integer(option, text, 1, most, &read)) return false;
    *value = (int)read;
    return true;
}

static bool parse_seed(const char *text, uint64_t *seed)
{
    int64_t read;
    if (!read_integer("--seed", text, 0, INT64_C(1000000000000000000), &read)) return false;
    *seed = (uint64_t)read;
    return true;
}

/* The batch is checked against the data later; here it only has to be a number. */
static bool parse_batch(struct parsed *parsed, const char *text)
{
    parsed->batch_given = true;
    return read_integer("--batch", text, 1, INT32_MAX, &parsed->options->recipe.batch);
}

/* Combinations that would silently ignore an option are refused. */
static bool combine(struct parsed *parsed)
{
    struct options *options = parsed->options;
    const char *text = parsed->optimizer_text;
    if (!text) text = options->compare ? DEFAULT_COMPARED : DEFAULT_OPTIMIZER;
    if (!parse_optimizers(options, text)) return false;
    if (options->compare && parsed->batch_given)
        return complain("--batch: not together with --compare, which trains at 256 and 8192");
    if (!options->compare && parsed->seeds_given)
        return complain("--seeds: only together with --compare; --seed chooses one");
    if (!options->compare && options->n_optimizers > 1)
        return complain("--optimizer: '%s' names %d; only --compare takes more than one", text,
                        options->n_optimizers);
    return true;
}

static bool parse_switch(int key, struct options *options)
{
    switch (key) {
    case KEY_QUIET:
        options->quiet = true;
        return true;
    case KEY_VALIDATE:
        options->validate = true;
        return true;
    case KEY_COMPARE:
        options->compare = true;
        return true;
    case KEY_CHECK:
        options->check_gradients = true;
        return true;
    default:
        return false;
    }
}

static bool parse_value(int key, const char *text, struct parsed *parsed)
{
    struct options *options = parsed->options;
    struct recipe *recipe = &options->recipe;
    switch (key) {
    case KEY_OPTIMIZER:
        parsed->optimizer_text = text;
        return true;
    case KEY_BATCH:
        return parse_batch(parsed, text);
    case KEY_EPOCHS:
        return read_integer("--epochs", text, 1, 100000, &recipe->epochs);
    case KEY_LR:
        return read_real("--lr", text, 1e-12, 1e6, &options->lr);
    case KEY_SCALING:
        return parse_scaling(options, text);
    case KEY_WARMUP:
        return read_real("--warmup", text, 0.0, 1000.0, &recipe->warmup);
    case KEY_SCHEDULE:
        return parse_schedule(options, text);
    case KEY_DECAY:
        return read_real("--weight-decay", text, 0.0, 1000.0, &recipe->weight_decay);
    case KEY_SEED:
        return parse_seed(text, &recipe->seed);
    case KEY_THREADS:
        return parse_count("--threads", text, MOST_THREADS, &options->threads);
    case KEY_DATA:
        options->data_dir = text;
        return true;
    case KEY_CSV:
        options->csv = text;
        return true;
    case KEY_SEEDS:
        parsed->seeds_given = true;
        return parse_count("--seeds", text, 1000, &options->seeds);
    default:
        return false;
    }
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct parsed *parsed = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        /* argp adds a line about --help to getopt's message; one line is enough. */
        state->err_stream = 0;
        return 0;
    case ARGP_KEY_ARG:
        complain("'%s': every argument is an option; see --help", text);
        return EINVAL;
    case ARGP_KEY_END:
        return combine(parsed) ? 0 : EINVAL;
    case ARGP_KEY_NO_ARGS:
    case ARGP_KEY_SUCCESS:
    case ARGP_KEY_ERROR:
    case ARGP_KEY_FINI:
        return 0;
    default:
        break;
    }
    if (text) return parse_value(key, text, parsed) ? 0 : EINVAL;
    return parse_switch(key, parsed->options) ? 0 : ARGP_ERR_UNKNOWN;
}

static int default_threads(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) return 1;
    const int available = CPU_COUNT(&set);
    return available < MOST_DEFAULT_THREADS ? available : MOST_DEFAULT_THREADS;
}

bool options_parse(struct options *options, int argc, char *argv[])
{
    memset(options, 0, sizeof *options);
    options->recipe.batch = DEFAULT_BATCH;
    options->recipe.epochs = DEFAULT_EPOCHS;
    options->recipe.warmup = DEFAULT_WARMUP;
    options->recipe.weight_decay = DEFAULT_WEIGHT_DECAY;
    options->recipe.scaling = LARGO_SCALING_SQRT;
    options->recipe.decay = LARGO_DECAY_LINEAR;
    options->recipe.seed = 1;
    options->threads = default_threads();
    options->data_dir = DEFAULT_DATA_DIR;
    options->seeds = 1;

    struct parsed parsed = {options, 0, false, false};
    const struct argp argp = {described, parse_option, 0, documentation, 0, 0, 0};
    argp_err_exit_status = EXIT_BAD_INPUT;
    argp_program_version = PROGRAM " (largo " TEXT(LARGO_VERSION_MAJOR) "." TEXT(
        LARGO_VERSION_MINOR) "." TEXT(LARGO_VERSION_PATCH) ")";
    return argp_parse(&argp, argc, argv, 0, 0, &parsed) == 0;
}

struct recipe options_recipe(const struct options *options, const struct optimizer_kind *optimizer,
                             int64_t batch, uint64_t seed)
{
    struct recipe recipe = options->recipe;
    recipe.optimizer = optimizer;
    recipe.lr0 = options->lr > 0.0 ? options->lr : optimizer->lr0;
    recipe.batch = batch;
    recipe.seed = seed;
    return recipe;
}

bool options_fit(const struct options *options, int64_t n_train)
{
    const int64_t batch = options->compare ? compared_batch[COMPARED - 1] : options->recipe.batch;
    if (batch <= n_train) return true;
    return complain("%s: %lld is out of range; must be 1 to %lld, the number of training images",
                    options->compare ? "--compare: batch" : "--batch", (long long)batch,
                    (long long)n_train);
}
