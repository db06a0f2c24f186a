#include "numbers.h"

#include <errno.h>
#include <stdlib.h>

#include "message.h"

/* strtol and strtod skip blanks and take "nan", "inf" and "0x1"; here a number is digits. */
static bool is_plain(const char *text)
{
    if (!*text) return false;
    for (const char *c = text; *c; c++) {
        const bool digit = *c >= '0' && *c <= '9';
        if (!digit && *c != '.' && *c != '-' && *c != '+' && *c != 'e' && *c != 'E') return false;
    }
    return true;
}

bool read_integer(const char *option, const char *text, int64_t least, int64_t most, int64_t *value)
{
    char *end = 0;
    errno = 0;
    const long long read = is_plain(text) ? strtoll(text, &end, 10) : 0;
    if (!end || end == text || *end)
        return complain("%s: '%s' is not a whole number; must be %lld to %lld", option, text,
                        (long long)least, (long long)most);
    if (errno || read < least || read > most)
        return complain("%s: %s is out of range; must be %lld to %lld", option, text,
                        (long long)least, (long long)most);
    *value = read;
    return true;
}

bool read_real(const char *option, const char *text, double least, double most, double *value)
{
    char *end = 0;
    const double read = is_plain(text) ? strtod(text, &end) : 0.0;
    if (!end || end == text || *end)
        return complain("%s: '%s' is not a number; must be %g to %g", option, text, least, most);
    if (!(read >= least && read <= most))
        return complain("%s: %s is out of range; must be %g to %g", option, text, least, most);
    *value = read;
    return true;
}
