/* labels: property short every-isa
 *
 * Handed cases about CAME: H03, no gradient at all; H14, a vector and the same numbers as a matrix. */
#include <math.h>
#include <string.h>
#include "support.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { ROWS = 2, COLS = 3 };

/* A matrix of at most ROWS x COLS with state of CAME, in the order of largo_slots. */
typedef struct matrix {
    float w[ROWS * COLS], g[ROWS * COLS], m[ROWS * COLS];
    float row[ROWS], col[COLS], res_row[ROWS], res_col[COLS];
} matrix;

static largo_param param(matrix *x, int64_t rows, int64_t cols)
{
    largo_param p = largo_param_f32(x->w, x->g, rows, cols);
    float *state[5] = {x->m, x->row, x->col, x->res_row, x->res_col};
    for (int s = 0; s < 5; s++) p.state[s] = state[s];
    return p;
}

static void step(const largo_param *p)
{
    largo_ctx *ctx = test_ctx(2);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_CAME));
    test_hyper_set(&h, "lr=0.01 weight_decay=0 eps=1e-30 eps2=1e-16");
    assert_ok(largo_step(ctx, &h, 1, 1, p));
    largo_ctx_destroy(ctx);
}

static void near(size_t n, const float got[], double want)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want) <= 1e-6 * want))
            fail_msg("[%zu] is %.9g, not %.9g", i, (double)got[i], want);
}

/* (1 - 0.999) 1e-30 is a normal float, and so is its reciprocal square root. */
static void zero_gradient(matrix *x)
{
    memset(x, 0, sizeof *x);
    for (int i = 0; i < ROWS * COLS; i++) x->w[i] = (float)(i + 1);
    const largo_param p = param(x, ROWS, COLS);
    step(&p);
    for (int i = 0; i < ROWS * COLS; i++) assert_true(x->w[i] == (float)(i + 1));
    for (int i = 0; i < ROWS * COLS; i++) assert_true(x->m[i] == 0.0f);
    near(ROWS, x->row, 1e-33);
    near(COLS, x->col, 1e-33);
    near(ROWS, x->res_row, 1e-20);
    near(COLS, x->res_col, 1e-20);
}

static void h03_zero_gradient_stands_still(void **state)
{
    (void)state;
    matrix plain;
    zero_gradient(&plain);
#if defined(__x86_64__)
    matrix flushed;
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* FTZ and DAZ */
    zero_gradient(&flushed);
    _mm_setcsr(before);
    assert_memory_equal(&plain, &flushed, sizeof plain);
#endif
}

static void h14_vector_and_matrix(void **state)
{
    (void)state;
    matrix x[2];
    for (int is_matrix = 0; is_matrix < 2; is_matrix++) {
        memset(&x[is_matrix], 0, sizeof x[0]);
        for (int i = 0; i < 2; i++) x[is_matrix].w[i] = x[is_matrix].g[i] = (float)(i + 1);
    }
    float v[2] = {0}; /* of the vector: exp_avg_sq, no confidence */
    largo_param p = largo_param_f32(x[0].w, x[0].g, 2, 1);
    p.state[0] = x[0].m;
    p.state[1] = v;
    step(&p);
    near(1, &x[0].w[0], 0.999);
    near(1, &x[0].w[1], 1.999);
    p = param(&x[1], 1, 2);
    step(&p);
    near(1, &x[1].w[0], 0.8888889);
    near(1, &x[1].w[1], 1.8888889);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h03_zero_gradient_stands_still),
        cmocka_unit_test(h14_vector_and_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
