/* schedule.c - learning rates. Only + - * /: the same bits on every machine and C library. */
#include <math.h>
#include "schedule.h"
#include "../core/fpenv.h"
#include "../core/status.h"

static const double PI = 3.14159265358979323846;

/* cos(x) and sin(x) for |x| <= pi / 4 by their series, error below 1e-17 of 1. */
static double cos_series(double x)
{
    const double y = x * x;
    double s = 1.0;
    for (int i = 20; i > 0; i -= 2) s = 1.0 - s * y / (double)(i * (i - 1));
    return s;
}

static double sin_series(double x)
{
    const double y = x * x;
    double s = 1.0;
    for (int i = 21; i > 1; i -= 2) s = 1.0 - s * y / (double)(i * (i - 1));
    return x * s;
}

/* cos(pi p) for p in [0, 1]; the reduction of p is exact. */
static double cos_pi(double p)
{
    if (p > 0.75) return -cos_series(PI * (1.0 - p));
    if (p > 0.25) return sin_series(PI * (0.5 - p));
    return cos_series(PI * p);
}

static largo_status check_rate(const char *name, double rate)
{
    if (rate >= 0.0 && rate <= 0x1.fffffep127) return LARGO_OK;
    return largo__fail(LARGO_ERR_ARGUMENT, "schedule.%s is %.9g; it must be >= 0 and finite", name,
                       rate);
}

largo_status largo__schedule_read(const largo_schedule *given, largo_schedule *schedule)
{
    if (!given) return largo__fail(LARGO_ERR_ARGUMENT, "schedule is NULL");
    LARGO__TRY(largo__check_sized("schedule", "LARGO_SCHEDULE", given, sizeof *given));
    if (given->decay < LARGO_DECAY_CONSTANT || given->decay > LARGO_DECAY_COSINE)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "schedule.decay is %d; it must be CONSTANT, LINEAR or COSINE (1 to 3)",
                           (int)given->decay);
    LARGO__TRY(check_rate("lr", given->lr));
    LARGO__TRY(check_rate("start_lr", given->start_lr));
    LARGO__TRY(check_rate("end_lr", given->end_lr));
    if (given->warmup < 0)
        return largo__fail(LARGO_ERR_ARGUMENT, "schedule.warmup is %lld; it must be >= 0",
                           (long long)given->warmup);
    if (given->total < 0)
        return largo__fail(LARGO_ERR_ARGUMENT, "schedule.total is %lld; it must be >= 0",
                           (long long)given->total);
    *schedule = *given;
    schedule->struct_size = sizeof *schedule;
    return LARGO_OK;
}

double largo__schedule_at(const largo_schedule *s, int64_t step)
{
    if (step <= s->warmup)
        return s->start_lr + (s->lr - s->start_lr) * ((double)step / (double)s->warmup);
    if (s->decay == LARGO_DECAY_CONSTANT) return s->lr;
    double p = 1.0;
    if (s->total > s->warmup && step < s->total)
        p = (double)(step - s->warmup) / (double)(s->total - s->warmup);
    const double span = s->lr - s->end_lr;
    if (s->decay == LARGO_DECAY_LINEAR) return s->end_lr + span * (1.0 - p);
    return s->end_lr + span * 0.5 * (1.0 + cos_pi(p));
}

largo_status largo_schedule_lr(const largo_schedule *schedule, int64_t step, double *lr)
{
    largo_schedule s;
    LARGO__TRY(largo__schedule_read(schedule, &s));
    if (step < 1)
        return largo__fail(LARGO_ERR_ARGUMENT, "step is %lld; it counts from 1", (long long)step);
    if (!lr) return largo__fail(LARGO_ERR_ARGUMENT, "lr is NULL");
    const largo__fpenv previous = largo__fpenv_enter();
    *lr = largo__schedule_at(&s, step);
    largo__fpenv_leave(previous);
    return LARGO_OK;
}
