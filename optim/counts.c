/* counts.c - numbers of steps, and the constants that follow from them; see counts.h. */
#include "constants.h"
#include "counts.h"
#include "../core/status.h"

static largo_status check_count(const largo__planned *q, uint32_t i)
{
    if (q->step[i] >= 0 && q->step[i] < INT64_MAX) return LARGO_OK;
    return largo__fail(LARGO_ERR_ARGUMENT,
                       "step of parameter %u counts %lld; it must be >= 0 and < 2^63 - 1",
                       (unsigned)(q->param + i), (long long)q->step[i]);
}

/* The numbers of a row's steps, checked: counts may have been changed since the plan. */
static largo_status number_row(largo__planned *q, int64_t step)
{
    q->t = step;
    q->is_alike = 1;
    if (!q->step) return LARGO_OK;
    int64_t differ = 0;
    for (uint32_t i = 0; i < q->params; i++) differ |= q->step[i] ^ q->step[0];
    LARGO__TRY(check_count(q, 0));
    q->t = q->step[0] + 1;
    if (!differ) return LARGO_OK;
    q->is_alike = q->has_constants = 0;
    for (uint32_t i = 0; i < q->params; i++) {
        LARGO__TRY(check_count(q, i));
        q->each_t[i] = q->step[i] + 1;
    }
    return LARGO_OK;
}

enum { LOOK_BACK = 4 };

/* The last few constants that were made: for (group, decay, step), which they are. */
typedef struct recent {
    int64_t t[LOOK_BACK];
    uint32_t group[LOOK_BACK], no_decay[LOOK_BACK], index[LOOK_BACK];
    size_t n;
} recent;

/* Constants for each distinct (group, decay, step). Parameters with the same are mostly neighbours,
 * so looking back a few entries finds nearly all. */
static uint32_t find_constants(largo__stepper *s, const largo__group groups[], recent *r,
                               const largo__planned *q, int64_t t)
{
    for (size_t m = 0; m < LOOK_BACK && m < r->n; m++)
        if (r->t[m] == t && r->group[m] == q->group && r->no_decay[m] == q->no_decay)
            return r->index[m];
    const size_t m = r->n++ % LOOK_BACK;
    r->t[m] = t;
    r->group[m] = q->group;
    r->no_decay[m] = q->no_decay;
    r->index[m] = (uint32_t)s->plan.n_constants;
    largo__constants *c = &s->plan.constants[s->plan.n_constants++];
    c->group = q->group;
    largo__constants_fill(groups[q->group].hyper, (int)q->no_decay, t, c);
    return r->index[m];
}

/* Tell the units of a row, from `of` on, their constants. */
static void set_constants(largo__stepper *s, const largo__group groups[], recent *r,
                          largo__planned *q, uint32_t *of)
{
    if (!q->is_alike) {
        for (uint32_t i = 0; i < q->params; i++)
            of[i] = find_constants(s, groups, r, q, q->each_t[i]);
        return;
    }
    const uint32_t constants = find_constants(s, groups, r, q, q->t);
    const int is_told = q->has_constants && q->constants == constants;
    for (uint32_t u = 0; !is_told && u < q->units; u++) of[u] = constants;
    q->constants = constants;
    q->has_constants = 1;
}

largo_status largo__number_steps(largo__stepper *s, const largo__group groups[], int64_t step)
{
    recent r = {{0}, {0}, {0}, {0}, 0};
    uint32_t *of = s->plan.constants_of;
    s->plan.n_constants = 0;
    for (size_t i = 0; i < s->n_planned; i++) {
        LARGO__TRY(number_row(&s->planned[i], step));
        set_constants(s, groups, &r, &s->planned[i], of);
        of += s->planned[i].units;
    }
    for (size_t i = 0; i < s->plan.n_shared; i++)
        if (s->plan.shared[i].report)
            s->plan.shared[i].constants = s->planned[s->plan.shared[i].planned].constants;
    return LARGO_OK;
}

static void count_row(const largo__planned *q)
{
    for (uint32_t i = 0; q->step && i < q->params; i++)
        q->step[i] = q->is_alike ? q->t : q->each_t[i];
}

void largo__count_steps(largo__stepper *s)
{
    for (size_t i = 0; i < s->n_planned; i++) count_row(&s->planned[i]);
}
