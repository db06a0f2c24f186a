/* progress.h - what stderr shows while a run goes on: a bar on a terminal, lines in a pipe. */
#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool quiet, terminal;
    char label[96]; /* "lamb 8192, seed 1" */
    int64_t epochs, steps_per_epoch;
    double drawn_at; /* seconds of the last drawing */
    int drawn_width; /* characters to wipe */
};

void progress_open(struct progress *progress, bool quiet);

/* Seconds of a clock that never goes back. */
double seconds_now(void);

/* One step is done; step counts from 1 in its epoch. */
void progress_step(struct progress *progress, int64_t epoch, int64_t step, double loss,
                   double samples_per_second);

/* A line of its own, in place of the bar. Not printed if quiet. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void progress_line(struct progress *progress, const char *format, ...);

/* Wipe the bar, before others print. */
void progress_wipe(struct progress *progress);

#endif
