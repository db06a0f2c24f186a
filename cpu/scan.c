/* scan.c - the look at all gradients before the first write, and what is decided from it; see items.h. */
#include <math.h>
#include <string.h>
#include "items.h"

/* What a thread has found since it last shared it, all of one place. */
typedef struct findings {
    largo__stats stats;
    largo__stats *place;
} findings;

static void share(const largo__run *run, findings *f)
{
    if (f->place) largo__stats_merge(f->place, &f->stats, run->plan->scan);
    largo__stats_clear(&f->stats);
}

/* Findings about a unit go to its place; those so far are shared first if that is another one. */
static void go_to(const largo__run *run, const largo__unit *unit, findings *f)
{
    largo__stats *place = &run->layout->found[unit->group][unit->placement == LARGO_REPLICATED];
    if (place == f->place) return;
    share(run, f);
    f->place = place;
}

/* A whole unit of one chunk. */
static void scan_chunk(largo__span_kernel *kernel, const largo__unit *unit, const largo__k *k,
                       findings *f)
{
    double sum[2];
    largo__span s = {0};
    s.g = unit->g;
    s.n = unit->n;
    s.sum = sum;
    kernel(&s, k);
    largo__exact_add(&f->stats.sum[0], sum[0]);
    if (s.max[0] > f->stats.max[0]) f->stats.max[0] = s.max[0];
}

/* Gradients are taken as given; they are scaled in double when all is summed. */
static const largo__k as_given = {.grad_scale = 1.0};

/* A thread's whole list. */
void largo__do_scans(const largo__run *run, const largo__item *item, size_t n)
{
    const largo__pass *scan = run->plan->scan;
    largo__span_kernel *kernel = run->kernels[scan->row].span;
    findings f;
    f.place = NULL;
    largo__stats_clear(&f.stats);
    for (size_t i = 0; i < n; i++) {
        const int is_part = item[i].kind == LARGO__ITEM_SCAN;
        const size_t first = item[i].unit, end = is_part ? first + 1 : (size_t)item[i].end;
        for (size_t u = first; u < end; u++) {
            const largo__unit *unit = &run->plan->unit[u];
            largo__prefetch_unit(run, u, end, 0);
            go_to(run, unit, &f);
            if (!is_part && unit->placement != LARGO_SHARDED && unit->n <= LARGO__CHUNK)
                scan_chunk(kernel, unit, &as_given, &f);
            else
                largo__sum_span(kernel, unit, scan, &as_given, is_part ? item[i].begin : 0,
                                is_part ? item[i].end : unit->n, NULL, &f.stats);
        }
    }
    share(run, &f);
}

/* As the passes will see it, rounded to float: 2^64 (1 - 2^-53) has reached 2^64. NaN is too large. */
static int too_large(const largo__group_scan *group, double magnitude_of_g)
{
    const float g = (float)(magnitude_of_g * (group->grad_scale * group->clip));
    return !((double)g < group->limit);
}

/* Is it a value for which the policy of its group gives the step this status? */
static int is_minded(const largo__run *run, const largo__group_scan *group, double magnitude)
{
    if (group->non_finite == LARGO_NON_FINITE_PROPAGATE) return 0;
    if (run->result->error && group->non_finite != LARGO_NON_FINITE_ERROR) return 0;
    return too_large(group, magnitude);
}

/* A norm that is not finite cannot be clipped, whatever the policy of the group that made it so. */
static int spoils_norm(const largo__run *run, const largo__group_scan *group, double magnitude)
{
    (void)run;
    (void)group;
    return !isfinite(magnitude);
}

typedef int matches_fn(const largo__run *run, const largo__group_scan *group, double magnitude);

/* The first element that matches, or n. A larger magnitude matches too, so the largest of a stretch
 * tells whether it holds one. */
static int64_t first_of_unit(const largo__run *run, const largo__unit *unit, matches_fn *matches)
{
    const largo__pass *scan = run->plan->scan;
    const largo__group_scan *group = &run->plan->group[unit->group];
    int64_t end;
    for (int64_t at = 0; at < unit->n; at = end) {
        largo__stats most;
        largo__stats_clear(&most);
        end =
            unit->n - at < LARGO__BATCH * LARGO__CHUNK ? unit->n : at + LARGO__BATCH * LARGO__CHUNK;
        largo__sum_span(run->kernels[scan->row].span, unit, scan, &as_given, at, end, NULL, &most);
        if (!matches(run, group, largo__magnitude(most.max[0]))) continue;
        while (!matches(run, group, fabs((double)unit->g[at]))) at++;
        return at;
    }
    return unit->n;
}

static int find_first(largo__run *run, matches_fn *matches)
{
    for (size_t u = 0; u < run->plan->units; u++) {
        const largo__unit *unit = &run->plan->unit[u];
        const int64_t i = first_of_unit(run, unit, matches);
        if (i == unit->n) continue;
        run->result->bad_unit = u;
        run->result->bad_element = i;
        run->result->bad_value = unit->g[i];
        return 1;
    }
    return 0;
}

/* The value to tell of. Only ever runs when there is one, here or on another rank. */
LARGO_COLD static void find_bad(largo__run *run)
{
    if (!find_first(run, is_minded) && !find_first(run, spoils_norm))
        run->result->bad_unit = LARGO__NO_UNIT;
}

/* Norm over all groups, and the factor that brings it under each group's bound. */
static void find_clip(largo__run *run)
{
    largo__plan *plan = run->plan;
    double squares = 0.0;
    for (size_t g = 0; g < plan->groups; g++) {
        const double scale = plan->group[g].grad_scale;
        largo__stats *found = run->layout->found[g];
        largo__stats_merge(&found[0], &found[1], plan->scan); /* each counts once */
        squares += scale * scale * largo__exact_round(&found[0].sum[0]);
    }
    const double norm = run->result->grad_norm = sqrt(squares);
    for (size_t g = 0; g < plan->groups; g++) {
        largo__group_scan *group = &plan->group[g];
        group->clip = norm > group->max_grad_norm ? group->max_grad_norm / norm : 1.0;
    }
}

/* One thread: what is the norm, how much must be clipped, is there a step? */
void largo__do_decide(largo__run *run)
{
    largo__plan *plan = run->plan;
    find_clip(run);
    for (size_t g = 0; g < plan->groups; g++) {
        const largo__group_scan *group = &plan->group[g];
        if (group->non_finite == LARGO_NON_FINITE_PROPAGATE) continue;
        const int clips_by_nothing =
            group->max_grad_norm < INFINITY && !isfinite(run->result->grad_norm);
        if (!clips_by_nothing &&
            !too_large(group, largo__magnitude(run->layout->found[g][0].max[0])))
            continue;
        run->result->bad = run->stop = 1;
        run->result->error |= group->non_finite == LARGO_NON_FINITE_ERROR;
    }
    if (run->stop) {
        find_bad(run);
        return;
    }
    for (size_t i = 0; i < plan->n_constants; i++)
        plan->constants[i].k.grad_scale *= plan->group[plan->constants[i].group].clip;
}
