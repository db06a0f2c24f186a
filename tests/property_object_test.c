/* labels: property short every-isa
 *
 * The optimizer object against the functional step, which is the reference: after any history of
 * rebinding, dropped gradients, changed hyper-parameters and schedules the bits are equal. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "support.h"

enum { ALGOS = 6, TENSORS = 3, FLOATS = 7 };
static const int64_t SHAPE[TENSORS][2] = {{40000, 1}, {30, 20}, {200, 300}};

static largo_hyper algorithm(int i)
{
    const largo_algo algos[ALGOS] = {LARGO_SGD,  LARGO_SGD,  LARGO_ADAMW,
                                     LARGO_LAMB, LARGO_LAMB, LARGO_CAME};
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, algos[i]));
    h.lr = 0.01;
    h.weight_decay = 0.05;
    if (i == 1) h.momentum = 0.9;
    if (i == 4) h.l2 = LARGO_ON;
    return h;
}

/* Tensors with state and counts of the caller's: values, gradients, five arrays of state. */
typedef struct tensors {
    float *memory[TENSORS];
    int64_t step[TENSORS];
    largo_param params[TENSORS];
} tensors;

static size_t size(int i)
{
    return (size_t)(SHAPE[i][0] * SHAPE[i][1]);
}

static void point(tensors *x)
{
    for (int i = 0; i < TENSORS; i++) {
        const size_t n = size(i);
        largo_param *p = &x->params[i];
        const uint32_t flags = p->flags;
        *p = largo_param_f32(x->memory[i], x->memory[i] + n, SHAPE[i][0], SHAPE[i][1]);
        for (size_t s = 0; s < 5; s++) p->state[s] = x->memory[i] + (2 + s) * n;
        p->step = &x->step[i];
        p->flags = flags;
    }
}

static void make(tensors *x)
{
    memset(x, 0, sizeof *x);
    for (int i = 0; i < TENSORS; i++) {
        x->memory[i] = test_floats(FLOATS * size(i));
        test_fill(x->memory[i], size(i), (uint64_t)i + 1, 0, 4);
    }
    point(x);
}

static void new_gradients(tensors *x, int64_t t)
{
    for (int i = 0; i < TENSORS; i++)
        test_fill(x->memory[i] + size(i), size(i), (uint64_t)(100 * t + i), -2, 6);
}

static void drop(tensors *x)
{
    for (int i = 0; i < TENSORS; i++) free(x->memory[i]);
}

/* To other addresses, the old ones gone. */
static void move(tensors *x)
{
    for (int i = 0; i < TENSORS; i++) {
        float *to = test_floats(FLOATS * size(i) + 3);
        memcpy(to, x->memory[i], FLOATS * size(i) * sizeof(float));
        free(x->memory[i]);
        x->memory[i] = to;
    }
    point(x);
}

static largo_param stateless(const largo_param *p)
{
    largo_param q = *p;
    memset(q.state, 0, sizeof q.state);
    q.step = NULL;
    return q;
}

/* An object over the same values and gradients with state of its own, and the functional step. */
typedef struct twins {
    largo_ctx *ctx;
    largo_hyper hyper;
    largo_optim *optim;
    tensors own, functional; /* the object's, the functional step's */
    int64_t t;
} twins;

static void bare_params(const tensors *x, largo_param out[TENSORS])
{
    for (int i = 0; i < TENSORS; i++) out[i] = stateless(&x->params[i]);
}

static void rebind(twins *w)
{
    largo_param p[TENSORS];
    bare_params(&w->own, p);
    assert_ok(largo_optim_rebind(w->optim, 0, TENSORS, p));
}

static void begin(twins *w, int algo, const uint32_t flags[TENSORS])
{
    w->ctx = test_ctx(2);
    w->hyper = algorithm(algo);
    w->t = 0;
    make(&w->own);
    make(&w->functional);
    for (int i = 0; flags && i < TENSORS; i++)
        w->own.params[i].flags = w->functional.params[i].flags = flags[i];
    largo_param p[TENSORS];
    bare_params(&w->own, p);
    assert_ok(largo_optim_create(w->ctx, &w->optim));
    assert_ok(largo_optim_add_group(w->optim, &w->hyper, TENSORS, p, NULL));
}

/* One step of both with new gradients. */
static void step(twins *w)
{
    w->t++;
    new_gradients(&w->own, w->t);
    new_gradients(&w->functional, w->t);
    assert_ok(largo_optim_step(w->optim));
    assert_ok(largo_step(w->ctx, &w->hyper, w->t, TENSORS, w->functional.params));
}

static void compare(twins *w)
{
    for (size_t i = 0; i < TENSORS; i++) {
        const size_t n = size((int)i);
        assert_int_equal(largo_optim_param_step(w->optim, 0, i), w->functional.step[i]);
        if (memcmp(w->own.memory[i], w->functional.memory[i], n * sizeof(float)))
            fail_msg("values of tensor %zu differ at step %d", i, (int)w->t);
        largo_slot slots[LARGO_MAX_SLOTS];
        size_t n_slots;
        assert_ok(largo_slots(&w->hyper, &w->functional.params[i], slots, &n_slots));
        for (size_t s = 0; s < n_slots; s++) {
            largo_tensor view;
            assert_ok(largo_optim_slot(w->optim, 0, i, slots[s].name, &view));
            if (view.data && memcmp(view.data, w->functional.params[i].state[s], slots[s].bytes))
                fail_msg("%s of tensor %zu differs at step %d", slots[s].name, i, (int)w->t);
        }
    }
    assert_int_equal(largo_optim_step_count(w->optim), w->t);
}

static void end(twins *w)
{
    compare(w);
    largo_optim_destroy(w->optim);
    largo_ctx_destroy(w->ctx);
    drop(&w->own);
    drop(&w->functional);
}

static void moving_memory_changes_nothing(void **state)
{
    (void)state;
    for (int algo = 0; algo < ALGOS; algo++) {
        twins w;
        begin(&w, algo, NULL);
        step(&w);
        move(&w.own);
        rebind(&w);
        step(&w);
        step(&w);
        end(&w);
    }
}

static void a_dropped_gradient_leaves_all(void **state)
{
    (void)state;
    for (int algo = 0; algo < ALGOS; algo++) {
        twins w;
        begin(&w, algo, NULL);
        step(&w);
        for (int i = 0; i < 2; i++) { /* of a long tensor, then of a matrix */
            float *kept = test_floats(size(i));
            memcpy(kept, w.own.memory[i], size(i) * sizeof(float));
            w.own.params[i].grad.data = w.functional.params[i].grad.data = NULL;
            rebind(&w);
            step(&w);
            assert_memory_equal(kept, w.own.memory[i], size(i) * sizeof(float));
            assert_int_equal(w.functional.step[i], w.t - 1);
            free(kept);
            compare(&w);
            point(&w.own);
            point(&w.functional);
            rebind(&w);
            step(&w);
            compare(&w);
        }
        end(&w);
    }
}

static void unfreezing(void **state)
{
    (void)state;
    const uint32_t flags[TENSORS] = {LARGO_PARAM_FROZEN, 0, LARGO_PARAM_FROZEN};
    for (int algo = 0; algo < ALGOS; algo++) {
        twins w;
        begin(&w, algo, flags);
        step(&w);
        compare(&w);
        for (int i = 0; i < TENSORS; i += 2)
            w.own.params[i].flags = w.functional.params[i].flags = 0;
        rebind(&w);
        step(&w);
        assert_int_equal(largo_optim_param_step(w.optim, 0, 0), 1);
        w.own.params[1].flags = w.functional.params[1].flags = LARGO_PARAM_NO_DECAY;
        w.own.params[2].flags = w.functional.params[2].flags = LARGO_PARAM_NO_TRUST;
        rebind(&w);
        step(&w);
        end(&w);
    }
}

static void change(twins *w, const char *field, double value)
{
    assert_ok(largo_hyper_set(&w->hyper, field, value));
    assert_ok(largo_hyper_set(largo_optim_hyper(w->optim, 0), field, value));
    step(w);
    compare(w);
}

static void changed_hyper_parameters(void **state)
{
    (void)state;
    for (int algo = 0; algo < ALGOS; algo++) {
        twins w;
        begin(&w, algo, NULL);
        step(&w);
        change(&w, "lr", 0.1);
        change(&w, "weight_decay", 0.0);
        change(&w, "max_grad_norm", 0.5);
        change(&w, "weight_decay", 0.2);
        change(&w, "maximize", 1);
        change(&w, "grad_scale", 0.5);
        end(&w);
    }
}

static void momentum_switched_on_and_off(void **state)
{
    (void)state;
    twins w;
    begin(&w, 0, NULL);
    step(&w);
    change(&w, "momentum", 0.9);
    change(&w, "nesterov", 1);
    change(&w, "nesterov", 0);
    change(&w, "momentum", 0.0);
    change(&w, "momentum", 0.5); /* the old buffer goes on */
    end(&w);
    begin(&w, 3, NULL);
    step(&w);
    change(&w, "adapt", 3);
    change(&w, "l2", 1);
    change(&w, "adapt", 2);
    end(&w);
}

static void a_schedule_sets_lr(void **state)
{
    (void)state;
    largo_schedule schedule = LARGO_SCHEDULE;
    schedule.decay = LARGO_DECAY_COSINE;
    schedule.lr = 0.1;
    schedule.end_lr = 0.001;
    schedule.warmup = 2;
    schedule.total = 6;
    twins w;
    begin(&w, 3, NULL);
    assert_ok(largo_optim_set_schedule(w.optim, 0, &schedule));
    for (int64_t t = 1; t <= 8; t++) {
        assert_ok(largo_schedule_lr(&schedule, t, &w.hyper.lr));
        step(&w);
        assert_true(largo_optim_hyper(w.optim, 0)->lr == w.hyper.lr);
    }
    assert_ok(largo_optim_set_schedule(w.optim, 0, NULL));
    change(&w, "lr", 0.02);
    end(&w);
}

/* Borrowed state and counts are used in place. */
static void borrowed_state(void **state)
{
    (void)state;
    for (int algo = 0; algo < ALGOS; algo++) {
        largo_ctx *ctx = test_ctx(2);
        const largo_hyper h = algorithm(algo);
        tensors a, b;
        make(&a);
        make(&b);
        largo_optim *o;
        assert_ok(largo_optim_create(ctx, &o));
        assert_ok(largo_optim_add_group(o, &h, TENSORS, a.params, NULL));
        for (int64_t t = 1; t <= 4; t++) {
            if (t == 3) {
                move(&a);
                assert_ok(largo_optim_rebind(o, 0, TENSORS, a.params));
            }
            new_gradients(&a, t);
            new_gradients(&b, t);
            assert_ok(largo_optim_step(o));
            assert_ok(largo_step(ctx, &h, 99, TENSORS, b.params)); /* counts of their own */
        }
        for (int i = 0; i < TENSORS; i++)
            assert_memory_equal(a.memory[i], b.memory[i], FLOATS * size(i) * sizeof(float));
        assert_memory_equal(a.step, b.step, sizeof a.step);
        largo_optim_destroy(o);
        largo_ctx_destroy(ctx);
        drop(&a);
        drop(&b);
    }
}

/* Two objects on one context, of which its creator lets go first. */
static void objects_outlive_their_context(void **state)
{
    (void)state;
    twins a, b;
    begin(&a, 3, NULL);
    begin(&b, 5, NULL);
    largo_optim_destroy(b.optim);
    largo_ctx_destroy(b.ctx);
    b.ctx = a.ctx;
    largo_param p[TENSORS];
    bare_params(&b.own, p);
    assert_ok(largo_optim_create(a.ctx, &b.optim));
    assert_ok(largo_optim_add_group(b.optim, &b.hyper, TENSORS, p, NULL));
    for (int t = 0; t < 2; t++) {
        step(&a);
        step(&b);
    }
    compare(&a);
    compare(&b);
    largo_ctx_destroy(a.ctx);
    for (int t = 0; t < 2; t++) { /* the functional twin still may: the objects keep the context */
        step(&a);
        step(&b);
    }
    compare(&a);
    compare(&b);
    largo_optim_destroy(a.optim);
    step(&b);
    compare(&b);
    largo_optim_destroy(b.optim);
    for (int i = 0; i < 4; i++)
        drop((tensors *[]){&a.own, &a.functional, &b.own, &b.functional}[i]);
}

static void *ten_steps(void *arg)
{
    twins *w = arg;
    for (int t = 0; t < 10; t++) step(w);
    return NULL;
}

static void contexts_in_two_threads_at_once(void **state)
{
    (void)state;
    twins w[2];
    begin(&w[0], 3, NULL);
    begin(&w[1], 5, NULL);
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ten_steps, &w[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) end(&w[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moving_memory_changes_nothing),
        cmocka_unit_test(a_dropped_gradient_leaves_all),
        cmocka_unit_test(unfreezing),
        cmocka_unit_test(changed_hyper_parameters),
        cmocka_unit_test(momentum_switched_on_and_off),
        cmocka_unit_test(a_schedule_sets_lr),
        cmocka_unit_test(borrowed_state),
        cmocka_unit_test(objects_outlive_their_context),
        cmocka_unit_test(contexts_in_two_threads_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
