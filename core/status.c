/* status.c - status names, the sentence of the last failure, the version. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "status.h"

static _Thread_local char last_error[512];

const char *largo_last_error(void)
{
    return last_error;
}

largo_status largo__fail(largo_status status, const char *format, ...)
{
    char text[sizeof last_error]; /* an argument may be the last text itself */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c; c++) /* of a name that the caller gave: one line it stays */
        if ((unsigned char)*c < ' ') *c = '?';
    memcpy(last_error, text, sizeof text);
    return status;
}

largo_status largo__check_size(const char *name, const char *setter, size_t size, size_t ours)
{
    enum { MOST = 4096 }; /* no struct of any version is longer: more is a wild number */
    if (size >= ours && size <= MOST) return LARGO_OK;
    return largo__fail(LARGO_ERR_ARGUMENT, "%s.struct_size is %zu; %s sets it to %zu", name, size,
                       setter, ours);
}

largo_status largo__check_sized(const char *name, const char *setter, const void *given,
                                size_t ours)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    LARGO__TRY(largo__check_size(name, setter, size, ours));
    const unsigned char *bytes = given;
    for (size_t i = ours; i < size; i++)
        if (bytes[i])
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "%s has a value at byte %zu, past the %zu bytes that this version "
                               "knows",
                               name, i, ours);
    return LARGO_OK;
}

const char *largo_status_name(largo_status status)
{
    switch (status) {
#define NAME(name, code, sentence)                                                                 \
    case name:                                                                                     \
        return #name;
        LARGO_STATUS_LIST(NAME)
#undef NAME
    }
    return "LARGO_ERR_UNKNOWN";
}

const char *largo_status_sentence(largo_status status)
{
    switch (status) {
#define SENTENCE(name, code, sentence)                                                             \
    case name:                                                                                     \
        return sentence;
        LARGO_STATUS_LIST(SENTENCE)
#undef SENTENCE
    }
    return "not a status of this version";
}

int largo_version(void)
{
    return LARGO_VERSION_MAJOR * 10000 + LARGO_VERSION_MINOR * 100 + LARGO_VERSION_PATCH;
}
