/* strided.c - memory as other libraries describe it, seen as a tensor. */
#include "params.h"
#include "../core/context.h"
#include "../core/status.h"

/* As dlpack.h numbers them, since version 0.6. */
enum { CPU = 1, CUDA = 2, CUDA_HOST = 3, CUDA_MANAGED = 13 };
enum { FLOAT = 2 };

static largo_status check_device(const largo_ctx *ctx, const largo_strided *array)
{
    const int type = array->device_type;
    const int is_cuda = largo_ctx_backend(ctx) == LARGO_BACKEND_CUDA;
    if (is_cuda ? type == CUDA || type == CUDA_MANAGED : type == CPU || type == CUDA_HOST)
        return LARGO_OK;
    return largo__fail(LARGO_ERR_DEVICE, "array.device_type is %d; a context of %s takes %s", type,
                       largo_ctx_name(ctx),
                       is_cuda ? "2 (CUDA) and 13 (managed)" : "1 (CPU) and 3 (pinned)");
}

static largo_status check_dtype(const largo_strided *array)
{
    if (array->code == FLOAT && array->bits == 32 && array->lanes == 1) return LARGO_OK;
    return largo__fail(LARGO_ERR_DTYPE,
                       "array.code is %d with %d bits in %d lanes; it must be 2 with 32 bits in 1 "
                       "lane, float32",
                       array->code, array->bits, array->lanes);
}

/* Strides of dimensions that hold one element say nothing, nor do those of an empty array. */
static largo_status check_dense(const largo_strided *array, int64_t n)
{
    int64_t dense = 1;
    for (int32_t d = array->ndim - 1; n && array->strides && d >= 0; d--) {
        if (array->shape[d] > 1 && array->strides[d] != dense)
            return largo__fail(LARGO_ERR_SHAPE,
                               "array.strides[%d] is %lld; it must be %lld: dense and row-major",
                               (int)d, (long long)array->strides[d], (long long)dense);
        dense *= array->shape[d];
    }
    return LARGO_OK;
}

static largo_status check_shape(const largo_strided *array)
{
    char text[LARGO__FAULT];
    if (array->ndim > 0 && !array->shape)
        return largo__fail(LARGO_ERR_ARGUMENT, "array.shape is NULL; ndim is %d", array->ndim);
    if (largo__shape_fault(array->ndim, array->shape, text, sizeof text))
        return largo__fail(LARGO_ERR_SHAPE, "array%s", text);
    return LARGO_OK;
}

largo_status largo_tensor_view(const largo_ctx *ctx, const largo_strided *array,
                               largo_tensor *tensor)
{
    if (!ctx || !array || !tensor)
        return largo__fail(LARGO_ERR_ARGUMENT, "%s is NULL",
                           !ctx     ? "ctx"
                           : !array ? "array"
                                    : "tensor");
    LARGO__TRY(check_device(ctx, array));
    LARGO__TRY(check_dtype(array));
    LARGO__TRY(check_shape(array));
    largo_tensor t = {NULL, LARGO_F32, array->ndim, {0}};
    for (int32_t d = 0; d < t.ndim; d++) t.shape[d] = array->shape[d];
    const int64_t n = largo__numel(&t);
    LARGO__TRY(check_dense(array, n));
    if (n && !array->data)
        return largo__fail(LARGO_ERR_ARGUMENT, "array.data is NULL; it must hold %lld elements",
                           (long long)n);
    if (array->data) t.data = (char *)array->data + array->byte_offset;
    if ((uintptr_t)t.data % sizeof(float))
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "array.data with byte_offset is %p; it must be aligned to 4 bytes",
                           t.data);
    *tensor = t;
    return LARGO_OK;
}
