/* schedule.c - learning rates. Only + - * /: the same bits on every machine and C library. */
#include <float.h>
#include "power.h"
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

largo_status largo__rate_check(const char *name, double rate)
{
    if (rate >= 0.0 && rate <= (double)FLT_MAX) return LARGO_OK;
    return largo__fail(LARGO_ERR_ARGUMENT, "%s is %.9g; it must be >= 0 and finite", name, rate);
}

/* Which fields a decay uses besides those of warm-up. */
enum { USES_SPAN = 1, USES_POWER = 2, USES_MILESTONES = 4 };
static const struct {
    const char *name;
    int uses;
} decays[] = {
    [LARGO_DECAY_CONSTANT] = {"CONSTANT", 0},
    [LARGO_DECAY_LINEAR] = {"LINEAR", USES_SPAN},
    [LARGO_DECAY_COSINE] = {"COSINE", USES_SPAN},
    [LARGO_DECAY_POLYNOMIAL] = {"POLYNOMIAL", USES_SPAN | USES_POWER},
    [LARGO_DECAY_MULTI_STEP] = {"MULTI_STEP", USES_MILESTONES},
};

static largo_status check_unused(const largo_schedule *s)
{
    const struct {
        const char *name;
        int of, is_set;
    } fields[] = {
        {"end_lr", USES_SPAN, s->end_lr != 0.0},
        {"total", USES_SPAN, s->total != 0},
        {"flags DECAY_FROM_START", USES_SPAN, (s->flags & LARGO_SCHEDULE_DECAY_FROM_START) != 0},
        {"power", USES_POWER, s->power != 0.0},
        {"gamma", USES_MILESTONES, s->gamma != 0.0},
        {"milestones", USES_MILESTONES, s->milestones != NULL},
        {"n_milestones", USES_MILESTONES, s->n_milestones != 0},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].is_set && !(decays[s->decay].uses & fields[i].of))
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "schedule.%s is set, but decay %s does not use it; it must be 0",
                               fields[i].name, decays[s->decay].name);
    if (s->start_lr != 0.0 && s->warmup == 0)
        return largo__fail(
            LARGO_ERR_ARGUMENT,
            "schedule.start_lr is %.9g with warmup 0, which does not use it; it must "
            "be 0",
            s->start_lr);
    return LARGO_OK;
}

static largo_status check_count(const char *name, int64_t count)
{
    if (count >= 0) return LARGO_OK;
    return largo__fail(LARGO_ERR_ARGUMENT, "schedule.%s is %lld; it must be >= 0", name,
                       (long long)count);
}

static largo_status check_milestones(const largo_schedule *s)
{
    if (!(s->gamma > 0.0 && s->gamma <= 1.0))
        return largo__fail(LARGO_ERR_ARGUMENT, "schedule.gamma is %.9g; it must be > 0 and <= 1",
                           s->gamma);
    if (!s->milestones) return largo__fail(LARGO_ERR_ARGUMENT, "schedule.milestones is NULL");
    if (s->n_milestones < 1)
        return largo__fail(LARGO_ERR_ARGUMENT, "schedule.n_milestones is 0; it must be >= 1");
    int64_t before = 0;
    for (size_t i = 0; i < s->n_milestones; before = s->milestones[i++])
        if (s->milestones[i] <= before)
            return largo__fail(LARGO_ERR_ARGUMENT,
                               "schedule.milestones[%zu] is %lld; milestones rise from 1 on: it "
                               "must be > %lld",
                               i, (long long)s->milestones[i], (long long)before);
    return LARGO_OK;
}

static largo_status check(const largo_schedule *given)
{
    if (!given) return largo__fail(LARGO_ERR_ARGUMENT, "schedule is NULL");
    LARGO__TRY(largo__check_sized("schedule", "LARGO_SCHEDULE", given, sizeof *given));
    if (given->decay < LARGO_DECAY_CONSTANT || given->decay > LARGO_DECAY_MULTI_STEP)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "schedule.decay is %d; it must be CONSTANT, LINEAR, COSINE, POLYNOMIAL "
                           "or MULTI_STEP (1 to 5)",
                           (int)given->decay);
    const uint32_t known = LARGO_SCHEDULE_ZERO_BASED | LARGO_SCHEDULE_DECAY_FROM_START;
    if (given->flags & ~known)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "schedule.flags is 0x%x; it has bits that this version does not know, "
                           "0x%x",
                           (unsigned)given->flags, (unsigned)(given->flags & ~known));
    LARGO__TRY(largo__rate_check("schedule.lr", given->lr));
    LARGO__TRY(largo__rate_check("schedule.start_lr", given->start_lr));
    LARGO__TRY(largo__rate_check("schedule.end_lr", given->end_lr));
    LARGO__TRY(check_count("warmup", given->warmup));
    LARGO__TRY(check_count("total", given->total));
    LARGO__TRY(check_unused(given));
    const int uses = decays[given->decay].uses;
    if (uses & USES_POWER && !(given->power > 0.0 && given->power <= DBL_MAX))
        return largo__fail(LARGO_ERR_ARGUMENT, "schedule.power is %.9g; it must be > 0 and finite",
                           given->power);
    return uses & USES_MILESTONES ? check_milestones(given) : LARGO_OK;
}

largo_status largo__schedule_read(const largo_schedule *given, largo_schedule *schedule)
{
    const largo__fpenv previous = largo__fpenv_enter(); /* a subnormal is not 0 */
    const largo_status status = check(given);
    largo__fpenv_leave(previous);
    if (status != LARGO_OK) return status;
    *schedule = *given;
    schedule->struct_size = sizeof *schedule;
    return LARGO_OK;
}

/* How far the decay has come, in [0, 1]. */
static double progress(const largo_schedule *s, int64_t t)
{
    const int64_t first = s->flags & LARGO_SCHEDULE_DECAY_FROM_START ? 0 : s->warmup;
    if (s->total <= first || t >= s->total) return 1.0;
    return (double)(t - first) / (double)(s->total - first);
}

static int64_t milestones_before(const largo_schedule *s, int64_t t)
{
    size_t n = 0;
    while (n < s->n_milestones && s->milestones[n] < t) n++;
    return (int64_t)n;
}

double largo__schedule_at(const largo_schedule *s, int64_t step)
{
    const int64_t t = s->flags & LARGO_SCHEDULE_ZERO_BASED ? step - 1 : step;
    if (t < s->warmup) return s->start_lr + (s->lr - s->start_lr) * ((double)t / (double)s->warmup);
    if (t == s->warmup) return s->lr;
    const double p = progress(s, t), span = s->lr - s->end_lr;
    switch (s->decay) {
    case LARGO_DECAY_LINEAR:
        return s->end_lr + span * (1.0 - p);
    case LARGO_DECAY_COSINE:
        return s->end_lr + span * 0.5 * (1.0 + cos_pi(p));
    case LARGO_DECAY_POLYNOMIAL:
        return s->end_lr + span * largo__power_real(1.0 - p, s->power);
    case LARGO_DECAY_MULTI_STEP:
        return s->lr * largo__power(s->gamma, milestones_before(s, t));
    default:
        return s->lr;
    }
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
