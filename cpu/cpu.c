/* cpu.c - the CPU backend: memory, threads, and the phases of a step. The only file with OpenMP. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include "detect.h"
#include "stats.h"
#include "work.h"
#include "../core/backend.h"
#include "../core/fpenv.h"
#include "../core/status.h"

typedef struct device {
    const largo__kernel *kernels;
    size_t threads, cache;
    pid_t process; /* that made the context */
} device;

/* In the order of isa.def. */
static const largo__kernel *const tables[] = {
#define ISA(name, test) largo__kernels_##name,
#include "isa.def"
#undef ISA
};

static int score(const char **reason)
{
    *reason = "";
    return 1;
}

/* Bytes of the last-level cache that a wave may fill. What the machine does not tell is guessed. Guests
 * are told the cache of the whole socket, 480 MiB for two processors: there waves of 60 MiB and more lose
 * by a fifth what waves of 20 to 48 MiB win (docs/performance.md). */
static size_t cache_size(size_t threads)
{
    enum { SHARE = 12 << 20 }; /* of one thread */
    long bytes = -1;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    if (bytes <= 0) bytes = 8 << 20;
    const size_t most = (size_t)bytes / 4 * 3;
    return most < threads * SHARE ? most : threads * SHARE;
}

static size_t thread_count(const largo_ctx_options *options)
{
    if (options->threads) return (size_t)options->threads;
    if (options->parallel) return 1;
    const int most = omp_get_max_threads();
    return most < 1 ? 1 : most > 1024 ? 1024 : (size_t)most;
}

static largo_status open_cpu(largo_ctx *ctx, const largo_ctx_options *options)
{
    if (options->device)
        return largo__fail(LARGO_ERR_ARGUMENT, "options.device is %d; the CPU is device 0",
                           (int)options->device);
    if (options->stream)
        return largo__fail(LARGO_ERR_ARGUMENT, "options.stream is %p; it must be NULL on the CPU",
                           options->stream);
    size_t isa;
    LARGO__TRY(largo__cpu_isa_choose(&isa));
    device *d = largo__host_alloc(ctx, sizeof *d);
    if (!d) return largo__fail(LARGO_ERR_MEMORY, "no memory for a device, %zu bytes", sizeof *d);
    d->kernels = tables[isa];
    d->threads = thread_count(options);
    d->cache = cache_size(d->threads);
    d->process = getpid();
    ctx->device = d;
    const char *missing;
    snprintf(ctx->name, sizeof ctx->name, "cpu %s, %zu thread%s", largo__cpu_isa(isa, &missing),
             d->threads, d->threads == 1 ? "" : "s");
    return LARGO_OK;
}

static void close_cpu(largo_ctx *ctx)
{
    largo__host_free(ctx, ctx->device, sizeof(device));
}

static void *alloc_cpu(size_t bytes)
{
    return aligned_alloc(256, bytes);
}

static void zero_cpu(void *memory, size_t bytes)
{
    memset(memory, 0, bytes);
}

static largo_status plan_cpu(largo_ctx *ctx, largo__plan *plan)
{
    const device *d = ctx->device;
    size_t bytes = 0;
    plan->backend = largo__layout_make(ctx, plan, d->threads, d->cache, &bytes);
    if (plan->backend) return LARGO_OK;
    return largo__fail(LARGO_ERR_MEMORY, "no memory for the work lists of %zu tensors, %zu bytes",
                       plan->units, bytes);
}

static void unplan_cpu(largo_ctx *ctx, largo__plan *plan)
{
    largo__layout_free(ctx, plan->backend);
    plan->backend = NULL;
}

/* ---- phases over threads ---- */

static void list_with_fpenv(largo__run *run, size_t phase, size_t thread)
{
    const largo__fpenv previous = largo__fpenv_enter();
    largo__work_list(run, phase, thread);
    largo__fpenv_leave(previous);
}

/* Only the phase that decides sets `stop`; before and after it nobody may look at it, or threads of
 * one region would disagree about its end. */
static int is_stopped(const largo__run *run, size_t phase)
{
    return phase == run->layout->decide_phase && run->stop;
}

/* The process in which this thread last opened a parallel region; 0: none yet. libgomp's threads belong
 * to the thread that opens regions. */
static _Thread_local pid_t region_process;

/* May this thread open a parallel region? Inside one of the host's, all processors have work. In a forked
 * child libgomp waits forever for threads that only the parent has: those of a region that this thread
 * opened here, or that the host may have opened, unasked, since the context was made. */
static int may_open_region(const device *d)
{
    const pid_t now = getpid();
    if (omp_in_parallel() || d->process != now) return 0;
    if (region_process && region_process != now) return 0;
    region_process = now;
    return 1;
}

/* OpenMP may give fewer threads than asked for (limited): then each takes several lists. */
static void run_openmp(largo__run *run, size_t first)
{
    const size_t threads = run->layout->threads, phases = run->end;
#pragma omp parallel num_threads((int)threads)
    {
        const size_t me = (size_t)omp_get_thread_num(), all = (size_t)omp_get_num_threads();
        const largo__fpenv previous = largo__fpenv_enter();
        for (size_t phase = first; phase < phases; phase++) {
            for (size_t t = me; t < threads; t += all) largo__work_list(run, phase, t);
#pragma omp barrier
            if (is_stopped(run, phase)) break;
        }
        largo__fpenv_leave(previous);
    }
}

static void run_serial(largo__run *run, size_t first)
{
    for (size_t phase = first; phase < run->end; phase++) {
        for (size_t t = 0; t < run->layout->threads; t++) list_with_fpenv(run, phase, t);
        if (is_stopped(run, phase)) break;
    }
}

typedef struct phase_call {
    largo__run *run;
    size_t phase;
} phase_call;

static void phase_body(void *arg, size_t thread)
{
    const phase_call *call = arg;
    list_with_fpenv(call->run, call->phase, thread);
}

/* The host's threads: they may run one after the other, so a phase is a call of its own. */
static void run_host(const largo_ctx *ctx, largo__run *run, size_t first)
{
    for (size_t phase = first; phase < run->end; phase++) {
        phase_call call = {run, phase};
        ctx->options.parallel(ctx->options.parallel_user, run->layout->threads, phase_body, &call);
        if (is_stopped(run, phase)) break;
    }
}

/* Phases [layout->phase, end). */
static void run_phases(const largo_ctx *ctx, largo__run *run)
{
    const size_t first = run->layout->phase;
    if (first >= run->end) return;
    const int is_alone = run->layout->threads == 1;
    if (!is_alone && ctx->options.parallel)
        run_host(ctx, run, first);
    else if (!is_alone && may_open_region(ctx->device))
        run_openmp(run, first);
    else
        run_serial(run, first);
}

static largo_status round_cpu(largo_ctx *ctx, largo__plan *plan, int first, largo__result *result,
                              largo_reduction *next)
{
    const device *d = ctx->device;
    largo__layout *layout = plan->backend;
    if (first) {
        memset(layout->accumulators, 0, layout->accumulator_bytes);
        layout->phase = plan->scan ? 0 : layout->scan_phases;
        layout->stop = 0;
    } else {
        largo__stop_take(plan, layout, layout->stop++);
    }
    layout->stop = largo__next_stop(plan, layout, layout->stop);
    largo__run run = {plan, layout, d->kernels, result, largo__stop_phase(layout, layout->stop), 0};
    run_phases(ctx, &run);
    layout->phase = run.end;
    if (result->bad) return LARGO_OK;
    if (layout->stop == LARGO__STOPS) {
        largo__report_shared(plan, layout);
        return LARGO_OK;
    }
    result->written = layout->stop_plan[layout->stop].is_written;
    largo__stop_pack(plan, layout, layout->stop, next);
    return LARGO_OK;
}

const largo__backend largo__cpu = {
    LARGO__BACKEND_API, LARGO_BACKEND_CPU, "cpu", 1,        score,    largo__cpu_isa, open_cpu,
    close_cpu,          alloc_cpu,         free,  zero_cpu, plan_cpu, unplan_cpu,     round_cpu,
};
