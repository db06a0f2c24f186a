/* schedule.h - a checked schedule, evaluated. */
#ifndef LARGO_OPTIM_SCHEDULE_H
#define LARGO_OPTIM_SCHEDULE_H

#include "largo.h"

largo_status largo__schedule_read(const largo_schedule *given, largo_schedule *schedule);
double largo__schedule_at(const largo_schedule *schedule, int64_t step); /* checked, step >= 1 */

/* A rate of that name is >= 0 and finite as a float. */
largo_status largo__rate_check(const char *name, double rate);

#endif
