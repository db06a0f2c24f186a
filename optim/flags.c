/* flags.c - flags set on many parameters at once. */
#include <string.h>
#include "params.h"
#include "../core/status.h"

size_t largo_params_exempt_vectors(size_t n, largo_param params[])
{
    size_t set = 0;
    for (size_t i = 0; params && i < n; i++) {
        if (params[i].value.ndim > 1) continue;
        params[i].flags |= LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST;
        set++;
    }
    return set;
}

static largo_status check_arguments(size_t n, const largo_param params[], const char *const names[],
                                    const char *pattern, uint32_t flags)
{
    if (n && !params) return largo__fail(LARGO_ERR_ARGUMENT, "params is NULL; n is %zu", n);
    if (n && !names) return largo__fail(LARGO_ERR_ARGUMENT, "names is NULL; n is %zu", n);
    for (size_t i = 0; i < n; i++)
        if (!names[i])
            return largo__fail(LARGO_ERR_ARGUMENT, "names[%zu] is NULL; it must be a text", i);
    if (!pattern || !*pattern)
        return largo__fail(LARGO_ERR_ARGUMENT, "pattern is %s; it must be a text to look for",
                           pattern ? "empty" : "NULL");
    if (!flags || flags & ~LARGO__FLAGS)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "flags is 0x%x; it must be one or more of LARGO_PARAM_*, 0x1 to 0x%x",
                           (unsigned)flags, (unsigned)LARGO__FLAGS);
    return LARGO_OK;
}

largo_status largo_params_flag(size_t n, largo_param params[], const char *const names[],
                               const char *pattern, uint32_t flags, size_t *matched)
{
    LARGO__TRY(check_arguments(n, params, names, pattern, flags));
    size_t set = 0;
    for (size_t i = 0; i < n; i++) {
        if (!strstr(names[i], pattern)) continue;
        params[i].flags |= flags;
        set++;
    }
    if (!set)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "pattern is \"%s\"; none of %zu names holds it (case counts)", pattern,
                           n);
    if (matched) *matched = set;
    return LARGO_OK;
}
