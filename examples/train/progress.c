#define _DEFAULT_SOURCE /* struct winsize */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 24 };
static const double redraw_seconds = 0.1;

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_open(struct progress *progress, bool quiet)
{
    memset(progress, 0, sizeof *progress);
    progress->quiet = quiet;
    progress->terminal = isatty(STDERR_FILENO) == 1;
}

static int columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
}

void progress_wipe(struct progress *progress)
{
    if (!progress->drawn_width) return;
    fprintf(stderr, "\r%*s\r", progress->drawn_width, "");
    progress->drawn_width = 0;
}

void progress_step(struct progress *progress, int64_t epoch, int64_t step, double loss,
                   double samples_per_second)
{
    if (progress->quiet || !progress->terminal) return;
    const double now = seconds_now();
    if (now - progress->drawn_at < redraw_seconds) return;
    progress->drawn_at = now;

    char bar[BAR + 1], line[256];
    const int full = (int)(step * BAR / progress->steps_per_epoch);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = 0;
    snprintf(line, sizeof line, "%s  epoch %lld/%lld [%s] loss %.4f  %.0f samples/s",
             progress->label, (long long)epoch, (long long)progress->epochs, bar, loss,
             samples_per_second);
    /* A line as wide as the terminal would wrap, and \r would no longer reach its start. */
    const int width = columns() - 1;
    progress_wipe(progress);
    progress->drawn_width = fprintf(stderr, "%.*s", width, line);
    if (progress->drawn_width < 0) progress->drawn_width = 0;
    fflush(stderr);
}

void progress_line(struct progress *progress, const char *format, ...)
{
    if (progress->quiet) return;
    progress_wipe(progress);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}
