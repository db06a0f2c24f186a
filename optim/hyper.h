/* hyper.h - hyper-parameters as a table of fields. */
#ifndef LARGO_OPTIM_HYPER_H
#define LARGO_OPTIM_HYPER_H

#include "largo.h"

/* Bring a caller's struct of any accepted size into ours and check every field. `name` begins the
 * message ("hyper" or "group 2"). */
largo_status largo__hyper_read(const largo_hyper *given, const char *name, largo_hyper *hyper);

/* Would a plan made for a still fit b? Only fields that no plan depends on may differ. */
int largo__hyper_same_plan(const largo_hyper *a, const largo_hyper *b);

const char *largo__algo_name(largo_algo algo);

#endif
