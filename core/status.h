/* status.h - how every part reports a failure. */
#ifndef LARGO_CORE_STATUS_H
#define LARGO_CORE_STATUS_H

#include "largo.h"

/* Store the sentence for largo_last_error on this thread and return `status`, so that a check is
 * one line: return largo__fail(LARGO_ERR_SHAPE, "params[%zu] ...", i). */
largo_status largo__fail(largo_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A caller's struct that begins with struct_size: ours is the least it may be, and a longer one must
 * be zero bytes beyond it. `name` begins the message, `setter` is what fills struct_size. */
largo_status largo__check_sized(const char *name, const char *setter, const void *given,
                                size_t ours);
largo_status largo__check_size(const char *name, const char *setter, size_t size, size_t ours);

#define LARGO__TRY(call)                                                                           \
    do {                                                                                           \
        const largo_status try_status = (call);                                                    \
        if (try_status != LARGO_OK) return try_status;                                             \
    } while (0)

#endif
