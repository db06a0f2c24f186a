/* hyper.c - hyper-parameters and descriptors of any kind, by the function and by the object.
 *
 * The input is a scene (support_scene.h) and a list of calls on it. The list is played twice, on one
 * thread and on two, and must tell and write the same. After every call: a status of the list, a
 * sentence if it failed, no byte written that the header does not speak of, none at all after a
 * failure or a skipped step, the red zones whole, in the end no memory left. Where a step succeeds
 * through the function, the object makes the same one. */
#include <math.h>
#include "support_scene.h"

enum { CALLS = 12, EVENTS = 256, GROUPS = 4, ROUNDS = 8 };

/* How the context is made. */
typedef struct manner {
    int32_t threads;
    int by_callback;    /* `parallel`, last item first */
    size_t fail_alloc;  /* this allocation fails, counted from 1 */
    size_t fail_reduce; /* this reduction fails */
    int has_all_reduce;
} manner;

/* What an object holds. */
typedef struct group {
    size_t n;
    largo_param params[PARAMS];
} group;

/* One playing of the list. */
typedef struct play {
    scene *scene;
    input in;
    manner manner;
    size_t allocs, held, held_bytes, reductions;
    int is_short; /* of memory: how much there is depends on the threads, and so does what follows */
    largo_ctx *ctx;
    largo_optim *optim;
    group group[GROUPS];
    size_t groups;
    size_t events;
    int64_t event[EVENTS]; /* everything that was told */
    char end[ARENA];
} play;

static void tell(play *p, int64_t event)
{
    if (p->events < EVENTS) p->event[p->events++] = event;
}

static void tell_number(play *p, double x)
{
    int64_t bits = -1;
    if (!isnan(x)) memcpy(&bits, &x, sizeof bits);
    tell(p, bits);
}

/* The text as far as an address of the library's own, which may differ, does not stand in it. */
static void tell_status(play *p, largo_status status)
{
    must_be_told(status);
    tell(p, status);
    p->is_short |= status == LARGO_ERR_MEMORY;
    if (status != LARGO_OK && !strstr(largo_last_error(), "0x")) {
        uint64_t hash = 0;
        for (const char *c = largo_last_error(); *c; c++) hash = hash * 31 + (unsigned char)*c;
        tell(p, (int64_t)hash);
    }
}

/* ---- what the host gives ------------------------------------------------------------------------- */

enum { MOST_BYTES = 1 << 22 };

static void *allocate(void *user, size_t bytes, void *stream)
{
    play *p = user;
    must(!stream && bytes % 256 == 0);
    if (++p->allocs == p->manner.fail_alloc || bytes > MOST_BYTES) {
        p->is_short = 1;
        return NULL;
    }
    p->held++;
    p->held_bytes += bytes;
    return aligned_alloc(256, bytes);
}

static void release(void *user, void *memory, size_t bytes, void *stream)
{
    play *p = user;
    must(memory && !stream && p->held && p->held_bytes >= bytes);
    p->held--;
    p->held_bytes -= bytes;
    free(memory);
}

static void last_first(void *user, size_t n, void (*body)(void *arg, size_t i), void *arg)
{
    (void)user;
    while (n) body(arg, --n);
}

/* Nobody else has a part. */
static int all_reduce(void *user, void *values, size_t n, largo_dtype dtype, largo_reduce_op op,
                      void *stream)
{
    play *p = user;
    must(values && n && !stream);
    must(dtype == LARGO_U32 ? op == LARGO_MAX
                            : (dtype == LARGO_I64 || dtype == LARGO_F64) && op == LARGO_SUM);
    return ++p->reductions == p->manner.fail_reduce;
}

static largo_status open_ctx(play *p)
{
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.backend = LARGO_BACKEND_CPU;
    options.threads = p->manner.threads;
    options.parallel = p->manner.by_callback ? last_first : NULL;
    options.alloc = allocate;
    options.free = release;
    options.alloc_user = options.all_reduce_user = p;
    if (p->manner.has_all_reduce) options.all_reduce = all_reduce;
    const largo_status status = largo_ctx_create(&options, &p->ctx);
    must(!largo_failed(status) == !!p->ctx);
    return status;
}

/* ---- calls --------------------------------------------------------------------------------------- */

static void tell_outcome(play *p)
{
    largo_outcome o;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    const largo_status status = largo_last_outcome(p->ctx, &o);
    tell_status(p, status);
    if (status != LARGO_OK) return;
    tell(p, o.skipped);
    tell(p, o.scanned);
    tell(p, o.bad_param);
    tell(p, o.bad_element);
    tell_number(p, o.grad_norm);
    tell_number(p, o.clip);
}

/* Some of the descriptors, side by side. */
static size_t take_params(const scene *s, input *in, largo_param out[PARAMS])
{
    const uint8_t which = take(in);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!(which >> i & 1)) out[n++] = s->described[i].param;
    return n;
}

static int64_t take_step(input *in)
{
    const uint8_t kind = take(in);
    return kind < 200 ? 1 + kind % 4 : take_integer(in);
}

static const largo_hyper *take_hyper(const play *p, input *in)
{
    const largo_hyper *h = scene_hyper(p->scene, take(in) < 192 ? 0 : 1);
    return scene_fits(p->scene, h) ? h : scene_hyper(p->scene, 0);
}

static void call_step(play *p, input *in)
{
    largo_param params[PARAMS];
    const largo_hyper *h = take_hyper(p, in);
    const int64_t step = take_step(in);
    const size_t n = take_params(p->scene, in, params);
    scene_before(p->scene);
    const largo_status status = largo_step(p->ctx, h, step, n, params);
    tell_status(p, status);
    scene_after(p->scene, status, n, params);
    if (largo_hyper_check(h) != LARGO_OK) must(status != LARGO_OK);
}

/* By rounds, of a function or of an object; sometimes one out of order. */
static void call_rounds(play *p, input *in, int by_object)
{
    largo_param params[PARAMS];
    const largo_hyper *h = take_hyper(p, in);
    const int64_t step = take_step(in);
    size_t n = by_object ? 0 : take_params(p->scene, in, params);
    const uint8_t kind = take(in);
    for (size_t g = 0; by_object && g < p->groups; g++)
        for (size_t i = 0; i < p->group[g].n; i++) params[n++] = p->group[g].params[i];
    largo_reduction r = {NULL, 0, LARGO_F32, LARGO_SUM};
    largo_status status = LARGO_OK;
    for (int32_t round = kind < 240 ? 0 : kind - 248; round < ROUNDS; round++) {
        scene_before(p->scene);
        status = by_object ? largo_optim_step_round(p->optim, round, &r)
                           : largo_step_round(p->ctx, h, step, n, params, round, &r);
        tell_status(p, status);
        must(status == LARGO_OK || !r.n);
        /* Between two rounds moments may be written. */
        scene_after(p->scene, r.n ? LARGO_ERR_CALLBACK : status, n, params);
        if (!r.n || (kind >= 200 && round == kind % 8)) break;
    }
}

/* A parameter may be in one group only: the sum of all groups' parameters stays below PARAMS. */
static void call_add(play *p, input *in)
{
    if (p->groups == GROUPS) return;
    group *g = &p->group[p->groups];
    const largo_hyper *h = take_hyper(p, in);
    size_t held = 0, number = 99;
    for (size_t i = 0; i < p->groups; i++) held += p->group[i].n;
    g->n = take_params(p->scene, in, g->params);
    if (held + g->n > PARAMS) return;
    scene_before(p->scene);
    const largo_status status = largo_optim_add_group(p->optim, h, g->n, g->params, &number);
    tell_status(p, status);
    scene_after(p->scene, status, 0, NULL);
    must((status == LARGO_OK) == (number != 99));
    if (status != LARGO_OK) return;
    must(number == p->groups);
    p->groups++;
}

/* The counts of an object move by one if the step was applied, or not at all. */
static void call_object_step(play *p, input *in)
{
    largo_param params[PARAMS];
    size_t n = 0;
    for (size_t g = 0; g < p->groups; g++)
        for (size_t i = 0; i < p->group[g].n; i++) params[n++] = p->group[g].params[i];
    for (size_t k = 1 + take_below(in, 3); k; k--) {
        const int64_t count = largo_optim_step_count(p->optim);
        scene_before(p->scene);
        const largo_status status = largo_optim_step(p->optim);
        tell_status(p, status);
        scene_after(p->scene, status, n, params);
        must(largo_optim_step_count(p->optim) == count + (status == LARGO_OK));
    }
    for (size_t g = 0; g < p->groups; g++)
        for (size_t i = 0; i <= p->group[g].n; i++) tell(p, largo_optim_param_step(p->optim, g, i));
}

/* Some without a gradient or frozen, some back again; or other memory, as it comes. */
static void call_rebind(play *p, input *in)
{
    const size_t number = take_below(in, GROUPS + 1);
    group *g = &p->group[number < p->groups ? number : 0];
    largo_param params[PARAMS];
    if (!p->groups) return;
    memcpy(params, g->params, sizeof params);
    for (size_t i = 0; i < g->n; i++) {
        const described *q = &p->scene->described[params[i].id];
        const uint8_t kind = take(in);
        if (!q->is_backed) continue;
        params[i].grad.data = kind & 1 ? NULL : q->param.grad.data;
        if (kind & 2) params[i].flags ^= LARGO_PARAM_FROZEN;
        if (kind & 4) params[i].flags ^= LARGO_PARAM_GRAD_SCRATCH;
        if (kind > 240) params[i].state[kind & 1] = NULL;
        if (kind > 250) params[i].step = NULL;
        if (kind > 252) params[i].segments = kind & 1;
        if (kind > 252) params[i].value.shape[0] = kind & 3;
    }
    const size_t n = take(in) < 248 ? g->n : take_below(in, PARAMS + 1);
    scene_before(p->scene);
    const largo_status status = largo_optim_rebind(p->optim, number, n, params);
    tell_status(p, status);
    scene_after(p->scene, status, 0, NULL);
    if (status == LARGO_OK) memcpy(g->params, params, sizeof params);
}

static void call_change_hyper(play *p, input *in)
{
    const size_t number = take_below(in, GROUPS + 1);
    largo_hyper *h = largo_optim_hyper(p->optim, number);
    must(!h == (number >= p->groups));
    const sized block = {h, sizeof *h};
    if (h) scene_change_hyper(p->scene, &block, in);
}

static void call_schedule(play *p, input *in)
{
    const largo_schedule *s = p->scene->schedule.memory;
    double lr = -1.0;
    largo_status status = largo_schedule_lr(s, take_step(in), take(in) < 250 ? &lr : NULL);
    tell_status(p, status);
    tell_number(p, lr);
    must(status != LARGO_OK ? lr == -1.0 : lr >= 0.0 && lr <= 0x1.fffffep127);
    status =
        largo_optim_set_schedule(p->optim, take_below(in, GROUPS + 1), take(in) & 1 ? NULL : s);
    tell_status(p, status);
}

static void call_scale(play *p, input *in)
{
    const double lr0 = take_number(in);
    const int64_t base = take_integer(in), batch = take_integer(in), samples = take_integer(in);
    double lr = -1.0;
    largo_legw legw = {-1.0, -1.0, -1};
    largo_status status = largo_lr_scale((largo_scaling)take_integer(in), lr0, base, batch, &lr);
    tell_status(p, status);
    must(status != LARGO_OK ? lr == -1.0 : lr >= 0.0 && lr <= 0x1.fffffep127);
    status = largo_legw_scale(lr0, take_number(in), samples, base, batch, &legw);
    tell_status(p, status);
    must(status != LARGO_OK ? legw.lr == -1.0 && legw.warmup == -1 : legw.warmup >= 0);
}

static void call_look(play *p, input *in)
{
    static const char *const names[] = {"exp_avg", "exp_avg_sq", "momentum_buffer", "",
                                        "exp_avg_sq_row"};
    const size_t number = take_below(in, GROUPS + 1), index = take_below(in, PARAMS + 1);
    const uint8_t name = take(in);
    largo_tensor view;
    tell_status(p, largo_optim_slot(p->optim, number, index,
                                    name < 250 ? names[name % COUNT(names)] : NULL, &view));
    const size_t i = take_below(in, PARAMS);
    int64_t begin = 0, end = 0;
    const largo_status status = largo_shard_cut(
        scene_hyper(p->scene, 0), i < p->scene->n ? &p->scene->described[i].param : NULL,
        (int32_t)take_integer(in), (int32_t)take_integer(in), &begin, &end);
    tell_status(p, status);
    must(begin >= 0 && begin <= end);
    tell(p, begin);
    tell(p, end);
}

/* What a caller does between steps: other numbers, other counts. */
static void call_touch(play *p, input *in)
{
    scene *s = p->scene;
    const region *r = &s->region[take_below(in, s->regions)];
    const size_t words = r->bytes / sizeof(int32_t);
    if (words) take_bytes(in, r->at + (size_t)take(in) % words * sizeof(int32_t), sizeof(int32_t));
}

/* An object with the same parameters in one group or two. */
static largo_status step_by_object(play *p, const largo_hyper *h, size_t n, size_t cut,
                                   const largo_param params[])
{
    largo_optim *o;
    largo_status status = largo_optim_create(p->ctx, &o);
    if (status == LARGO_OK && cut) status = largo_optim_add_group(o, h, cut, params, NULL);
    if (status == LARGO_OK) status = largo_optim_add_group(o, h, n - cut, params + cut, NULL);
    must(status == LARGO_OK || status == LARGO_ERR_MEMORY);
    if (status == LARGO_OK) status = largo_optim_step(o);
    largo_optim_destroy(o);
    return status;
}

/* One step from the beginning, by the function and by the object. */
static void call_both(play *p, input *in)
{
    scene *s = p->scene;
    largo_param params[PARAMS];
    const largo_hyper *h = take_hyper(p, in);
    const size_t n = take_params(s, in, params), cut = take_below(in, n + 1);
    scene_rewind(s);
    scene_before(s);
    const largo_status status = largo_step(p->ctx, h, 1, n, params);
    tell_status(p, status);
    scene_after(s, status, n, params);
    if (largo_failed(status) && status != LARGO_ERR_NON_FINITE) return;
    tell_outcome(p);
    memcpy(p->end, s->now, s->used);
    scene_rewind(s);
    scene_before(s);
    const largo_status again = step_by_object(p, h, n, cut, params);
    scene_after(s, again, n, params);
    if (again == LARGO_ERR_MEMORY || p->manner.fail_reduce) return;
    must(again == status);
    must(scene_same(s, p->end, s->now));
}

/* ---- the list ------------------------------------------------------------------------------------ */

static void call(play *p, input *in)
{
    switch (take(in) % 16) {
    case 0:
        call_step(p, in);
        break;
    case 1:
        call_both(p, in);
        break;
    case 2:
    case 3:
        call_add(p, in);
        break;
    case 4:
    case 5:
        call_object_step(p, in);
        break;
    case 6:
        call_rounds(p, in, 0);
        break;
    case 7:
        call_rounds(p, in, 1);
        break;
    case 8:
        call_rebind(p, in);
        break;
    case 9:
        call_change_hyper(p, in);
        break;
    case 10:
        call_schedule(p, in);
        break;
    case 11:
        call_look(p, in);
        break;
    case 12:
        call_touch(p, in);
        break;
    case 13:
        tell_outcome(p);
        break;
    case 14:
        call_scale(p, in);
        break;
    default:
        call_step(p, in);
        call_both(p, in);
    }
}

static void run(play *p, scene *s, input in, manner how)
{
    memset(p, 0, offsetof(play, end));
    p->scene = s;
    p->in = in;
    p->manner = how;
    scene_rewind(s);
    largo_status status = open_ctx(p);
    if (status == LARGO_OK) status = largo_optim_create(p->ctx, &p->optim);
    must(status == LARGO_OK || status == LARGO_ERR_MEMORY);
    for (int k = 0; status == LARGO_OK && k < CALLS && (p->in.left || !k); k++) call(p, &p->in);
    memcpy(p->end, s->now, s->used);
    largo_ctx_destroy(p->ctx); /* the object keeps it alive */
    largo_optim_destroy(p->optim);
    must(!p->held && !p->held_bytes);
}

/* A context of options of any kind. */
static void try_context(input *in)
{
    static play host;
    largo_ctx_options given = LARGO_CTX_OPTIONS;
    largo_ctx *ctx = NULL;
    const uint8_t kind = take(in);
    memset(&host, 0, offsetof(play, end));
    if (kind & 1) given.struct_size = (size_t)take_integer(in);
    if (given.struct_size > sizeof given && given.struct_size <= 4096) given.struct_size = 0;
    if (kind & 2) given.backend = (largo_backend)take_integer(in);
    if (kind & 4) given.device = (int32_t)take_integer(in);
    if (kind & 8) given.threads = (int32_t)take_integer(in);
    if (kind & 16) given.alloc = allocate;
    if (kind & 32) given.free = release;
    if (kind & 64) given.parallel = last_first;
    given.alloc_user = &host;
    const largo_status status = largo_ctx_create(kind & 128 ? NULL : &given, &ctx);
    must_be_told(status);
    must((status == LARGO_OK) == (ctx != NULL));
    largo_ctx_destroy(ctx);
    must(!host.held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static play one, two;
    static scene stage;
    input in = {data, size};
    manner how = {1, 0, 0, 0, 0};
    const uint8_t kind = take(&in);
    if (kind & 1) how.has_all_reduce = 1;
    if (kind & 2) how.fail_reduce = take(&in);
    if (kind & 4) how.fail_alloc = take(&in);
    if (kind & 8) try_context(&in);
    scene_open(&stage, &in);
    run(&one, &stage, in, how);
    how.threads = 2;
    how.by_callback = kind & 16;
    run(&two, &stage, in, how);
    if (!one.is_short && !two.is_short) {
        must(one.events == two.events);
        must(memcmp(one.event, two.event, one.events * sizeof *one.event) == 0);
        must(scene_same(&stage, one.end, two.end));
    }
    scene_close(&stage);
    return 0;
}
