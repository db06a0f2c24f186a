/*
 * largo.h - optimizers for large-batch training, for programs written in C.
 *
 * This header is the specification. What is not in it is not promised; what is in it is tested.
 *
 *   1  Status and messages      4  Context                      7  Learning-rate schedule
 *   2  Version                  5  Step with your own state
 *   3  Tensors                  6  Optimizer object
 *
 * Rules that hold for every function
 *
 *   Ownership   largo borrows every pointer it is given and frees only what it created. Descriptor
 *               arrays (largo_param[], largo_tensor[]) are read before the call returns; the memory
 *               they point at must live until the work on it has finished.
 *   Layout      Tensors are dense and row-major. Any element-aligned address is accepted; 64-byte
 *               alignment is fastest. Memory that a step writes may not overlap anything else it
 *               reads or writes; this is checked.
 *   Device      Pointers belong to the device of the context: host memory for CPU.
 *   Time        CPU calls return when the work is done.
 *   Threads     A context and the objects made from it serve one thread at a time. Different
 *               contexts are independent. There is no other shared state. Threads are OpenMP's: how
 *               long they spin between steps (OMP_WAIT_POLICY), and that libgomp ends the process
 *               where it cannot make one, is its own. Loading the library and making a context make
 *               none. The calling thread works alone inside a parallel region of yours, and in a
 *               forked child with a context from before the fork or where the thread that forked
 *               had made a step; docs/embedding.md says what is left to you. With `parallel`
 *               threads are yours.
 *   Errors      Nothing prints, exits or aborts. All checks precede the first write: a call that
 *               fails has changed nothing.
 *   Bits        The same inputs give the same bits for every thread count and instruction set;
 *               docs/determinism.md. The payload of a NaN is outside the promise.
 *   Defaults    Every options struct has an initializer or an init function that holds its defaults.
 *               NULL options mean those; NULL given to a destroy function does nothing.
 *   Versions    A struct that begins with struct_size may grow at its end. A larger one than the
 *               library knows is accepted only if what it does not know is zero bytes.
 */
#ifndef LARGO_H
#define LARGO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library is built with -fvisibility=hidden */
#endif

/* ---- 1. Status and messages ------------------------------------------------------------------ */

/* X(identifier, code, sentence). Codes up to LARGO_SKIPPED are not failures. */
#define LARGO_STATUS_LIST(X)                                                                       \
    X(LARGO_OK, 0, "done")                                                                         \
    X(LARGO_SKIPPED, 1, "the step was skipped: a gradient is not finite or too large")             \
    X(LARGO_ERR_ARGUMENT, 2, "a value outside its documented range")                               \
    X(LARGO_ERR_SHAPE, 3, "shapes that do not fit together")                                       \
    X(LARGO_ERR_DTYPE, 4, "an element type this entry does not take")                              \
    X(LARGO_ERR_DEVICE, 5, "memory of another device than the context's")                          \
    X(LARGO_ERR_MEMORY, 6, "an allocation failed")                                                 \
    X(LARGO_ERR_BACKEND, 7, "the device's driver reported a failure")                              \
    X(LARGO_ERR_UNSUPPORTED, 8, "valid, but not in this build or on this machine")                 \
    X(LARGO_ERR_STATE, 9, "wrong order of calls")                                                  \
    X(LARGO_ERR_CALLBACK, 10, "a function of yours returned failure")                              \
    X(LARGO_ERR_NON_FINITE, 11, "a gradient is not finite or too large, and the policy is ERROR")

typedef enum largo_status {
#define LARGO_STATUS_ENUM(name, code, sentence) name = code,
    LARGO_STATUS_LIST(LARGO_STATUS_ENUM)
#undef LARGO_STATUS_ENUM
} largo_status;

/* Is this a failure? LARGO_OK and LARGO_SKIPPED are not. */
static inline int largo_failed(largo_status status)
{
    return status > LARGO_SKIPPED;
}

/* The identifier as text, "LARGO_ERR_SHAPE"; "LARGO_ERR_UNKNOWN" for any other number. */
const char *largo_status_name(largo_status status);

/* What the code means in general, "shapes that do not fit together"; never NULL. */
const char *largo_status_sentence(largo_status status);

/* One sentence about the last failure (or skipped step) on this thread, naming the argument, the
 * value found and the value needed: "params[3].state[1] is NULL; lamb needs slot 1 (exp_avg_sq),
 * 3072 bytes". Success leaves it alone; it is "" before any failure. Valid until the next failure
 * on this thread. */
const char *largo_last_error(void);

/* ---- 2. Version ------------------------------------------------------------------------------ */

#define LARGO_VERSION_MAJOR 0 /* layout or meaning changed */
#define LARGO_VERSION_MINOR 1 /* something was added */
#define LARGO_VERSION_PATCH 0

/* The library's version as major * 10000 + minor * 100 + patch. */
int largo_version(void);

/* ---- 3. Tensors ------------------------------------------------------------------------------ */

#define LARGO_MAX_DIMS 6
#define LARGO_MAX_SLOTS 8

typedef enum largo_dtype {
    LARGO_F32 = 1, /* IEEE binary32 */
    LARGO_I64 = 5, /* int64_t, uint32_t and double: statistics that processes reduce, never tensors */
    LARGO_U32 = 6,
    LARGO_F64 = 7
} largo_dtype;

/* A view of dense row-major memory. 64 bytes. A dimension of 0 is legal and means no work. The
 * number of elements may not exceed 2^60. */
typedef struct largo_tensor {
    void *data;
    largo_dtype dtype;
    int32_t ndim;                  /* 0 .. LARGO_MAX_DIMS; 0 is a scalar */
    int64_t shape[LARGO_MAX_DIMS]; /* entries from ndim on are ignored */
} largo_tensor;

/* ---- 4. Context ------------------------------------------------------------------------------ */

typedef struct largo_ctx largo_ctx;

typedef enum largo_backend {
    LARGO_BACKEND_AUTO = 0, /* the best one that works here */
    LARGO_BACKEND_CPU = 1,
    LARGO_BACKEND_CUDA = 2 /* LARGO_ERR_UNSUPPORTED in this version */
} largo_backend;

/* Run body(arg, i) for i in [0, n), in any order, on any threads, and return when all are done.
 * For hosts with a thread pool of their own; without it largo uses OpenMP. */
typedef void largo_parallel_fn(void *user, size_t n, void (*body)(void *arg, size_t i), void *arg);

/* Memory of the context's device, aligned to 256 bytes. NULL means failure. `stream` is NULL on
 * CPU. */
typedef void *largo_alloc_fn(void *user, size_t bytes, void *stream);
typedef void largo_free_fn(void *user, void *memory, size_t bytes, void *stream);

/* Combine n values in place across the processes (ranks) that hold parts of the same tensors; 0 for
 * success. A step calls it as often, and in the same order, on every rank. Values are LARGO_I64 with
 * LARGO_SUM, LARGO_U32 with LARGO_MAX, or LARGO_F64 with LARGO_SUM of slots to which one rank
 * contributes and the others +0: exact in any order, so that every correct all-reduce gives the same
 * bits. `stream` is NULL on CPU. */
typedef enum largo_reduce_op { LARGO_SUM = 1, LARGO_MAX = 2 } largo_reduce_op;
typedef int largo_all_reduce_fn(void *user, void *values, size_t n, largo_dtype dtype,
                                largo_reduce_op op, void *stream);

typedef struct largo_ctx_options {
    size_t struct_size;    /* LARGO_CTX_OPTIONS sets it; lets old programs meet new libraries */
    largo_backend backend; /* default AUTO */
    int32_t device;        /* ordinal of the device; 0 on CPU */
    int32_t threads;       /* CPU threads, 0 .. 1024; 0: what OpenMP would use, 1 with `parallel` */
    void *stream;          /* NULL on CPU */
    largo_parallel_fn *parallel;
    void *parallel_user;
    largo_alloc_fn *alloc; /* both or neither */
    largo_free_fn *free;
    void *alloc_user;
    largo_all_reduce_fn *all_reduce; /* NULL: one process, or steps by rounds; docs/sharding.md */
    void *all_reduce_user;
} largo_ctx_options;

/* clang-format off */
#define LARGO_CTX_OPTIONS \
    {sizeof(largo_ctx_options), LARGO_BACKEND_AUTO, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
/* clang-format on */

/* Make a context. options == NULL: all defaults. The environment variable LARGO_ISA (scalar, avx2,
 * avx512, neon) lowers the CPU instruction set, for tests; it cannot raise it.
 *
 * LARGO_ERR_ARGUMENT: a field outside its range, or LARGO_ISA names no instruction set.
 * LARGO_ERR_UNSUPPORTED: the backend asked for, or the instruction set in LARGO_ISA, is not here;
 * the message says why. LARGO_ERR_MEMORY. On failure *ctx is NULL. */
largo_status largo_ctx_create(const largo_ctx_options *options, largo_ctx **ctx);

/* Objects made from the context keep it alive until they are destroyed too. */
void largo_ctx_destroy(largo_ctx *ctx);

/* What AUTO chose, and a line for logs: "cpu avx512, 2 threads". */
largo_backend largo_ctx_backend(const largo_ctx *ctx);
const char *largo_ctx_name(const largo_ctx *ctx);

/* Memory as array libraries describe it, with the numbers of DLPack; largo_dlpack.h fills it from a
 * DLTensor. 48 bytes. */
typedef struct largo_strided {
    void *data;
    uint64_t byte_offset;   /* of the first element, from data */
    const int64_t *shape;   /* [ndim] */
    const int64_t *strides; /* [ndim], in elements; NULL: dense and row-major */
    int32_t ndim;
    int32_t device_type; /* 1 CPU, 2 CUDA, 3 host memory pinned by CUDA, 13 managed by CUDA */
    int32_t device_id;   /* not looked at on CPU */
    uint8_t code, bits;  /* 2 and 32: IEEE binary32 */
    uint16_t lanes;      /* 1 */
} largo_strided;

/* See it as a tensor; nothing is copied. Strides may be given if they are those of dense row-major
 * memory; the stride of a dimension of 1 may be anything.
 *
 * LARGO_ERR_DEVICE: not memory of the context's device.  LARGO_ERR_DTYPE: not float32.
 * LARGO_ERR_SHAPE: too many dimensions, a negative one, more than 2^60 elements, or other strides.
 * LARGO_ERR_ARGUMENT: NULL where there are elements, or not aligned to one. On failure *tensor is
 * untouched. */
largo_status largo_tensor_view(const largo_ctx *ctx, const largo_strided *array,
                               largo_tensor *tensor);

/* What this build and this machine offer: one entry for each backend and CPU instruction set that
 * largo knows. Strings live as long as the library. */
typedef struct largo_capability {
    const char *kind;   /* "backend" or "isa" */
    const char *name;   /* "cpu", "cuda", "scalar", "avx2", "avx512", "neon" */
    int32_t available;  /* 1: usable here */
    int32_t reserved;   /* 0 */
    const char *reason; /* why it is not available; "" if it is */
} largo_capability;

/* Write up to `capacity` entries to list[] (may be NULL if capacity is 0) and their full number to
 * *n. Any thread may call it. */
largo_status largo_capabilities(size_t capacity, largo_capability list[], size_t *n);

/* ---- 5. Step with your own state ------------------------------------------------------------- */

typedef enum largo_algo {
    LARGO_SGD = 1,   /* as torch.optim.SGD: momentum, dampening, Nesterov */
    LARGO_ADAMW = 2, /* Loshchilov & Hutter, ICLR 2019 */
    LARGO_LARS = 3,  /* You, Gitman & Ginsburg, 2017 */
    LARGO_LAMB = 4,  /* You et al., ICLR 2020 */
#ifdef LARGO_EXPERIMENTAL
    LARGO_CAME = 5, /* Luo et al., ACL 2023. Right to the vectors, not yet tuned; may change */
    LARGO_MERIT = 6 /* Luo et al., ICML 2025. At most two dimensions as yet; may change */
#endif
} largo_algo;

typedef enum largo_switch { LARGO_UNSET = 0, LARGO_OFF = 1, LARGO_ON = 2 } largo_switch;

/* When LAMB and LARS scale a tensor's step by its trust ratio, which is 1 where one of its two norms
 * is 0. */
typedef enum largo_adapt {
    LARGO_ADAPT_ALWAYS = 1,     /* the paper; NVLAMB */
    LARGO_ADAPT_IF_DECAYED = 2, /* only where weight decay acts; apex, timm */
    LARGO_ADAPT_NEVER = 3
} largo_adapt;

/* LARS: what the trust ratio divides trust_coefficient |w| by. */
typedef enum largo_denominator {
    LARGO_DENOMINATOR_PAPER = 1,   /* |g| + weight_decay |w| + eps; the paper, timm */
    LARGO_DENOMINATOR_DECAYED = 2, /* |g + weight_decay w| + eps; optax, SimCLR */
    LARGO_DENOMINATOR_UPDATE = 3   /* |the update| + eps, with velocity GRAD; SimCLR without
                                      classic_momentum */
} largo_denominator;

/* LARS: what is added to momentum_buffer; what is not in it multiplies the update. */
typedef enum largo_velocity {
    LARGO_VELOCITY_LR_RATIO = 1, /* lr ratio d: a later lr leaves old velocity as it is; optax */
    LARGO_VELOCITY_RATIO = 2,    /* ratio d; timm */
    LARGO_VELOCITY_GRAD = 3      /* d = g + weight_decay w, as SGD */
} largo_velocity;

/* What a step does about a gradient that is inf or NaN or, for the algorithms that keep its square
 * (all but SGD and LARS), reaches a magnitude of 2^64 after grad_scale and clip. */
typedef enum largo_non_finite {
    LARGO_NON_FINITE_SKIP = 1,     /* nothing is written, no step is counted; LARGO_SKIPPED */
    LARGO_NON_FINITE_ERROR = 2,    /* the same; LARGO_ERR_NON_FINITE */
    LARGO_NON_FINITE_PROPAGATE = 3 /* not looked at; saves a read of the gradients */
} largo_non_finite;

/* Hyper-parameters, named as the papers and PyTorch name them. They are double because
 * 1 - (float)0.999 is off by 1.3e-5 of itself, and that error would enter every second moment.
 *
 * "Finite" means finite as a float too.
 *
 * largo_hyper_init fills in the defaults of the algorithm. Fields that an algorithm does not use
 * are NaN (numbers) or 0 (enums); giving one of them a value makes the step fail with
 * LARGO_ERR_ARGUMENT, so that a momentum set on AdamW is an error and not a surprise. The table of
 * who uses what, with defaults, is in docs/optimizers/README.md. */
typedef struct largo_hyper {
    size_t struct_size; /* largo_hyper_init sets it */
    largo_algo algo;    /* largo_hyper_init sets it */

    largo_non_finite non_finite;  /* default SKIP */
    largo_switch maximize;        /* default OFF; ON: the gradient's sign is turned */
    largo_switch bias_correction; /* AdamW, LAMB: default ON */
    largo_switch nesterov;        /* SGD, LARS: default OFF; needs momentum > 0, dampening 0 */
    largo_switch grad_averaging;  /* LAMB: default ON; OFF: exp_avg += g, not (1 - beta1) g */
    largo_switch l2;              /* LAMB: default OFF; ON: decay is added to the gradient */
    largo_adapt adapt;            /* LAMB, LARS: default ALWAYS */
    largo_switch larc;            /* LARS: default OFF; ON: the ratio becomes min(ratio / lr, 1), so
                                     that lr bounds the step */
    largo_denominator denominator; /* LARS: default PAPER */
    largo_velocity velocity;       /* LARS: default LR_RATIO */
    uint32_t reserved;             /* 0 */

    double lr;             /* >= 0, finite */
    double beta1;          /* [0, 1) */
    double beta2;          /* [0, 1) */
    double beta3;          /* [0, 1)  CAME */
    double momentum;       /* [0, 1)  SGD: default 0; LARS: 0.9 */
    double dampening;      /* [0, 1]  SGD; acts from the second step on */
    double eps;            /* >= 2^-126, finite; LARS: 0 too, its default */
    double eps2;           /* >= 2^-126, finite  CAME */
    double weight_decay;   /* >= 0, finite; decoupled. SGD, LARS and LAMB with l2 add it to the
                              gradient */
    double trust_coefficient; /* >= 2^-126, finite  LARS: default 0.001 */
    double clip_threshold;    /* >= 2^-126  CAME: bound on the RMS of the update. Bounds on elements:
                                 LARS: of g + weight_decay w, default infinity; MERIT: of the
                                 scaled update */

    double weight_norm_min; /* LAMB, LARS: the weight norm is clamped to [min, max] in the ratio; */
    double weight_norm_max; /*   0 <= min <= max; defaults 0 and infinity */
    double trust_ratio_min; /* LAMB, LARS: the ratio is clamped to [min, max]; */
    double trust_ratio_max; /*   0 <= min <= 1 <= max; defaults 0 and infinity */

    double grad_scale;    /* >= 2^-126, finite: gradients are multiplied by it first, as by
                             1 / loss_scale */
    double max_grad_norm; /* >= 2^-126: gradients are scaled so that their Euclidean norm over all tensors
                             of the call, after grad_scale, is at most this; infinity (default): off.
                             A norm that is not finite counts as a gradient that is not; under
                             PROPAGATE nothing is clipped then */

    /* One float on the context's device, read when a step begins and multiplied into the gradients
     * like grad_scale: a loss scaler writes 1 / scale there, or 0 after an overflow. One of a group
     * that is not > 0 and finite forbids the step to all: LARGO_ERR_NON_FINITE if that group's
     * policy is ERROR, else LARGO_SKIPPED, PROPAGATE too; gradients are not looked at then. The same
     * on every rank. NULL (default): 1. */
    const float *grad_factor;
} largo_hyper;

/* Fill *hyper with the defaults of the algorithm's paper. LARGO_ERR_ARGUMENT: an unknown algorithm
 * or size; *hyper is then untouched. */
#define largo_hyper_init(hyper, algo) largo_hyper_init_sized((hyper), sizeof *(hyper), (algo))
largo_status largo_hyper_init_sized(largo_hyper *hyper, size_t struct_size, largo_algo algo);

/* Fill *hyper (of sizeof(largo_hyper) bytes) with a named recipe; set lr yourself:
 *
 *   apex_lamb           apex FusedLAMB: adapt if decayed, max_grad_norm 1
 *   nvlamb              the same with adapt always (use_nvlamb)
 *   cybertronai_lamb    no bias correction, weight norm at most 10, no decay
 *   optax_lamb          no decay                         timm_lamb   as apex_lamb
 *   optax_lars          denominator DECAYED              timm_lars   adapt if decayed, velocity RATIO,
 *   simclr_lars         the same, weight decay 1e-6                  eps 1e-8, momentum 0
 *   simclr_lars_update  denominator UPDATE, velocity     timm_larc   the same with larc (trust_clip)
 *                       GRAD (no classic_momentum)
 *
 * Names that are not known: LARGO_ERR_ARGUMENT, and *hyper is untouched. */
#define largo_hyper_preset(hyper, name) largo_hyper_preset_sized((hyper), sizeof *(hyper), (name))
largo_status largo_hyper_preset_sized(largo_hyper *hyper, size_t struct_size, const char *name);

/* Set a field by its name above, for configuration files and language bindings. Switches take 0 and
 * 1, other enums their number. LARGO_ERR_ARGUMENT: no such field, a field that hyper->algo does not
 * use, or a value outside its range. */
largo_status largo_hyper_set(largo_hyper *hyper, const char *field, double value);

/* Check all fields without making a step: what the next step would say of them. */
largo_status largo_hyper_check(const largo_hyper *hyper);

/* Which part of a tensor that is spread over processes a parameter is. */
typedef enum largo_placement {
    LARGO_LOCAL = 1,     /* all of it is here, and no other process has it; what NULL means */
    LARGO_SHARDED = 2,   /* a part is here; norms are those of the whole, by the all-reduce */
    LARGO_REPLICATED = 3 /* every process has all of it; it counts once in the gradient norm */
} largo_placement;

/* `value`, `grad` and state of a SHARDED parameter hold elements [offset, offset + their number) of
 * the whole tensor, in row-major order, in a shape of any kind; that may be none. Every process lists
 * every SHARDED parameter, in the same order and groups, with the same flags, segments and
 * hyper-parameters, *grad_factor included, and has a gradient of it if the others have.
 *
 * Parts that begin and end at a multiple of 4096 elements of a segment give the bits of one process;
 * others are right to about 1e-6. Where the algorithm looks at rows and columns (LARGO_CAME and
 * LARGO_MERIT with two dimensions or more) it must be a multiple of 256 rows of the matrix as well,
 * and parts are always of whole rows. largo_shard_cut says where to cut. State by rows (see
 * largo_slots) is that of the rows here; state by columns is kept by every process that has a row of
 * the matrix, and is the same on all of them. docs/sharding.md. */
typedef struct largo_shard {
    largo_placement placement;
    int32_t ndim;                  /* SHARDED; of the whole tensor */
    int64_t shape[LARGO_MAX_DIMS]; /* SHARDED; of the whole tensor */
    int64_t offset;                /* SHARDED */
} largo_shard;

/* What a step found out about a tensor, or about one of its segments. Which norms: the docstring of
 * the algorithm's page; of MERIT they are maxima. NaN: this algorithm has none. */
typedef struct largo_param_stats {
    double weight_norm; /* before the step */
    double update_norm; /* LAMB, MERIT: of the update before lr and ratio; LARS: what its denominator
                           takes the norm of; CAME: of the update before its RMS is bounded */
    double trust_ratio; /* applied to the update. 1 where there is none */
    double reserved;
} largo_param_stats;

/* One parameter of a step; 256 bytes. Zero it and fill what you use; largo_param_f32 does both. */
typedef struct largo_param {
    largo_tensor value; /* in/out, LARGO_F32 */
    largo_tensor grad;  /* in, LARGO_F32, same shape; not written unless GRAD_SCRATCH.
                           data NULL: this parameter has no gradient and is left alone */

    void *state[LARGO_MAX_SLOTS]; /* in/out, by slot; see largo_slots */

    /* value is this many equal slices of dimension 0, each with its own trust ratio: the layers
     * kept in one array, or q, k and v in one matrix. 0 or 1: one. */
    int32_t segments;

    uint32_t flags;       /* LARGO_PARAM_* */
    uint32_t id;          /* reserved for naming the parameter; any value */
    uint32_t pad;         /* 0 */
    int64_t *step;        /* in/out: this parameter's own count of steps, which others may share;
                             NULL: the step given */
    const largo_shard *shard; /* NULL: LOCAL. Read before the call returns */
    largo_param_stats *stats; /* out, if not NULL: one for each segment, by each step applied */
    uint64_t reserved[3];     /* 0 */
} largo_param;

#define LARGO_PARAM_NO_DECAY 1u     /* weight_decay is 0 here: biases and norms */
#define LARGO_PARAM_NO_TRUST 2u     /* trust ratio is 1 here, as it always is for SGD and AdamW */
#define LARGO_PARAM_FROZEN 4u       /* never touched, not in norms */
#define LARGO_PARAM_GRAD_SCRATCH 8u /* the gradient may be overwritten: saves a read */

/* The common case: an F32 matrix of rows x cols (a vector is n x 1), with its gradient. */
static inline largo_param largo_param_f32(float *value, const float *grad, int64_t rows,
                                          int64_t cols)
{
    const int32_t ndim = cols == 1 ? 1 : 2;
    /* clang-format off */
    const largo_param p = {{value,         LARGO_F32, ndim, {rows, cols, 0, 0, 0, 0}},
                           {(float *)grad, LARGO_F32, ndim, {rows, cols, 0, 0, 0, 0}},
                           {0}, 0, 0, 0, 0, 0, 0, 0, {0}};
    /* clang-format on */
    return p;
}

/* Set NO_DECAY and NO_TRUST on every parameter whose value has at most one dimension: biases and
 * the scales and shifts of normalisation layers, as the recipes of LAMB and LARS have it. Returns
 * how many were set. Never done by itself. */
size_t largo_params_exempt_vectors(size_t n, largo_param params[]);

/* Set flags (one or more of LARGO_PARAM_*) on every parameter whose name contains `pattern`, case
 * counting: "LayerNorm" is not in "layer_norm". Their number goes to *matched, if not NULL. A pattern
 * that no name contains is a mistake: LARGO_ERR_ARGUMENT, as are an empty one, NULL names and unknown
 * flags; nothing is changed then. */
largo_status largo_params_flag(size_t n, largo_param params[], const char *const names[],
                               const char *pattern, uint32_t flags, size_t *matched);

/* A state slot of an algorithm. */
typedef struct largo_slot {
    const char *name;  /* "exp_avg", as in PyTorch's state_dict */
    largo_tensor like; /* dtype and shape; data is NULL */
    size_t bytes;
} largo_slot;

/* Which state does hyper->algo keep for this parameter? Writes up to LARGO_MAX_SLOTS entries and
 * their number. All state starts as zero bytes. Names live as long as the library. Only dtype and
 * shape of param->value, segments and flags are looked at. */
largo_status largo_slots(const largo_hyper *hyper, const largo_param *param,
                         largo_slot slots[LARGO_MAX_SLOTS], size_t *n);

/* One optimizer step over n parameters. `step` counts from 1 and drives bias correction; a
 * parameter with a count of its own uses *param.step + 1 instead, and has it stored if the step is
 * applied.
 *
 *   reads   grad, value, state      writes   value, state, *param.step
 *
 * State is F32; arithmetic is F32 with the statistics of a tensor summed exactly (see
 * docs/determinism.md). Nothing is kept between calls but scratch memory and the checked form of
 * the descriptors, which a call with the same ones finds again.
 *
 * LARGO_SKIPPED, LARGO_ERR_NON_FINITE: see largo_non_finite.
 * LARGO_ERR_ARGUMENT: a hyper-parameter, flag, count or pointer is not as documented; step < 1;
 *   memory that would be written overlaps other memory of the call (a parameter listed twice).
 * LARGO_ERR_SHAPE: grad and value differ in shape; segments does not divide shape[0].
 * LARGO_ERR_DTYPE: not LARGO_F32.  LARGO_ERR_MEMORY: no scratch memory.
 * LARGO_ERR_STATE: a SHARDED parameter needs a reduction and the context has no all_reduce.
 * LARGO_ERR_CALLBACK: all_reduce failed. If it was that of a trust ratio, the moments of SHARDED
 *   tensors may be written and their values not. */
largo_status largo_step(largo_ctx *ctx, const largo_hyper *hyper, int64_t step, size_t n,
                        const largo_param params[]);

/* Where to cut a tensor, `whole` (of which value.ndim, value.shape and segments are looked at), so
 * that every number of processes gives the same bits: rank's part is elements [*begin, *end). Parts
 * are about equal; some are empty where there are fewer places to cut than processes. */
largo_status largo_shard_cut(const largo_hyper *hyper, const largo_param *whole, int32_t world,
                             int32_t rank, int64_t *begin, int64_t *end);

/* What to all-reduce before the next round of a step; n = 0: the step is done. */
typedef struct largo_reduction {
    void *values; /* of the library, in memory of the context's device */
    size_t n;
    largo_dtype dtype;
    largo_reduce_op op;
} largo_reduction;

/* largo_step cut at its reductions, for hosts whose collectives cannot be called back. Call it with
 * round = 0, 1, 2 ... and the same arguments; after each, reduce what *reduction says, until its n
 * is 0. Every rank sees the same rounds. The context's all_reduce is not called. Starting again at
 * round 0 abandons a step: a SHARDED tensor's moments may then be written and its value not.
 *
 * Errors as largo_step. LARGO_ERR_STATE: a round out of order, or other arguments than in round 0. */
largo_status largo_step_round(largo_ctx *ctx, const largo_hyper *hyper, int64_t step, size_t n,
                              const largo_param params[], int32_t round,
                              largo_reduction *reduction);

/* What became of the last step made with this context. */
typedef struct largo_outcome {
    size_t struct_size;  /* in: sizeof(largo_outcome) */
    int32_t skipped;     /* 1: nothing was written */
    int32_t scanned;     /* 1: the gradients were looked at before the first write */
    int64_t bad_param;   /* first parameter with a value that made the step stop, counted over all */
    int64_t bad_element; /*   groups in order, and the element in it (of this process); -1: none
                              here */
    double grad_norm;    /* over all tensors, after grad_scale; NaN if not scanned */
    double clip;         /* factor of max_grad_norm, of the first group; 1 if off */
} largo_outcome;

/* LARGO_ERR_STATE: no step was made yet. */
largo_status largo_last_outcome(const largo_ctx *ctx, largo_outcome *outcome);

/* ---- 6. Optimizer object --------------------------------------------------------------------- */

/* Owns state and step counts, holds groups. Same arithmetic as largo_step, planned once. */
typedef struct largo_optim largo_optim;

largo_status largo_optim_create(largo_ctx *ctx, largo_optim **optim);
void largo_optim_destroy(largo_optim *optim);

/* Add n parameters that share hyper-parameters; *group (may be NULL) counts from 0. State slots
 * that are NULL are allocated and zeroed here, others are borrowed; the same for param.step.
 * Groups may use different algorithms. Errors as largo_step; the object is then as it was. */
largo_status largo_optim_add_group(largo_optim *optim, const largo_hyper *hyper, size_t n,
                                   const largo_param params[], size_t *group);

/* The group's hyper-parameters, to read or change between steps: largo_optim_hyper(o, 0)->lr = 0.1;
 * changes are checked by the next step; the algorithm may not change. NULL if there is no such
 * group. */
largo_hyper *largo_optim_hyper(largo_optim *optim, size_t group);

/* New addresses for a group, in the order it was added: value and grad come from params[], state
 * and step too where they were borrowed. Shapes, segments and types must be as before; flags may
 * change. Needed only when memory has moved, or to skip a parameter (grad.data NULL) or bring it
 * back. */
largo_status largo_optim_rebind(largo_optim *optim, size_t group, size_t n,
                                const largo_param params[]);

/* One step over all groups. Errors as largo_step. After a reduction that failed, or a step by rounds
 * that was abandoned, in the middle of writing: LARGO_ERR_STATE from then on. */
largo_status largo_optim_step(largo_optim *optim);

/* The same in rounds; as largo_step_round. */
largo_status largo_optim_step_round(largo_optim *optim, int32_t round, largo_reduction *reduction);

/* Steps applied so far (skipped ones do not count), and those of one parameter. -1 if there is no
 * such parameter. */
int64_t largo_optim_step_count(const largo_optim *optim);
int64_t largo_optim_param_step(const largo_optim *optim, size_t group, size_t index);

/* A view of one state slot, for inspection or a framework's state_dict. Its data is NULL where there
 * is none: of an empty parameter, or one that was always frozen. */
largo_status largo_optim_slot(largo_optim *optim, size_t group, size_t index, const char *name,
                              largo_tensor *view);

/* ---- 7. Learning-rate schedule --------------------------------------------------------------- */

typedef enum largo_decay {
    LARGO_DECAY_CONSTANT = 1,
    LARGO_DECAY_LINEAR = 2,     /* POLYNOMIAL with power 1: LAMB for BERT */
    LARGO_DECAY_COSINE = 3,     /* Loshchilov & Hutter, ICLR 2017, without restarts */
    LARGO_DECAY_POLYNOMIAL = 4, /* power 2: LARS */
    LARGO_DECAY_MULTI_STEP = 5  /* by a factor after each milestone: Goyal et al., 2017 */
} largo_decay;

/* Bits of largo_schedule.flags. */
#define LARGO_SCHEDULE_ZERO_BASED 1u       /* t = step - 1: the first rate is start_lr */
#define LARGO_SCHEDULE_DECAY_FROM_START 2u /* p = t / total: warm-up hides the decay's beginning;
                                              LINEAR, COSINE, POLYNOMIAL */

/* With t the step, counting from 1, and p = (t - warmup) / (total - warmup) clamped to [0, 1]:
 *
 *   t < warmup    start_lr + (lr - start_lr) t / warmup
 *   t = warmup    lr
 *   CONSTANT      lr
 *   LINEAR        end_lr + (lr - end_lr) (1 - p)
 *   COSINE        end_lr + (lr - end_lr) (1 + cos(pi p)) / 2
 *   POLYNOMIAL    end_lr + (lr - end_lr) (1 - p)^power
 *   MULTI_STEP    lr gamma^(how many milestones are < t)
 *
 * where total <= warmup means p = 1. Every machine gives the same bits: no function of the C library
 * is used. (1 - p)^power is right to 1e-15 (1 + power) for power <= 64, to 1e-12 beyond. A field
 * that a schedule does not use must be 0 (NULL). docs/schedules.md has the schedules of papers. */
typedef struct largo_schedule {
    size_t struct_size;
    largo_decay decay; /* default CONSTANT */
    uint32_t flags;    /* LARGO_SCHEDULE_* */
    double lr;         /* >= 0, finite: after warm-up */
    double start_lr;   /* >= 0, finite; with warmup > 0 */
    double end_lr;     /* >= 0, finite: at and after step `total`; with total one more than the steps
                          that are made, the last of them still moves where end_lr is 0. LINEAR,
                          COSINE, POLYNOMIAL */
    int64_t warmup;    /* >= 0: steps of linear rise */
    int64_t total;     /* >= 0; LINEAR, COSINE, POLYNOMIAL */
    double power;      /* > 0, finite; POLYNOMIAL */
    double gamma;      /* > 0, <= 1; MULTI_STEP */
    const int64_t *milestones; /* [n_milestones] steps, >= 1, rising; MULTI_STEP */
    size_t n_milestones;       /* >= 1; MULTI_STEP */
} largo_schedule;

#define LARGO_SCHEDULE                                                                             \
    {sizeof(largo_schedule), LARGO_DECAY_CONSTANT, 0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0.0, 0, 0}

/* The learning rate of a step (>= 1). Pure; any thread. */
largo_status largo_schedule_lr(const largo_schedule *schedule, int64_t step, double *lr);

/* From now on largo_optim_step sets the group's lr itself, from the number of the step that it
 * makes, whatever it was before; the field then holds the rate of the last step that was tried. The
 * group keeps a copy of the milestones. NULL: by hand again. LARGO_ERR_MEMORY leaves the schedule
 * before. */
largo_status largo_optim_set_schedule(largo_optim *optim, size_t group,
                                      const largo_schedule *schedule);

/* How a rate that was found at one batch follows to another; k = batch / base_batch. */
typedef enum largo_scaling {
    LARGO_SCALING_NONE = 1,   /* lr0 */
    LARGO_SCALING_LINEAR = 2, /* lr0 k; Goyal et al., 2017 */
    LARGO_SCALING_SQRT = 3    /* lr0 sqrt(k); LAMB */
} largo_scaling;

/* lr0 >= 0; base_batch and batch >= 1, in any one unit (samples, tokens). The result must be finite
 * as a float. Pure; any thread; the same bits everywhere. */
largo_status largo_lr_scale(largo_scaling rule, double lr0, int64_t base_batch, int64_t batch,
                            double *lr);

/* LEGW (You et al., SC 2019): the peak by the square root, epochs of warm-up by k. */
typedef struct largo_legw {
    double lr;            /* lr0 sqrt(k) */
    double warmup_epochs; /* warmup_epochs0 k */
    int64_t warmup;       /* warmup_epochs (samples / batch) steps, to the nearest, halves up */
} largo_legw;

/* lr0 and batches as above; warmup_epochs0 >= 0 and finite, at base_batch; samples of an epoch >= 1,
 * in the unit of the batches: those used, where a last partial batch is dropped. Fewer than 2^63
 * steps must come out. Pure; any thread; the same bits everywhere. */
largo_status largo_legw_scale(double lr0, double warmup_epochs0, int64_t samples,
                              int64_t base_batch, int64_t batch, largo_legw *scaled);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif /* LARGO_H */
