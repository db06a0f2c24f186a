/* status.h - how every part reports a failure. */
#ifndef LARGO_CORE_STATUS_H
#define LARGO_CORE_STATUS_H

#include "largo.h"

/* Store the sentence for largo_last_error on this thread and return `status`, so that a check is
 * one line: return largo__fail(LARGO_ERR_SHAPE, "params[%zu] ...", i). */
largo_status largo__fail(largo_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define LARGO__TRY(call)                                                                           \
    do {                                                                                           \
        const largo_status try_status = (call);                                                    \
        if (try_status != LARGO_OK) return try_status;                                             \
    } while (0)

#endif
