/* status.c - status names, the sentence of the last failure, the version. */
#include <stdarg.h>
#include <stdio.h>
#include "status.h"

static _Thread_local char last_error[512];

const char *largo_last_error(void)
{
    return last_error;
}

largo_status largo__fail(largo_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return status;
}

const char *largo_status_name(largo_status status)
{
    switch (status) {
#define NAME(name, code, sentence)                                                                 \
    case name: return #name;
        LARGO_STATUS_LIST(NAME)
#undef NAME
    }
    return "LARGO_ERR_UNKNOWN";
}

const char *largo_status_sentence(largo_status status)
{
    switch (status) {
#define SENTENCE(name, code, sentence)                                                             \
    case name: return sentence;
        LARGO_STATUS_LIST(SENTENCE)
#undef SENTENCE
    }
    return "not a status of this version";
}

int largo_version(void)
{
    return LARGO_VERSION_MAJOR * 10000 + LARGO_VERSION_MINOR * 100 + LARGO_VERSION_PATCH;
}
