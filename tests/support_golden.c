/* support_golden.c - see support_golden.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "support_golden.h"

cJSON *golden_load(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", LARGO_GOLDEN, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("golden/%s cannot be opened", name);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    text[size] = 0;
    cJSON *root = cJSON_Parse(text);
    free(text);
    if (!root) fail_msg("golden/%s is not JSON", name);
    return root;
}

const cJSON *golden_get(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item) fail_msg("no member \"%s\"", key);
    return item;
}

static double number_of(const cJSON *item)
{
    if (cJSON_IsString(item) && strcmp(item->valuestring, "inf") == 0) return INFINITY;
    if (cJSON_IsBool(item)) return cJSON_IsTrue(item);
    if (!cJSON_IsNumber(item)) fail_msg("\"%s\" is not a number", item->string);
    return item->valuedouble;
}

double golden_number(const cJSON *object, const char *key)
{
    return number_of(golden_get(object, key));
}

uint64_t golden_ulps(double got, double want)
{
    int64_t a, b;
    memcpy(&a, &got, sizeof a);
    memcpy(&b, &want, sizeof b);
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static const char *field_of(const char *key)
{
    static const char *const names[][2] = {
        {"wd", "weight_decay"},          {"eps1", "eps"},
        {"clip", "clip_threshold"},      {"phi_lo", "weight_norm_min"},
        {"phi_hi", "weight_norm_max"},   {"trust_lo", "trust_ratio_min"},
        {"trust_hi", "trust_ratio_max"}, {"coef", "trust_coefficient"},
        {"g_clamp", "clip_threshold"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i][0]) == 0) return names[i][1];
    return key;
}

static largo_adapt adapt_of(const char *text)
{
    if (strcmp(text, "always") == 0) return LARGO_ADAPT_ALWAYS;
    if (strcmp(text, "if_wd") == 0) return LARGO_ADAPT_IF_DECAYED;
    assert_string_equal(text, "never");
    return LARGO_ADAPT_NEVER;
}

static largo_denominator denominator_of(const char *text)
{
    if (strcmp(text, "paper") == 0) return LARGO_DENOMINATOR_PAPER;
    if (strcmp(text, "decayed") == 0) return LARGO_DENOMINATOR_DECAYED;
    assert_string_equal(text, "update");
    return LARGO_DENOMINATOR_UPDATE;
}

/* The file says what is in the momentum; for denominator "update" it says nothing. */
static void set_lars(largo_hyper *hyper, const cJSON *hp)
{
    hyper->denominator = denominator_of(golden_get(hp, "denom")->valuestring);
    const int has_lr = cJSON_IsTrue(golden_get(hp, "lr_in_momentum"));
    const int has_ratio = cJSON_IsTrue(golden_get(hp, "ratio_in_momentum"));
    hyper->velocity = has_lr      ? LARGO_VELOCITY_LR_RATIO
                      : has_ratio ? LARGO_VELOCITY_RATIO
                                  : LARGO_VELOCITY_GRAD;
    if (hyper->denominator == LARGO_DENOMINATOR_UPDATE) hyper->velocity = LARGO_VELOCITY_GRAD;
}

/* Is this member of hp the business of somebody else? */
static int is_special(const char *key)
{
    static const char *const keys[] = {"nd", "denom", "lr_in_momentum", "ratio_in_momentum"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return 1;
    return 0;
}

largo_hyper golden_hyper(const cJSON *hp, largo_algo algo)
{
    largo_hyper hyper;
    assert_ok(largo_hyper_init(&hyper, algo));
    const cJSON *item;
    cJSON_ArrayForEach(item, hp)
    {
        if (is_special(item->string)) continue;
        if (strcmp(item->string, "adapt") == 0) {
            hyper.adapt = adapt_of(item->valuestring);
            continue;
        }
        double value = number_of(item);
        if (strcmp(item->string, "max_grad_norm") == 0 && value == 0.0) value = INFINITY;
        assert_ok(largo_hyper_set(&hyper, field_of(item->string), value));
    }
    if (algo == LARGO_LARS) set_lars(&hyper, hp);
    return hyper;
}

static largo_tensor shape_of(const cJSON *tensor)
{
    largo_tensor t = {NULL, LARGO_F32, 0, {0}};
    const cJSON *d;
    cJSON_ArrayForEach(d, golden_get(tensor, "shape")) t.shape[t.ndim++] = (int64_t)d->valuedouble;
    return t;
}

size_t golden_numel(const cJSON *tensor)
{
    const largo_tensor t = shape_of(tensor);
    return (size_t)test_numel(&t);
}

static int int_or(const cJSON *spec, const char *key, int otherwise)
{
    return cJSON_HasObjectItem(spec, key) ? (int)golden_number(spec, key) : otherwise;
}

/* Zero what has index k in dimension d. */
static void zero_slice(float *x, const largo_tensor *t, int d, int64_t k)
{
    size_t inner = 1;
    for (int i = d + 1; i < t->ndim; i++) inner *= (size_t)t->shape[i];
    const size_t n = (size_t)test_numel(t);
    for (size_t i = 0; i < n; i++)
        if ((int64_t)(i / inner) % t->shape[d] == k) x[i] = 0.0f;
}

void golden_fill(float *out, const cJSON *tensor, const char *which, int t)
{
    const largo_tensor shape = shape_of(tensor);
    const cJSON *spec = golden_get(tensor, which);
    const uint64_t seed = (uint64_t)golden_number(spec, "seed");
    const size_t n = (size_t)test_numel(&shape);
    test_fill(out, n, int_or(spec, "const", 0) ? seed : seed + (uint64_t)t, int_or(spec, "exp", 0),
              int_or(spec, "spread", 1));
    if (int_or(spec, "all_zero", 0)) memset(out, 0, n * sizeof *out);
    if (int_or(spec, "zero_row", -1) >= 0) zero_slice(out, &shape, 0, int_or(spec, "zero_row", 0));
    if (int_or(spec, "zero_col", -1) >= 0) zero_slice(out, &shape, 1, int_or(spec, "zero_col", 0));
}

/* ---- a run ---- */

static void open_tensor(golden_run *run, size_t k, const cJSON *tensor)
{
    const size_t n = run->numel[k] = golden_numel(tensor);
    largo_param *p = &run->param[k];
    memset(p, 0, sizeof *p);
    run->w[k] = test_floats(n);
    run->w0[k] = test_floats(n);
    run->g[k] = test_floats(n);
    golden_fill(run->w[k], tensor, "w", 0);
    memcpy(run->w0[k], run->w[k], n * sizeof(float));
    p->value = p->grad = shape_of(tensor);
    p->value.data = run->w[k];
    p->grad.data = run->g[k];
    p->stats = &run->stats[k];
    assert_ok(largo_slots(&run->hyper, p, run->slot[k], &run->slots[k]));
    if (run->entry == GOLDEN_OBJECT) return;
    for (size_t s = 0; s < run->slots[k]; s++)
        p->state[s] = test_floats(run->slot[k][s].bytes / sizeof(float));
}

void golden_open(golden_run *run, largo_ctx *ctx, golden_entry entry, const char *name,
                 const cJSON *tensors, const largo_hyper *hyper)
{
    memset(run, 0, sizeof *run);
    run->name = name;
    run->entry = entry;
    run->ctx = ctx;
    run->hyper = *hyper;
    run->tensors = tensors;
    const cJSON *tensor;
    cJSON_ArrayForEach(tensor, tensors)
    {
        assert_true(run->n < GOLDEN_TENSORS);
        open_tensor(run, run->n++, tensor);
    }
    if (entry != GOLDEN_OBJECT) return;
    assert_ok(largo_optim_create(ctx, &run->optim));
    assert_ok(largo_optim_add_group(run->optim, hyper, run->n, run->param, NULL));
}

void golden_close(golden_run *run)
{
    largo_optim_destroy(run->optim);
    for (size_t k = 0; k < run->n; k++) {
        free(run->w[k]);
        free(run->w0[k]);
        free(run->g[k]);
        for (size_t s = 0; s < run->slots[k]; s++) free(run->param[k].state[s]);
    }
}

void golden_gradients(golden_run *run, int t)
{
    for (size_t k = 0; k < run->n; k++)
        golden_fill(run->g[k], cJSON_GetArrayItem(run->tensors, (int)k), "g", t);
}

largo_status golden_step(golden_run *run, int t)
{
    if (run->entry == GOLDEN_OBJECT) return largo_optim_step(run->optim);
    return largo_step(run->ctx, &run->hyper, t, run->n, run->param);
}

const float *golden_slot(golden_run *run, size_t k, const char *slot, size_t *n)
{
    for (size_t s = 0; s < run->slots[k]; s++) {
        if (strcmp(run->slot[k][s].name, slot) != 0) continue;
        *n = run->slot[k][s].bytes / sizeof(float);
        if (run->entry == GOLDEN_STEP) return run->param[k].state[s];
        largo_tensor view;
        assert_ok(largo_optim_slot(run->optim, 0, k, slot, &view));
        assert_int_equal(test_numel(&view), *n);
        return view.data;
    }
    fail_msg("%s: tensor %zu has no state %s", run->name, k, slot);
    return NULL;
}

/* ---- comparing ---- */

/* Place of sample i of all that the files give of n elements. */
static size_t sample(size_t i, size_t n)
{
    enum { FULL = 64, SAMPLES = 32 };
    return n <= FULL ? i : i * n / SAMPLES;
}

static void check(const golden_run *run, size_t k, const char *what, size_t i, double got,
                  double want, double tol)
{
    if (fabs(got - want) <= tol) return;
    fail_msg("%s (%s), tensor %zu, %s[%zu]: %.9g, wanted %.17g within %.3g; off by %.3g", run->name,
             run->entry == GOLDEN_OBJECT ? "object" : "step", k, what, i, got, want, tol,
             fabs(got - want));
}

/* `from` NULL: sums are over x itself. */
static void check_values(const golden_run *run, size_t k, const char *what, const float *x,
                         const float *from, size_t n, const cJSON *want, double tol)
{
    const cJSON *at = golden_get(want, "at"), *value;
    size_t i = 0;
    cJSON_ArrayForEach(value, at)
    {
        const size_t place = sample(i++, n);
        check(run, k, what, place, (double)x[place], value->valuedouble, tol);
    }
    assert_int_equal(i, n <= 64 ? n : 32);
    if (n <= 64) return;
    double sum = 0.0, squares = 0.0, max = 0.0;
    for (size_t j = 0; j < n; j++) {
        const double d = (double)x[j] - (from ? (double)from[j] : 0.0);
        sum += d;
        squares += d * d;
        max = fmax(max, fabs(d));
    }
    check(run, k, "sum_d of elements", n, sum, golden_number(want, "sum_d"), tol * (double)n);
    check(run, k, "l2_d of elements", n, sqrt(squares), golden_number(want, "l2_d"),
          tol * sqrt((double)n));
    check(run, k, "max_d of elements", n, max, golden_number(want, "max_d"), tol);
}

void golden_check_w(const golden_run *run, size_t k, const cJSON *want, double tol)
{
    check_values(run, k, "w", run->w[k], run->w0[k], run->numel[k], want, tol);
}

/* Every state of the file must be known to the test. */
static const golden_state *find_state(const char *key, size_t n, const golden_state states[])
{
    for (size_t s = 0; s < n; s++)
        if (strcmp(states[s].key, key) == 0) return &states[s];
    fail_msg("state \"%s\" of the file has no slot", key);
    return NULL;
}

static void check_state(golden_run *run, size_t k, const cJSON *state, size_t n_states,
                        const golden_state states[])
{
    const cJSON *want, *value;
    if (run->hyper.momentum == 0.0) return; /* the file's v is then the update, which none keeps */
    cJSON_ArrayForEach(want, state)
    {
        const golden_state *s = find_state(want->string, n_states, states);
        double largest = 0.0;
        cJSON_ArrayForEach(value, golden_get(want, "at"))
        {
            largest = fmax(largest, fabs(value->valuedouble));
        }
        size_t n;
        const float *x = golden_slot(run, k, s->slot, &n);
        check_values(run, k, s->slot, x, NULL, n, want, s->tolerance * largest + 0x1p-149);
    }
}

/* The library's is not rounded; the weights and the state that it is made of are. null: the
 * algorithm has none. */
static void check_trust(const golden_run *run, size_t k, const cJSON *trust)
{
    const cJSON *want = cJSON_GetArrayItem(trust, (int)k);
    if (cJSON_IsNull(want)) return;
    check(run, k, "trust ratio", 0, run->stats[k].trust_ratio, want->valuedouble,
          1e-5 * want->valuedouble);
}

void golden_check_record(golden_run *run, const cJSON *record, size_t n_states,
                         const golden_state states[])
{
    const cJSON *w = golden_get(record, "w"), *tol = golden_get(record, "tol");
    const cJSON *state = cJSON_GetObjectItemCaseSensitive(record, "state");
    const cJSON *trust = cJSON_GetObjectItemCaseSensitive(record, "trust");
    assert_int_equal(cJSON_GetArraySize(w), run->n);
    for (size_t k = 0; k < run->n; k++) {
        const int i = (int)k;
        golden_check_w(run, k, cJSON_GetArrayItem(w, i), cJSON_GetArrayItem(tol, i)->valuedouble);
        if (state) check_state(run, k, cJSON_GetArrayItem(state, i), n_states, states);
        if (trust) check_trust(run, k, trust);
    }
}

void golden_check_case(largo_ctx *ctx, golden_entry entry, const cJSON *test, largo_algo algo,
                       size_t n_states, const golden_state states[])
{
    const largo_hyper hyper = golden_hyper(golden_get(test, "hp"), algo);
    golden_run run;
    golden_open(&run, ctx, entry, golden_get(test, "name")->valuestring,
                golden_get(test, "tensors"), &hyper);
    int t = 0;
    const cJSON *record;
    cJSON_ArrayForEach(record, golden_get(test, "steps"))
    {
        while (t < (int)golden_number(record, "t")) {
            golden_gradients(&run, ++t);
            const largo_status status = golden_step(&run, t);
            if (status) fail_msg("%s, step %d: %s", run.name, t, largo_last_error());
        }
        golden_check_record(&run, record, n_states, states);
    }
    assert_int_equal(t, 10);
    golden_close(&run);
}

static void check_untouched(golden_run *run)
{
    for (size_t k = 0; k < run->n; k++) {
        assert_memory_equal(run->w[k], run->w0[k], run->numel[k] * sizeof(float));
        for (size_t s = 0; s < run->slots[k]; s++) {
            size_t n;
            const float *x = golden_slot(run, k, run->slot[k][s].name, &n);
            for (size_t i = 0; i < n; i++) assert_true(x[i] == 0.0f);
        }
    }
    if (run->optim) assert_int_equal(largo_optim_step_count(run->optim), 0);
}

void golden_check_rejected(largo_ctx *ctx, const cJSON *test, largo_algo algo)
{
    const char *name = golden_get(test, "name")->valuestring;
    for (int i = 0; i < 4; i++) {
        largo_hyper hyper = golden_hyper(golden_get(test, "hp"), algo);
        const int is_error = i & 1;
        if (is_error) hyper.non_finite = LARGO_NON_FINITE_ERROR;
        golden_run run;
        golden_open(&run, ctx, i & 2 ? GOLDEN_OBJECT : GOLDEN_STEP, name,
                    golden_get(test, "tensors"), &hyper);
        golden_gradients(&run, 1);
        assert_status(is_error ? LARGO_ERR_NON_FINITE : LARGO_SKIPPED, golden_step(&run, 1));
        check_untouched(&run);
        golden_close(&run);
    }
}

/* ---- policies ---- */

/* Three steps, of which the bad one is refused and does not count. PROPAGATE makes it, and spoils the
 * element. */
static void check_policy(largo_ctx *ctx, golden_entry entry, const cJSON *test, largo_algo algo,
                         largo_non_finite policy)
{
    largo_hyper hyper = golden_hyper(golden_get(test, "hp"), algo);
    hyper.non_finite = policy;
    const int lets_through = policy == LARGO_NON_FINITE_PROPAGATE;
    const largo_status refused =
        policy == LARGO_NON_FINITE_ERROR ? LARGO_ERR_NON_FINITE : LARGO_SKIPPED;
    const char *bad = golden_get(test, "bad_value")->valuestring;
    const size_t at = (size_t)golden_number(test, "bad_index");
    cJSON *tensors = cJSON_CreateArray();
    cJSON_AddItemReferenceToArray(tensors, cJSON_GetObjectItem(test, "tensor"));
    golden_run run;
    golden_open(&run, ctx, entry, bad, tensors, &hyper);
    int counted = 0;
    for (int t = 1; t <= 3; t++) {
        const int is_bad = t == (int)golden_number(test, "bad_step");
        const int counts = !is_bad || lets_through;
        golden_gradients(&run, t);
        if (is_bad) run.g[0][at] = strtof(bad, NULL);
        assert_status(counts ? LARGO_OK : refused, golden_step(&run, counted + 1));
        counted += counts;
    }
    assert_int_equal(counted, (int)golden_number(test, "steps_counted") + lets_through);
    if (run.optim) assert_int_equal(largo_optim_step_count(run.optim), counted);
    if (lets_through)
        assert_true(!isfinite(run.w[0][at]));
    else
        golden_check_w(&run, 0, golden_get(test, "w"), golden_number(test, "tol"));
    golden_close(&run);
    cJSON_Delete(tensors);
}

int golden_check_policies(largo_ctx *ctx, const char *optimizer, largo_algo algo)
{
    cJSON *file = golden_load("policy.json");
    const cJSON *test;
    int n = 0;
    cJSON_ArrayForEach(test, golden_get(file, "cases"))
    {
        if (strcmp(golden_get(test, "optimizer")->valuestring, optimizer) != 0) continue;
        for (int policy = LARGO_NON_FINITE_SKIP; policy <= LARGO_NON_FINITE_PROPAGATE; policy++) {
            check_policy(ctx, GOLDEN_STEP, test, algo, (largo_non_finite)policy);
            check_policy(ctx, GOLDEN_OBJECT, test, algo, (largo_non_finite)policy);
        }
        n++;
    }
    cJSON_Delete(file);
    return n;
}

int golden_is_nd(const cJSON *test)
{
    const cJSON *tensor;
    cJSON_ArrayForEach(tensor, golden_get(test, "tensors"))
    {
        if (cJSON_GetArraySize(golden_get(tensor, "shape")) > 2) return 1;
    }
    return 0;
}

void golden_check_file(const golden_file *file)
{
    largo_ctx *ctx = test_ctx(2);
    cJSON *json = golden_load(file->name);
    const cJSON *test;
    int ok = 0, rejected = 0, skipped = 0;
    cJSON_ArrayForEach(test, golden_get(json, "cases"))
    {
        const char *why = file->why_not ? file->why_not(test) : NULL;
        if (why) {
            print_message("skipped, %s: %s\n", why, golden_get(test, "name")->valuestring);
            skipped++;
            continue;
        }
        if (strcmp(golden_get(test, "fp32")->valuestring, "ok") != 0) {
            golden_check_rejected(ctx, test, file->algo);
            rejected++;
            continue;
        }
        golden_check_case(ctx, GOLDEN_STEP, test, file->algo, file->n_states, file->states);
        golden_check_case(ctx, GOLDEN_OBJECT, test, file->algo, file->n_states, file->states);
        ok++;
    }
    print_message("%s: %d cases, %d refused, %d skipped\n", file->name, ok, rejected, skipped);
    assert_int_equal(ok, file->ok);
    assert_int_equal(rejected, file->rejected);
    assert_int_equal(skipped, file->skipped);
    cJSON_Delete(json);
    largo_ctx_destroy(ctx);
}
