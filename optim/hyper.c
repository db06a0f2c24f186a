/* hyper.c - defaults, presets, checks and access by name of hyper-parameters, all from the tables. */
#define LARGO_EXPERIMENTAL
#include <float.h>
#include <math.h>
#include <string.h>
#include "hyper.h"
#include "../core/fpenv.h"
#include "../core/status.h"

#define FINITE ((double)FLT_MAX)
#define TINY ((double)FLT_MIN)
#define BELOW_ONE (1.0 - DBL_EPSILON / 2)

typedef struct field {
    const char *name;
    size_t offset;
    int is_choice;
    double low, high;
    const char *range; /* completes "must be ..." */
} field;

static const field fields[] = {
#define NUMBER(name, low, high, range) {#name, offsetof(largo_hyper, name), 0, low, high, range},
#define CHOICE(name, low, high, range) {#name, offsetof(largo_hyper, name), 1, low, high, range},
#include "fields.def"
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* Which field of the table a USE row means. */
enum {
#define NUMBER(name, ...) FIELD_##name,
#define CHOICE(name, ...) FIELD_##name,
#include "fields.def"
};

typedef struct use {
    largo_algo algo;
    int field;
    double value;
    int or_zero; /* 0 is in range, whatever the field's is */
} use;

enum {
#define ALGO(name, enumerator) ALGO_##name = enumerator,
#include "algos.def"
};
static const use uses[] = {
#define USE(algo, field, value) {(largo_algo)ALGO_##algo, FIELD_##field, value, 0},
#define USE_OR_ZERO(algo, field, value) {(largo_algo)ALGO_##algo, FIELD_##field, value, 1},
#include "algos.def"
};
enum { N_USES = sizeof uses / sizeof *uses };

typedef struct preset {
    const char *name;
    largo_algo algo;
} preset;
static const preset presets[] = {
#define PRESET(name, algo) {#name, (largo_algo)ALGO_##algo},
#include "presets.def"
};
enum {
#define PRESET(name, algo) PRESET_##name,
#include "presets.def"
    N_PRESETS
};
static const char preset_names[] = "one of"
#define PRESET(name, algo) " " #name
#include "presets.def"
    ;

typedef struct setting {
    int preset, field;
    double value;
} setting;
static const setting settings[] = {
#define SET(preset, field, value) {PRESET_##preset, FIELD_##field, value},
#include "presets.def"
};

const char *largo__algo_name(largo_algo algo)
{
    switch ((int)algo) {
#define ALGO(name, enumerator)                                                                     \
    case enumerator:                                                                               \
        return #name;
#include "algos.def"
    }
    return NULL;
}

static double get(const largo_hyper *hyper, const field *f)
{
    const char *at = (const char *)hyper + f->offset;
    if (f->is_choice) {
        int32_t i;
        memcpy(&i, at, sizeof i);
        return i;
    }
    double x;
    memcpy(&x, at, sizeof x);
    return x;
}

static void put(largo_hyper *hyper, const field *f, double value)
{
    char *at = (char *)hyper + f->offset;
    if (f->is_choice) {
        const int32_t i = (int32_t)value;
        memcpy(at, &i, sizeof i);
    } else {
        memcpy(at, &value, sizeof value);
    }
}

static const use *find_use(largo_algo algo, int f)
{
    for (int i = 0; i < N_USES; i++)
        if (uses[i].algo == algo && uses[i].field == f) return &uses[i];
    return NULL;
}

/* NaN, infinities and numbers outside fail alike. */
static int in_range(const use *u, double value)
{
    const field *f = &fields[u->field];
    return (value >= f->low && value <= f->high) || (u->or_zero && value == 0.0);
}

/* For messages: completes "must be ...". */
static const char *or_zero(const use *u)
{
    return u->or_zero ? "0, or " : "";
}

static void set_defaults(largo_hyper *hyper, largo_algo algo)
{
    memset(hyper, 0, sizeof *hyper);
    hyper->struct_size = sizeof *hyper;
    hyper->algo = algo;
    for (int f = 0; f < N_FIELDS; f++)
        if (!fields[f].is_choice) put(hyper, &fields[f], NAN);
    for (int i = 0; i < N_USES; i++)
        if (uses[i].algo == algo) put(hyper, &fields[uses[i].field], uses[i].value);
}

largo_status largo_hyper_init_sized(largo_hyper *hyper, size_t struct_size, largo_algo algo)
{
    if (!hyper) return largo__fail(LARGO_ERR_ARGUMENT, "hyper is NULL");
    LARGO__TRY(largo__check_size("hyper", "largo_hyper_init", struct_size, sizeof *hyper));
    if (!largo__algo_name(algo))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "algo is %d, which is not an algorithm of this version", (int)algo);
    largo_hyper filled;
    set_defaults(&filled, algo);
    filled.struct_size = struct_size;
    memset(hyper, 0, struct_size);
    memcpy(hyper, &filled, sizeof filled);
    return LARGO_OK;
}

largo_status largo_hyper_preset_sized(largo_hyper *hyper, size_t struct_size, const char *name)
{
    if (!hyper) return largo__fail(LARGO_ERR_ARGUMENT, "hyper is NULL");
    if (!name) return largo__fail(LARGO_ERR_ARGUMENT, "name of the preset is NULL");
    int p = 0;
    while (p < N_PRESETS && strcmp(presets[p].name, name) != 0) p++;
    if (p == N_PRESETS)
        return largo__fail(LARGO_ERR_ARGUMENT, "preset \"%.40s\" is not known; it must be %s", name,
                           preset_names);
    LARGO__TRY(largo_hyper_init_sized(hyper, struct_size, presets[p].algo));
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (settings[i].preset == p) put(hyper, &fields[settings[i].field], settings[i].value);
    return LARGO_OK;
}

largo_status largo_hyper_set(largo_hyper *hyper, const char *name, double value)
{
    if (!hyper) return largo__fail(LARGO_ERR_ARGUMENT, "hyper is NULL");
    if (!name) return largo__fail(LARGO_ERR_ARGUMENT, "name of the field is NULL");
    LARGO__TRY(largo__check_sized("hyper", "largo_hyper_init", hyper, sizeof *hyper));
    for (int i = 0; i < N_FIELDS; i++) {
        const field *f = &fields[i];
        if (strcmp(f->name, name) != 0) continue;
        const use *u = find_use(hyper->algo, i);
        if (!u) {
            const char *algo = largo__algo_name(hyper->algo);
            return largo__fail(LARGO_ERR_ARGUMENT, "%s is not used by %s; it must stay unset", name,
                               algo ? algo : "this algorithm");
        }
        const int is_switch = f->is_choice && f->high == LARGO_ON;
        const double number = is_switch && (value == 0.0 || value == 1.0) ? value + 1.0 : value;
        const int fractional = f->is_choice && value != floor(value);
        if (!in_range(u, number) || fractional || (is_switch && value != 0.0 && value != 1.0))
            return largo__fail(LARGO_ERR_ARGUMENT, "%s is %.9g; it must be %s%s", name, value,
                               or_zero(u), is_switch ? "0 or 1" : f->range);
        put(hyper, f, number);
        return LARGO_OK;
    }
    return largo__fail(LARGO_ERR_ARGUMENT, "\"%.40s\" is not a field of largo_hyper", name);
}

/* Fields that agree one by one may still not fit together. Those that are not used are NaN, and must
 * not be compared: that would leave a mark in the caller's floating-point flags. */
static largo_status check_pairs(const largo_hyper *h, const char *name)
{
    if (h->nesterov == LARGO_ON &&
        !(h->momentum > 0.0 && (isnan(h->dampening) || h->dampening == 0.0)))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%s.nesterov is ON with momentum %.9g and dampening %.9g; it needs "
                           "momentum > 0 and dampening 0",
                           name, h->momentum, h->dampening);
    if (h->denominator == LARGO_DENOMINATOR_UPDATE && h->velocity != LARGO_VELOCITY_GRAD)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%s.denominator is UPDATE with velocity %d; the ratio of an update "
                           "cannot be part of it: velocity must be GRAD (3)",
                           name, (int)h->velocity);
    if (h->lr * h->weight_decay > FINITE)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%s.lr is %.9g and weight_decay %.9g; their product must be finite as a "
                           "float",
                           name, h->lr, h->weight_decay);
    if (find_use(h->algo, FIELD_weight_norm_min) && h->weight_norm_min > h->weight_norm_max)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%s.weight_norm_max is %.9g; it must be >= weight_norm_min, %.9g", name,
                           h->weight_norm_max, h->weight_norm_min);
    return LARGO_OK;
}

static largo_status read_checked(const largo_hyper *given, const char *name, largo_hyper *hyper)
{
    if (!given) return largo__fail(LARGO_ERR_ARGUMENT, "%s is NULL", name);
    LARGO__TRY(largo__check_sized(name, "largo_hyper_init", given, sizeof *hyper));
    largo_hyper h = *given;
    h.struct_size = sizeof h;
    const char *algo = largo__algo_name(h.algo);
    if (!algo)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%s.algo is %d, which is not an algorithm of this version", name,
                           (int)h.algo);
    for (int i = 0; i < N_FIELDS; i++) {
        const field *f = &fields[i];
        const double value = get(&h, f);
        const use *u = find_use(h.algo, i);
        if (!u) {
            if (f->is_choice ? value != 0.0 : !isnan(value))
                return largo__fail(LARGO_ERR_ARGUMENT,
                                   "%s.%s is %.9g, but %s does not use it; it must stay as "
                                   "largo_hyper_init leaves it",
                                   name, f->name, value, algo);
        } else if (!in_range(u, value)) {
            return largo__fail(LARGO_ERR_ARGUMENT, "%s.%s is %.9g; it must be %s%s", name, f->name,
                               value, or_zero(u), f->range);
        }
    }
    if (h.reserved)
        return largo__fail(LARGO_ERR_ARGUMENT, "%s.reserved is %u; it must be 0", name,
                           (unsigned)h.reserved);
    if ((uintptr_t)h.grad_factor % sizeof *h.grad_factor)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "%s.grad_factor is %p; it must be aligned to 4 bytes", name,
                           (const void *)h.grad_factor);
    LARGO__TRY(check_pairs(&h, name));
    *hyper = h;
    return LARGO_OK;
}

/* lr * weight_decay is rarely exact, and a host may trap what is not. */
largo_status largo__hyper_read(const largo_hyper *given, const char *name, largo_hyper *hyper)
{
    const largo__fpenv previous = largo__fpenv_enter();
    const largo_status status = read_checked(given, name, hyper);
    largo__fpenv_leave(previous);
    return status;
}

largo_status largo_hyper_check(const largo_hyper *hyper)
{
    largo_hyper ours;
    return largo__hyper_read(hyper, "hyper", &ours);
}

int largo__hyper_same_plan(const largo_hyper *a, const largo_hyper *b)
{
    largo_hyper x = *a;
    x.struct_size = b->struct_size;
    x.lr = b->lr;
    x.grad_scale = b->grad_scale;
    x.grad_factor = b->grad_factor;
    x.max_grad_norm = b->max_grad_norm;
    return memcmp(&x, b, sizeof x) == 0;
}
