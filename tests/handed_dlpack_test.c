/* labels: property short
 *
 * Strided memory and DLPack tensors: handed cases H26 to H29, and everything that is refused. */
#include <string.h>
#include "largo_dlpack.h"
#include "support.h"

/* A float32 matrix or vector in host memory, as a framework hands it over. */
typedef struct array {
    int64_t shape[2], strides[2];
    DLTensor dl;
} array;

static DLTensor *make(array *a, const void *data, int ndim, int64_t rows, int64_t cols)
{
    memset(a, 0, sizeof *a);
    a->shape[0] = rows;
    a->shape[1] = cols;
    a->dl.data = (void *)data;
    a->dl.device.device_type = kDLCPU;
    a->dl.ndim = ndim;
    a->dl.dtype.code = kDLFloat;
    a->dl.dtype.bits = 32;
    a->dl.dtype.lanes = 1;
    a->dl.shape = a->shape;
    return &a->dl;
}

static DLTensor *with_strides(array *a, int64_t first, int64_t second)
{
    a->strides[0] = first;
    a->strides[1] = second;
    a->dl.strides = a->strides;
    return &a->dl;
}

/* The view is refused so, and what it would have been written to is untouched. */
static void refused(largo_status status, const char *text, const DLTensor *dl)
{
    largo_ctx *ctx = test_ctx(1);
    largo_tensor t, before;
    memset(&t, 0x5a, sizeof t);
    memcpy(&before, &t, sizeof t);
    assert_refused(status, text, largo_from_dlpack(ctx, dl, &t));
    assert_memory_equal(&t, &before, sizeof t);
    largo_ctx_destroy(ctx);
}

/* LARS without momentum on value and gradient as they come; lr 1. */
static void step(const DLTensor *value, const DLTensor *grad)
{
    largo_ctx *ctx = test_ctx(2);
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, LARGO_LARS));
    test_hyper_set(&h, "lr=1 momentum=0 weight_decay=0");
    largo_param p;
    memset(&p, 0, sizeof p);
    assert_ok(largo_from_dlpack(ctx, value, &p.value));
    assert_ok(largo_from_dlpack(ctx, grad, &p.grad));
    assert_ok(largo_step(ctx, &h, 1, 1, &p));
    largo_ctx_destroy(ctx);
}

static void near(size_t n, const float got[], const double want[])
{
    for (size_t i = 0; i < n; i++)
        if (!((double)got[i] > want[i] - 1e-6 && (double)got[i] < want[i] + 1e-6))
            fail_msg("[%zu] is %.9g, not %.9g", i, (double)got[i], want[i]);
}

static const float ROW_MAJOR[6] = {1, 2, 3, 4, 5, 6}, COLUMN_MAJOR[6] = {1, 4, 2, 5, 3, 6};
static const float GRAD[6] = {.1f, -.2f, .3f, .4f, .5f, -.6f};

/* Transposed storage is no tensor of largo: it would be stepped in the wrong order. */
static void h26_column_major(void **state)
{
    (void)state;
    float w[6];
    memcpy(w, COLUMN_MAJOR, sizeof w);
    array value, grad;
    make(&value, w, 2, 2, 3);
    refused(LARGO_ERR_SHAPE, "array.strides[1] is 2; it must be 1: dense and row-major",
            with_strides(&value, 1, 2));
    assert_memory_equal(w, COLUMN_MAJOR, sizeof w);

    memcpy(w, ROW_MAJOR, sizeof w); /* the logical matrix where it is dense */
    make(&value, w, 2, 2, 3);
    step(with_strides(&value, 3, 1), make(&grad, GRAD, 2, 2, 3));
    near(6, w, (const double[]){.999, 2.002, 2.997, 3.996, 4.995, 6.006});
}

static void h27_every_second_element(void **state)
{
    (void)state;
    const float before[5] = {1, 99, 2, 99, 3};
    float w[5];
    memcpy(w, before, sizeof w);
    array value;
    make(&value, w, 1, 3, 0);
    refused(LARGO_ERR_SHAPE, "array.strides[0] is 2; it must be 1", with_strides(&value, 2, 0));
    assert_memory_equal(w, before, sizeof w);
}

static void h28_byte_offset(void **state)
{
    (void)state;
    float w[9], g[9];
    test_fill(w, 9, 3, 1, 2);
    test_fill(g, 9, 4, 0, 2);
    float before[9];
    memcpy(before, w, sizeof w);
    array value, grad;
    make(&value, w, 1, 8, 0);
    value.dl.byte_offset = 4;
    step(&value.dl, make(&grad, g + 1, 1, 8, 0));
    assert_memory_equal(&w[0], &before[0], sizeof w[0]);
    for (int i = 1; i < 9; i++) assert_true(w[i] != before[i]);
    value.dl.byte_offset = 6;
    refused(LARGO_ERR_ARGUMENT, "it must be aligned to 4 bytes", &value.dl);
}

static void h29_null_strides(void **state)
{
    (void)state;
    float w[2][6];
    array value, grad;
    for (int explicit = 0; explicit < 2; explicit ++) {
        memcpy(w[explicit], ROW_MAJOR, sizeof w[0]);
        make(&value, w[explicit], 2, 2, 3);
        make(&grad, GRAD, 2, 2, 3);
        if (explicit) with_strides(&value, 3, 1);
        if (explicit) with_strides(&grad, 3, 1);
        step(&value.dl, &grad.dl);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    assert_true(w[0][0] != 1.0f);
}

/* A dimension of one element has any stride, as numpy and torch write it; so has an empty array. */
static void strides_that_say_nothing(void **state)
{
    (void)state;
    largo_ctx *ctx = test_ctx(1);
    float x[6] = {0};
    largo_tensor t;
    array a;
    make(&a, x, 2, 1, 6);
    assert_ok(largo_from_dlpack(ctx, with_strides(&a, 77, 1), &t));
    assert_true(t.data == x && t.dtype == LARGO_F32 && t.ndim == 2);
    assert_true(t.shape[0] == 1 && t.shape[1] == 6);
    make(&a, x, 2, 6, 1);
    assert_ok(largo_from_dlpack(ctx, with_strides(&a, 1, -5), &t));
    make(&a, NULL, 2, 0, INT64_MAX);
    assert_ok(largo_from_dlpack(ctx, with_strides(&a, 3, 3), &t));
    assert_true(t.data == NULL && t.shape[0] == 0);
    make(&a, x, 0, 0, 0);
    a.dl.shape = NULL; /* a scalar has none */
    assert_ok(largo_from_dlpack(ctx, &a.dl, &t));
    assert_true(t.data == x && t.ndim == 0);
    make(&a, x, 1, 6, 0);
    a.dl.device.device_type = kDLCUDAHost; /* pinned, but the host's */
    assert_ok(largo_from_dlpack(ctx, &a.dl, &t));
    largo_ctx_destroy(ctx);
}

static void other_types_and_devices(void **state)
{
    (void)state;
    float x[6] = {0};
    array a;
    static const struct {
        uint8_t code, bits;
        uint16_t lanes;
    } types[] = {{kDLFloat, 16, 1}, {kDLBfloat, 16, 1},  {kDLFloat, 64, 1},
                 {kDLInt, 32, 1},   {kDLUInt, 32, 1},    {kDLFloat, 32, 2},
                 {kDLFloat, 32, 0}, {kDLComplex, 32, 1}, {200, 32, 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        make(&a, x, 1, 6, 0);
        a.dl.dtype.code = types[i].code;
        a.dl.dtype.bits = types[i].bits;
        a.dl.dtype.lanes = types[i].lanes;
        refused(LARGO_ERR_DTYPE, "it must be 2 with 32 bits in 1 lane", &a.dl);
    }
    static const DLDeviceType devices[] = {kDLCUDA, kDLCUDAManaged, kDLOpenCL,
                                           kDLROCM, kDLMetal,       kDLExtDev};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        make(&a, x, 1, 6, 0);
        a.dl.device.device_type = devices[i];
        refused(LARGO_ERR_DEVICE, "takes 1 (CPU) and 3 (pinned)", &a.dl);
    }
}

static void other_shapes_and_pointers(void **state)
{
    (void)state;
    float x[6] = {0};
    int64_t seven[7] = {1, 1, 1, 1, 1, 1, 6};
    array a;
    make(&a, x, 7, 1, 1);
    a.dl.shape = seven;
    refused(LARGO_ERR_SHAPE, "array.ndim is 7; it must be 0 to 6", &a.dl);
    refused(LARGO_ERR_SHAPE, "array.ndim is -1", make(&a, x, -1, 1, 1));
    refused(LARGO_ERR_SHAPE, "array.shape[1] is -3; it must be >= 0", make(&a, x, 2, 2, -3));
    refused(LARGO_ERR_SHAPE, "array has more than 2^60 elements",
            make(&a, x, 2, (int64_t)1 << 31, (int64_t)1 << 31));
    refused(LARGO_ERR_ARGUMENT, "array.data is NULL; it must hold 6", make(&a, NULL, 2, 2, 3));
    make(&a, x, 2, 2, 3);
    a.dl.shape = NULL;
    refused(LARGO_ERR_ARGUMENT, "array.shape is NULL; ndim is 2", &a.dl);
    refused(LARGO_ERR_ARGUMENT, "array is NULL", NULL);
    refused(LARGO_ERR_SHAPE, "array.strides[0] is -3; it must be 3",
            (make(&a, x, 2, 2, 3), with_strides(&a, -3, 1)));
    refused(LARGO_ERR_SHAPE, "array.strides[0] is 0; it must be 3",
            (make(&a, x, 2, 2, 3), with_strides(&a, 0, 1)));
    largo_tensor t;
    make(&a, x, 2, 2, 3);
    assert_refused(LARGO_ERR_ARGUMENT, "ctx is NULL", largo_from_dlpack(NULL, &a.dl, &t));
    largo_ctx *ctx = test_ctx(1);
    assert_refused(LARGO_ERR_ARGUMENT, "tensor is NULL", largo_from_dlpack(ctx, &a.dl, NULL));
    largo_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(h26_column_major),          cmocka_unit_test(h27_every_second_element),
        cmocka_unit_test(h28_byte_offset),           cmocka_unit_test(h29_null_strides),
        cmocka_unit_test(strides_that_say_nothing),  cmocka_unit_test(other_types_and_devices),
        cmocka_unit_test(other_shapes_and_pointers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
