/* support_scene.c - see support_scene.h. */
#include <float.h>
#include <math.h>
#include "support.h"
#include "support_scene.h"
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h> /* its macros do nothing without the sanitizer */
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define FINITE ((double)FLT_MAX)
#define TINY ((double)FLT_MIN)
#define BELOW_ONE (1.0 - DBL_EPSILON / 2)
enum { FACTORS = 8 }; /* floats in the first region that grad_factor may point at */

static const char *const field_names[] = {
#define NUMBER(name, ...) #name,
#define CHOICE(name, ...) #name,
#include "optim/fields.def"
};
static const double field_limits[] = {
#define NUMBER(name, low, high, text) low, high,
#define CHOICE(name, low, high, text) low, high,
#include "optim/fields.def"
};
static const char *const preset_names[] = {
#define PRESET(name, algo) #name,
#include "optim/presets.def"
};
static const int algos[] = {
#define ALGO(name, enumerator) enumerator,
#include "optim/algos.def"
};

/* ---- memory -------------------------------------------------------------------------------------- */

static void zones(const scene *s, int are_closed)
{
    if (!are_closed) {
        ASAN_UNPOISON_MEMORY_REGION(s->now, ARENA);
        return;
    }
    ASAN_POISON_MEMORY_REGION(s->now, ARENA);
    for (size_t i = 0; i < s->regions; i++)
        ASAN_UNPOISON_MEMORY_REGION(s->region[i].at, s->region[i].bytes);
}

/* New memory, or NULL when there is no room. */
static char *reserve(scene *s, size_t bytes, size_t align)
{
    const size_t at = (s->used + align - 1) / align * align;
    if (bytes > ARENA || at + bytes + RED_ZONE > ARENA || s->regions == REGIONS) return NULL;
    const region made = {s->now + at, bytes};
    s->region[s->regions++] = made;
    s->used = at + bytes + RED_ZONE;
    return made.at;
}

/* Memory that something else has already, with these bytes behind it. */
static char *share(const scene *s, input *in, size_t bytes, size_t align)
{
    if (!s->regions) return NULL;
    const region *r = &s->region[take_below(in, s->regions)];
    const size_t shift = take_below(in, 16) * align;
    return r->bytes >= bytes + shift ? r->at + shift : NULL;
}

/* An address with these bytes behind it; sometimes NULL, misaligned, or shared. */
static void *place(scene *s, input *in, size_t bytes, size_t align)
{
    const uint8_t kind = take(in);
    if (kind < 224) return reserve(s, bytes, align);
    if (kind < 232) return NULL;
    if (kind < 248) return share(s, in, bytes, align);
    char *at = reserve(s, bytes + align, align);
    return at ? at + 1 + take_below(in, align - 1) : NULL;
}

/* Finite weights and gradients. Made once: the same for every input. */
static void fill(scene *s)
{
    static float image[ARENA / sizeof(float)];
    if (image[0] == 0.0f) test_fill(image, COUNT(image), 1, 0, 8);
    memcpy(s->now, image, ARENA);
}

static float special(input *in)
{
    static const float specials[] = {NAN,      INFINITY,  -INFINITY, 0x1p64f, -0x1p63f, FLT_MAX,
                                     -FLT_MAX, 0x1p-140f, -0.0f,     FLT_MIN, 1e-25f,   0x1p40f};
    return specials[take_below(in, COUNT(specials))];
}

/* A few numbers that are out of the ordinary, or a whole region of one. */
static void disturb(scene *s, input *in)
{
    for (size_t k = take_below(in, 8); k && s->regions; k--) {
        const region *r = &s->region[take_below(in, s->regions)];
        const size_t n = r->bytes / sizeof(float);
        const float x = special(in);
        const size_t from = (size_t)take(in) * 67, to = take(in) & 1 ? n : from + 1;
        for (size_t i = from; i < to && i < n; i++) memcpy(r->at + i * sizeof x, &x, sizeof x);
    }
}

/* ---- hyper-parameters ---------------------------------------------------------------------------- */

double take_number(input *in)
{
    static const double others[] = {0.0, 0.5,      0.9,       1e-3,   2.0,   3.0,   10.0, -1.0,
                                    NAN, INFINITY, -INFINITY, 5e-324, 1e300, 1e-46, -0.0, 1.5};
    const uint8_t kind = take(in);
    if (kind < 96) return others[kind % COUNT(others)];
    if (kind < 240) return field_limits[take_below(in, COUNT(field_limits))];
    double any;
    take_bytes(in, &any, sizeof any);
    return any;
}

/* A name of the table, or any. */
static const char *take_name(input *in, const char *const names[], size_t n, char *out, size_t size)
{
    const uint8_t kind = take(in);
    return kind < 224 ? names[kind % n] : take_text(in, out, size);
}

static void open_sized(sized *block, size_t bytes, input *in)
{
    static const size_t more[] = {0, 0, 0, 8, 64, 4096};
    block->room = bytes + more[take_below(in, COUNT(more))];
    block->memory = calloc(1, block->room);
    must(block->memory);
}

/* A size that does not speak of memory beyond the block, if it is one that a struct may have. */
static size_t take_size(input *in, const sized *block)
{
    const size_t size = (size_t)take_integer(in);
    return size > block->room && size <= 4096 ? block->room : size;
}

static void take_raw(input *in, const sized *block)
{
    const size_t at = take_below(in, block->room < 256 ? block->room : 256);
    const size_t rest = block->room - at, n = take_below(in, 17);
    take_bytes(in, (char *)block->memory + at, n < rest ? n : rest);
}

/* None, one of those in the first region, or a misaligned one. */
static const float *take_factor(const scene *s, input *in)
{
    const uint8_t kind = take(in);
    if (kind < 64) return NULL;
    const char *at = s->region[0].at + kind % FACTORS * sizeof(float);
    return (const float *)(const void *)(kind < 240 ? at : at + 1);
}

void scene_change_hyper(const scene *s, const sized *block, input *in)
{
    char name[64];
    largo_hyper *h = block->memory;
    const size_t size = h->struct_size;
    const float *factor = h->grad_factor;
    void *was = malloc(block->room);
    must(was);
    memcpy(was, h, block->room);
    largo_status status = LARGO_OK;
    switch (take(in) & 7) {
    case 0:
        status = largo_hyper_init_sized(h, take_size(in, block), (largo_algo)take_integer(in));
        break;
    case 1:
        status = largo_hyper_preset_sized(
            h, take_size(in, block),
            take_name(in, preset_names, COUNT(preset_names), name, sizeof name));
        break;
    case 2:
        take_raw(in, block);
        h->struct_size = size; /* raw bytes may not say how much memory there is, and where */
        h->grad_factor = factor;
        break;
    case 3:
        h->struct_size = take_size(in, block);
        break;
    case 4:
        h->grad_factor = take_factor(s, in);
        break;
    default:
        status = largo_hyper_set(
            h, take_name(in, field_names, COUNT(field_names), name, sizeof name), take_number(in));
    }
    must_be_told(status);
    must(status == LARGO_OK || memcmp(was, h, block->room) == 0);
    free(was);
}

static void open_hyper(const scene *s, sized *block, input *in)
{
    open_sized(block, sizeof(largo_hyper), in);
    largo_hyper *h = block->memory;
    const size_t algo = take_below(in, COUNT(algos));
    must(largo_hyper_init_sized(h, block->room < 4096 ? block->room : 4096,
                                (largo_algo)algos[algo]) == LARGO_OK);
    for (size_t k = take_below(in, 16); k; k--) scene_change_hyper(s, block, in);
    const largo_status status = largo_hyper_check(h);
    must_be_told(status);
}

largo_hyper *scene_hyper(const scene *s, size_t i)
{
    return s->hyper[i].memory;
}

/* Rising, or of any kind. */
static void take_milestones(scene *s, input *in)
{
    const int is_any = take(in) > 240;
    int64_t at = 0;
    for (size_t i = 0; i < COUNT(s->milestones); i++) {
        const int64_t x = take_integer(in);
        at = is_any || at > INT32_MAX ? x : at + 1 + (x & UINT32_MAX);
        s->milestones[i] = at;
    }
}

/* The fields that its decay uses; others sometimes. */
static void open_schedule(scene *stage, input *in)
{
    sized *block = &stage->schedule;
    open_sized(block, sizeof(largo_schedule), in);
    largo_schedule *s = block->memory;
    const uint8_t decay = take(in), all = take(in) > 250 ? 1 : 0;
    s->decay = (largo_decay)(decay < 240 ? 1 + decay % 5 : take_integer(in));
    s->flags = take(in) < 250 ? decay / 16 % 4u : (uint32_t)take_integer(in);
    s->lr = take_number(in);
    s->warmup = take_integer(in);
    if (s->warmup || all) s->start_lr = take_number(in);
    if (all || (s->decay >= LARGO_DECAY_LINEAR && s->decay <= LARGO_DECAY_POLYNOMIAL)) {
        s->end_lr = take_number(in);
        s->total = take_integer(in);
    }
    if (all || s->decay == LARGO_DECAY_POLYNOMIAL) s->power = take_number(in);
    if (take(in) > 240) take_raw(in, block);
    s->milestones = NULL; /* raw bytes may not say where there is memory, and how much */
    s->n_milestones = take_below(in, COUNT(stage->milestones) + 1);
    if (all || s->decay == LARGO_DECAY_MULTI_STEP) {
        s->gamma = take_number(in);
        take_milestones(stage, in);
        if (take(in) < 250) s->milestones = stage->milestones;
    } else if (take(in) < 250) {
        s->n_milestones = 0;
    }
    s->struct_size = take(in) < 240 ? sizeof *s : take_size(in, block);
}

/* ---- descriptors --------------------------------------------------------------------------------- */

/* Elements, or -1 where they are not fit for the arena, for being too many or not a shape. */
static int64_t elements(const largo_tensor *t)
{
    int64_t n = 1;
    if (t->ndim < 0 || t->ndim > LARGO_MAX_DIMS) return -1;
    for (int32_t d = 0; d < t->ndim; d++)
        if (t->shape[d] < 0) return -1;
    for (int32_t d = 0; d < t->ndim; d++)
        if (t->shape[d] == 0) return 0;
    for (int32_t d = 0; d < t->ndim; d++) {
        if (t->shape[d] > ARENA) return -1;
        n *= t->shape[d];
        if (n > ARENA) return -1;
    }
    return n;
}

static int64_t take_dimension(input *in)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 6, 12, 17, 64, 127, 130, 4095, 4096, 4097};
    const uint8_t kind = take(in);
    return kind < 240 ? sizes[kind % COUNT(sizes)] : take_integer(in);
}

static void take_shape(input *in, int32_t *ndim, int64_t shape[LARGO_MAX_DIMS])
{
    static const int32_t usual[] = {1, 2, 2, 3, 0, 4, 1, 6};
    const uint8_t kind = take(in);
    *ndim = kind < 248 ? usual[kind % COUNT(usual)] : (int32_t)take_integer(in);
    for (int32_t d = 0; d < *ndim && d < LARGO_MAX_DIMS; d++) shape[d] = take_dimension(in);
}

static void take_tensor(input *in, largo_tensor *t)
{
    take_shape(in, &t->ndim, t->shape);
    t->dtype = take(in) < 250 ? LARGO_F32 : (largo_dtype)take_integer(in);
}

/* The whole tensor of which the value is a part: a longer vector, or any shape. */
static void take_shard(input *in, described *q)
{
    const uint8_t kind = take(in);
    if (kind < 192) return;
    largo_shard *s = &q->shard;
    q->param.shard = s;
    s->placement = (largo_placement)(1 + (kind - 192) % 3);
    if (kind > 250) s->placement = (largo_placement)take_integer(in);
    if (take(in) & 1) {
        take_shape(in, &s->ndim, s->shape);
        s->offset = take_integer(in);
    } else if (s->placement == LARGO_SHARDED) {
        const int64_t before = take_dimension(in), after = take_dimension(in);
        const int64_t here = q->is_backed ? (int64_t)(q->bytes / sizeof(float)) : 0;
        s->ndim = 1;
        s->offset = before < 0 || before > INT32_MAX ? 0 : before;
        s->shape[0] = here + s->offset + (after < 0 || after > INT32_MAX ? 0 : after);
    }
}

static void take_options(scene *s, input *in, described *q)
{
    static const int32_t usual[] = {0, 0, 0, 1, 2, 3, 4, 17};
    largo_param *p = &q->param;
    const uint8_t kind = take(in);
    p->segments = kind < 240 ? usual[kind % COUNT(usual)] : (int32_t)take_integer(in);
    const uint8_t flags = take(in);
    p->flags = flags < 250 ? flags & 15u & (flags >> 4) : (uint32_t)take_integer(in);
    const uint8_t rest = take(in);
    if (rest > 250) p->pad = (uint32_t)take_integer(in);
    if (rest > 245) p->reserved[rest % COUNT(p->reserved)] = (uint64_t)take_integer(in);
    take_shard(in, q);
    if (take(in) > 128) p->step = place(s, in, sizeof *p->step, sizeof *p->step);
    const size_t segments = p->segments > 1 ? (size_t)p->segments : 1;
    if (take(in) > 160) p->stats = place(s, in, segments * sizeof *p->stats, sizeof(double));
}

/* State as the library says, or as much as any algorithm could want of such a tensor. */
static void take_state(scene *s, input *in, described *q)
{
    largo_param *p = &q->param;
    largo_slot slot[LARGO_MAX_SLOTS];
    size_t n = 0, *bytes = q->slot_bytes;
    const largo_status status = largo_slots(scene_hyper(s, 0), p, slot, &n);
    must_be_told(status);
    must(status != LARGO_OK || n <= LARGO_MAX_SLOTS);
    if (s->by_hand) n = take_below(in, LARGO_MAX_SLOTS + 1);
    for (size_t i = 0; i < n; i++) bytes[i] = s->by_hand ? q->bytes : slot[i].bytes;
    for (size_t i = 0; i < n; i++) {
        float *x = p->state[i] = place(s, in, bytes[i], sizeof(float));
        /* Squares have no sign. */
        for (size_t k = 0; x && (uintptr_t)x % sizeof *x == 0 && k < bytes[i] / sizeof *x; k++)
            x[k] = fabsf(x[k]);
    }
}

/* One that must be left alone: refused, or without work. */
static void take_unbacked(input *in, largo_param *p)
{
    char *const nowhere = (char *)(uintptr_t)64; /* in the first page: an access ends the program */
    p->value.data = nowhere;
    p->grad.data = nowhere;
    for (int i = 0; i < LARGO_MAX_SLOTS; i++) p->state[i] = nowhere;
    switch (take(in) & 3) {
    case 0:
        p->grad.data = NULL;
        break;
    case 1:
        p->value.data = NULL;
        break;
    case 2:
        p->flags |= LARGO_PARAM_FROZEN;
        break;
    default:
        p->value.data = nowhere + 1;
    }
}

static void take_param(scene *s, input *in, described *q)
{
    largo_param *p = &q->param;
    p->id = (uint32_t)(q - s->described);
    take_tensor(in, &p->value);
    p->grad = p->value;
    if (take(in) > 248) take_tensor(in, &p->grad);
    const int64_t n = elements(&p->value);
    q->is_backed = n >= 0;
    q->bytes = n < 0 ? 0 : (size_t)n * sizeof(float);
    take_options(s, in, q);
    if (!q->is_backed) {
        take_unbacked(in, p);
        return;
    }
    p->value.data = place(s, in, q->bytes, sizeof(float));
    p->grad.data = place(s, in, q->bytes, sizeof(float));
    take_state(s, in, q);
}

/* Counts of steps are mostly small; last, so that no other number stands there. */
static void set_counts(scene *s, input *in)
{
    for (size_t i = 0; i < s->n; i++) {
        int64_t *step = s->described[i].param.step;
        if (!step) continue;
        const int64_t count = take_integer(in);
        memcpy(step, &count, sizeof count);
    }
}

void scene_open(scene *s, input *in)
{
    static _Alignas(64) char images[3][ARENA];
    memset(s, 0, sizeof *s);
    s->now = images[0];
    s->start = images[1];
    s->was = images[2];
    s->used = RED_ZONE;
    fill(s);
    float *factor = (float *)(void *)reserve(s, FACTORS * sizeof(float), sizeof(float));
    for (int i = 0; i < FACTORS; i++) factor[i] = i & 3 ? 1.0f : 0.25f;
    s->by_hand = take(in) & 1;
    s->n = take_below(in, PARAMS + 1);
    for (size_t i = 0; i < HYPERS; i++) {
        open_hyper(s, &s->hyper[i], in);
        s->hyper_was[i].memory = malloc(s->hyper[i].room);
        must(s->hyper_was[i].memory);
    }
    open_schedule(s, in);
    for (size_t i = 0; i < s->n; i++) take_param(s, in, &s->described[i]);
    disturb(s, in);
    set_counts(s, in);
    memcpy(s->start, s->now, s->used);
}

void scene_close(scene *s)
{
    for (size_t i = 0; i < HYPERS; i++) {
        free(s->hyper[i].memory);
        free(s->hyper_was[i].memory);
    }
    free(s->schedule.memory);
}

void scene_rewind(scene *s)
{
    memcpy(s->now, s->start, s->used);
}

int scene_fits(const scene *s, const largo_hyper *h)
{
    return s->by_hand || h->algo == scene_hyper(s, 0)->algo;
}

/* ---- around a call ------------------------------------------------------------------------------- */

void must_be_told(largo_status status)
{
    must(strcmp(largo_status_name(status), "LARGO_ERR_UNKNOWN") != 0);
    if (status == LARGO_OK) return;
    const char *text = largo_last_error();
    must(*text && strlen(text) < 512 && !strchr(text, '\n'));
}

void scene_before(scene *s)
{
    memcpy(s->was, s->now, s->used);
    for (size_t i = 0; i < HYPERS; i++)
        memcpy(s->hyper_was[i].memory, s->hyper[i].memory, s->hyper[i].room);
    zones(s, 1);
}

/* These bytes may differ after a call: make the two images agree, by what is there now or was. */
static void excuse(scene *s, const void *at, size_t bytes, int restore)
{
    const uintptr_t p = (uintptr_t)at, arena = (uintptr_t)s->now;
    if (p < arena || p >= arena + ARENA) return; /* NULL, or the library's own */
    char *now = s->now + (p - arena), *was = s->was + (p - arena);
    memcpy(restore ? now : was, restore ? was : now, bytes);
}

static void excuse_param(scene *s, const largo_param *p, int is_torn)
{
    const described *q = &s->described[p->id];
    if (!p->grad.data || p->flags & LARGO_PARAM_FROZEN) return;
    const int is_scratch = (p->flags & LARGO_PARAM_GRAD_SCRATCH) != 0;
    for (int i = 0; i < LARGO_MAX_SLOTS; i++) excuse(s, p->state[i], q->slot_bytes[i], 0);
    /* As a caller does: new gradients before the next step. */
    if (is_scratch) excuse(s, p->grad.data, q->bytes, !is_torn);
    if (is_torn) return;
    excuse(s, p->value.data, q->bytes, 0);
    excuse(s, p->step, sizeof *p->step, 0);
    excuse(s, p->stats, sizeof *p->stats * (size_t)(p->segments > 1 ? p->segments : 1), 0);
}

void scene_after(scene *s, largo_status status, size_t n, const largo_param params[])
{
    zones(s, 0);
    const int is_torn = status == LARGO_ERR_CALLBACK;
    for (size_t i = 0; (status == LARGO_OK || is_torn) && i < n; i++)
        excuse_param(s, &params[i], is_torn);
    must(memcmp(s->was, s->now, s->used) == 0);
    for (size_t i = 0; i < HYPERS; i++)
        must(memcmp(s->hyper_was[i].memory, s->hyper[i].memory, s->hyper[i].room) == 0);
}

int scene_same(const scene *s, const char *a, const char *b)
{
    if (memcmp(a, b, s->used) == 0) return 1;
    for (size_t at = 0; at < s->used; at += sizeof(double)) {
        float x[2], y[2];
        double u, v;
        memcpy(x, a + at, sizeof x);
        memcpy(y, b + at, sizeof y);
        memcpy(&u, x, sizeof u);
        memcpy(&v, y, sizeof v);
        if (isnan(u) && isnan(v)) continue;
        for (int i = 0; i < 2; i++)
            if (memcmp(&x[i], &y[i], sizeof *x) != 0 && !(isnan(x[i]) && isnan(y[i]))) return 0;
    }
    return 1;
}
