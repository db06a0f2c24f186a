/* scaling.c - a learning rate and its warm-up at another batch. */
#include <float.h>
#include <math.h>
#include "schedule.h"
#include "../core/fpenv.h"
#include "../core/status.h"

static largo_status check_at_least_1(const char *name, int64_t count)
{
    if (count >= 1) return LARGO_OK;
    return largo__fail(LARGO_ERR_ARGUMENT, "%s is %lld; it must be >= 1", name, (long long)count);
}

static largo_status scale(largo_scaling rule, double lr0, int64_t base_batch, int64_t batch,
                          double *lr)
{
    if (rule < LARGO_SCALING_NONE || rule > LARGO_SCALING_SQRT)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "rule is %d; it must be NONE, LINEAR or SQRT (1 to 3)", (int)rule);
    LARGO__TRY(largo__rate_check("lr0", lr0));
    LARGO__TRY(check_at_least_1("base_batch", base_batch));
    LARGO__TRY(check_at_least_1("batch", batch));
    if (!lr) return largo__fail(LARGO_ERR_ARGUMENT, "lr is NULL");
    const double k = (double)batch / (double)base_batch;
    double scaled = lr0;
    if (rule == LARGO_SCALING_LINEAR) scaled = lr0 * k;
    if (rule == LARGO_SCALING_SQRT) scaled = lr0 * sqrt(k); /* IEEE's, the same everywhere */
    if (scaled > (double)FLT_MAX)
        return largo__fail(LARGO_ERR_ARGUMENT,
                           "lr0 is %.9g, which makes %.9g at %.9g times the batch; that must be "
                           "finite as a float",
                           lr0, scaled, k);
    *lr = scaled;
    return LARGO_OK;
}

static largo_status legw(double lr0, double warmup_epochs0, int64_t samples, int64_t base_batch,
                         int64_t batch, largo_legw *scaled)
{
    if (!scaled) return largo__fail(LARGO_ERR_ARGUMENT, "scaled is NULL");
    largo_legw made;
    LARGO__TRY(scale(LARGO_SCALING_SQRT, lr0, base_batch, batch, &made.lr));
    if (!(warmup_epochs0 >= 0.0 && warmup_epochs0 <= DBL_MAX))
        return largo__fail(LARGO_ERR_ARGUMENT, "warmup_epochs0 is %.9g; it must be >= 0 and finite",
                           warmup_epochs0);
    LARGO__TRY(check_at_least_1("samples", samples));
    made.warmup_epochs = warmup_epochs0 * ((double)batch / (double)base_batch);
    const double steps = made.warmup_epochs * ((double)samples / (double)batch);
    if (!(steps < 0x1p63))
        return largo__fail(
            LARGO_ERR_ARGUMENT,
            "warmup_epochs0 is %.9g, which makes %.9g steps; they must be fewer than "
            "2^63",
            warmup_epochs0, steps);
    made.warmup = (int64_t)steps;
    made.warmup += steps - (double)made.warmup >= 0.5;
    *scaled = made;
    return LARGO_OK;
}

largo_status largo_lr_scale(largo_scaling rule, double lr0, int64_t base_batch, int64_t batch,
                            double *lr)
{
    const largo__fpenv previous = largo__fpenv_enter();
    const largo_status status = scale(rule, lr0, base_batch, batch, lr);
    largo__fpenv_leave(previous);
    return status;
}

largo_status largo_legw_scale(double lr0, double warmup_epochs0, int64_t samples,
                              int64_t base_batch, int64_t batch, largo_legw *scaled)
{
    const largo__fpenv previous = largo__fpenv_enter();
    const largo_status status = legw(lr0, warmup_epochs0, samples, base_batch, batch, scaled);
    largo__fpenv_leave(previous);
    return status;
}
