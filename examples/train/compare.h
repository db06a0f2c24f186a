/* compare.h - the same epochs at a small and at a large batch, side by side. */
#ifndef TRAIN_COMPARE_H
#define TRAIN_COMPARE_H

#include "options.h"
#include "trainer.h"

/* Train every chosen optimizer at every compared batch with every seed, and print the table. */
enum ending compare(const struct session *session, const struct options *options);

#endif
