/* support_scene.h - what a caller of the library has: memory, hyper-parameters, descriptors; decoded
 * from the input, and watched.
 *
 * All memory that descriptors point at lies in one arena, regions with red zones between. A pointer
 * that the library accepts has its bytes, or is never to be touched: a tensor too large for the arena
 * has no gradient, is frozen, or has a value that is NULL or misaligned. */
#ifndef LARGO_TESTS_FUZZ_SUPPORT_SCENE_H
#define LARGO_TESTS_FUZZ_SUPPORT_SCENE_H

#define LARGO_EXPERIMENTAL
#include "input.h"
#include "largo.h"

enum { PARAMS = 6, HYPERS = 2, ARENA = 81920, REGIONS = 128, RED_ZONE = 64 };

/* A struct that begins with struct_size, in a block of exactly the bytes it may have. */
typedef struct sized {
    void *memory;
    size_t room;
} sized;

/* A descriptor, which knows its place by param.id, and the bytes behind it. */
typedef struct described {
    largo_param param;
    largo_shard shard;
    size_t bytes; /* of value and of grad */
    size_t slot_bytes[LARGO_MAX_SLOTS];
    int is_backed; /* or it must stay without work */
} described;

typedef struct region {
    char *at;
    size_t bytes;
} region;

typedef struct scene {
    char *now, *start, *was; /* the arena; as it began; as before the last call */
    size_t used;
    region region[REGIONS];
    size_t regions;
    sized hyper[HYPERS], hyper_was[HYPERS], schedule;
    int64_t milestones[8];
    described described[PARAMS];
    size_t n;
    int by_hand; /* slots fit every algorithm, not just that of hyper[0] */
} scene;

void scene_open(scene *s, input *in);
void scene_close(scene *s);
void scene_rewind(scene *s); /* memory as it began */

largo_hyper *scene_hyper(const scene *s, size_t i);

/* A value, as a field may get it. */
double take_number(input *in);

/* Give a hyper struct one more change of any kind. */
void scene_change_hyper(const scene *s, const sized *block, input *in);

/* May params sized for hyper[0] be stepped by h? */
int scene_fits(const scene *s, const largo_hyper *h);

/* Around every call: `before` it, and `after` it what it returned and the descriptors whose memory
 * it may have written, if it succeeded. Everything else is as it was. */
void scene_before(scene *s);
void scene_after(scene *s, largo_status status, size_t n, const largo_param params[]);

/* The status is one of the list and a failure says why, in one line. */
void must_be_told(largo_status status);

/* Are two images of the arena the same, NaNs of any payload taken as one? */
int scene_same(const scene *s, const char *a, const char *b);

#endif
