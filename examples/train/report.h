/* report.h - the CSV log of largo-train. */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "recipe.h"

/* One finished epoch. */
struct epoch {
    int64_t number, step; /* of the run, from 1; steps so far */
    int64_t skipped;      /* steps of this epoch that the optimizer refused */
    double lr;            /* of its last step */
    double loss;          /* mean over its batches */
    double accuracy;      /* percent of the held-out set after it */
    double samples_per_second;
};

struct csv {
    const char *path;
    FILE *file; /* NULL: no log was asked for */
};

/* Make the file and write its heading. path NULL: no log. False after a complaint. */
bool csv_open(struct csv *csv, const char *path, bool validate);

/* Append a line and make it visible to others at once. False after a complaint. */
bool csv_epoch(struct csv *csv, const struct recipe *recipe, const struct epoch *epoch);

/* False after a complaint: what was written may not have reached the disk. */
bool csv_close(struct csv *csv);

#endif
