/* support_golden.h - golden/<optimizer>.json: a case opened as tensors, stepped through either
 * entry of the library, and compared. golden/README.md describes the files. */
#ifndef LARGO_TESTS_SUPPORT_GOLDEN_H
#define LARGO_TESTS_SUPPORT_GOLDEN_H

#include <cjson/cJSON.h>
#include "support.h"

enum { GOLDEN_TENSORS = 8, GOLDEN_SLOTS = 5 };

/* A file of golden/, parsed; the test fails if it is not there. Free with cJSON_Delete. */
cJSON *golden_load(const char *name);

/* A member that must be there, and its number; "inf" is INFINITY, true is 1. */
const cJSON *golden_get(const cJSON *object, const char *key);
double golden_number(const cJSON *object, const char *key);

/* How many doubles apart two numbers of one sign are. */
uint64_t golden_ulps(double got, double want);

/* hp of a case or a policy as hyper-parameters of the algorithm; max_grad_norm 0 is off. */
largo_hyper golden_hyper(const cJSON *hp, largo_algo algo);

/* Elements of {"shape": ...}, and a tensor from its generator. t = 0: weights; else gradient of
 * step t. */
size_t golden_numel(const cJSON *tensor);
void golden_fill(float *out, const cJSON *tensor, const char *which, int t);

/* Which name a state has in the files and in largo_slot. */
typedef struct golden_state {
    const char *key, *slot;
    double tolerance; /* relative to the largest sampled value */
} golden_state;

typedef enum golden_entry { GOLDEN_STEP, GOLDEN_OBJECT } golden_entry;

/* A case being run. */
typedef struct golden_run {
    const char *name;
    golden_entry entry;
    largo_ctx *ctx;
    largo_optim *optim; /* of GOLDEN_OBJECT */
    largo_hyper hyper;
    const cJSON *tensors;
    size_t n;
    largo_param param[GOLDEN_TENSORS];
    largo_slot slot[GOLDEN_TENSORS][LARGO_MAX_SLOTS];
    size_t slots[GOLDEN_TENSORS], numel[GOLDEN_TENSORS];
    float *w[GOLDEN_TENSORS], *w0[GOLDEN_TENSORS], *g[GOLDEN_TENSORS];
    largo_param_stats stats[GOLDEN_TENSORS];
} golden_run;

/* `tensors` is the array of that name. */
void golden_open(golden_run *run, largo_ctx *ctx, golden_entry entry, const char *name,
                 const cJSON *tensors, const largo_hyper *hyper);
void golden_close(golden_run *run);

/* Gradients of step t. */
void golden_gradients(golden_run *run, int t);

/* One step as number t; the object counts for itself. */
largo_status golden_step(golden_run *run, int t);

/* The memory of a state slot and its length, by name; fails if there is none. */
const float *golden_slot(golden_run *run, size_t k, const char *slot, size_t *n);

/* Compare with one record of "w" (all elements or samples, and sums of w - w0) and its tolerance.
 */
void golden_check_w(const golden_run *run, size_t k, const cJSON *want, double tol);

/* All tensors with a record of "steps"; state and trust ratios too, if the record has them. */
void golden_check_record(golden_run *run, const cJSON *record, size_t n_states,
                         const golden_state states[]);

/* A whole "ok" case: steps 1 to 10, each record compared. */
void golden_check_case(largo_ctx *ctx, golden_entry entry, const cJSON *test, largo_algo algo,
                       size_t n_states, const golden_state states[]);

/* A "reject" case: SKIP and ERROR refuse its first step, through both entries, and write nothing.
 */
void golden_check_rejected(largo_ctx *ctx, const cJSON *test, largo_algo algo);

/* Has a tensor of a case more than two dimensions? */
int golden_is_nd(const cJSON *test);

/* Every case of a file, through both entries: "ok" compared, "reject" refused. */
typedef struct golden_file {
    const char *name;
    largo_algo algo;
    size_t n_states;
    const golden_state *states;
    const char *(*why_not)(const cJSON *test); /* why not this case, told; NULL: run it */
    int ok, rejected, skipped;                 /* how many there must be */
} golden_file;
void golden_check_file(const golden_file *file);

/* golden/policy.json for one optimizer, through both entries and under every policy; returns how many
 * cases there were. */
int golden_check_policies(largo_ctx *ctx, const char *optimizer, largo_algo algo);

#endif
