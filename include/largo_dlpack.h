/*
 * largo_dlpack.h - tensors of DLPack 0.6 to 1.x (https://dmlc.github.io/dlpack), which frameworks
 * exchange, seen as tensors of largo. Needs dlpack.h; largo.h does not, nor does the library.
 */
#ifndef LARGO_DLPACK_H
#define LARGO_DLPACK_H

#include <dlpack/dlpack.h>
#include "largo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* View a DLTensor; nothing is copied. `ctx` says whose memory it must be. Errors as
 * largo_tensor_view, of which the sentence in largo_last_error calls the tensor `array`; *tensor is
 * then untouched.
 *
 * The view borrows: keep the DLManagedTensor until the last step with it. It does not know of
 * DLPACK_FLAG_BITMASK_READ_ONLY: use memory that is read-only as a gradient and nothing else. */
static inline largo_status largo_from_dlpack(const largo_ctx *ctx, const DLTensor *dl,
                                             largo_tensor *tensor)
{
    largo_strided array;
    if (!dl) return largo_tensor_view(ctx, NULL, tensor);
    array.data = dl->data;
    array.byte_offset = dl->byte_offset;
    array.shape = dl->shape;
    array.strides = dl->strides;
    array.ndim = dl->ndim;
    array.device_type = (int32_t)dl->device.device_type;
    array.device_id = dl->device.device_id;
    array.code = dl->dtype.code;
    array.bits = dl->dtype.bits;
    array.lanes = dl->dtype.lanes;
    return largo_tensor_view(ctx, &array, tensor);
}

#ifdef __cplusplus
}
#endif
#endif /* LARGO_DLPACK_H */
