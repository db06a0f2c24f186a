/* labels: short
 * abi_test.c - what a program compiled against this header and a library built from it must agree on:
 * sizes and places of public structs, values of enumerators, the version. Measured on LP64; a change
 * of a number here breaks programs that are already compiled. */
#include <string.h>
#include "support.h"

#if defined(__LP64__)

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define PLACE(type, field, bytes)                                                                  \
    _Static_assert(offsetof(type, field) == (bytes), "place of " #type "." #field)

SIZE(largo_status, 4);

SIZE(largo_tensor, 64);
PLACE(largo_tensor, data, 0);
PLACE(largo_tensor, dtype, 8);
PLACE(largo_tensor, ndim, 12);
PLACE(largo_tensor, shape, 16);

SIZE(largo_param, 256);
PLACE(largo_param, value, 0);
PLACE(largo_param, grad, 64);
PLACE(largo_param, state, 128);
PLACE(largo_param, segments, 192);
PLACE(largo_param, flags, 196);
PLACE(largo_param, id, 200);
PLACE(largo_param, pad, 204);
PLACE(largo_param, step, 208);
PLACE(largo_param, shard, 216);
PLACE(largo_param, stats, 224);
PLACE(largo_param, reserved, 232);

SIZE(largo_ctx_options, 88);
PLACE(largo_ctx_options, struct_size, 0);
PLACE(largo_ctx_options, backend, 8);
PLACE(largo_ctx_options, device, 12);
PLACE(largo_ctx_options, threads, 16);
PLACE(largo_ctx_options, stream, 24);
PLACE(largo_ctx_options, parallel, 32);
PLACE(largo_ctx_options, parallel_user, 40);
PLACE(largo_ctx_options, alloc, 48);
PLACE(largo_ctx_options, free, 56);
PLACE(largo_ctx_options, alloc_user, 64);
PLACE(largo_ctx_options, all_reduce, 72);
PLACE(largo_ctx_options, all_reduce_user, 80);

SIZE(largo_strided, 48);
PLACE(largo_strided, data, 0);
PLACE(largo_strided, byte_offset, 8);
PLACE(largo_strided, shape, 16);
PLACE(largo_strided, strides, 24);
PLACE(largo_strided, ndim, 32);
PLACE(largo_strided, device_type, 36);
PLACE(largo_strided, device_id, 40);
PLACE(largo_strided, code, 44);
PLACE(largo_strided, bits, 45);
PLACE(largo_strided, lanes, 46);

SIZE(largo_capability, 32);
PLACE(largo_capability, kind, 0);
PLACE(largo_capability, name, 8);
PLACE(largo_capability, available, 16);
PLACE(largo_capability, reserved, 20);
PLACE(largo_capability, reason, 24);

SIZE(largo_hyper, 200);
PLACE(largo_hyper, struct_size, 0);
PLACE(largo_hyper, algo, 8);
PLACE(largo_hyper, non_finite, 12);
PLACE(largo_hyper, maximize, 16);
PLACE(largo_hyper, bias_correction, 20);
PLACE(largo_hyper, nesterov, 24);
PLACE(largo_hyper, grad_averaging, 28);
PLACE(largo_hyper, l2, 32);
PLACE(largo_hyper, adapt, 36);
PLACE(largo_hyper, larc, 40);
PLACE(largo_hyper, denominator, 44);
PLACE(largo_hyper, velocity, 48);
PLACE(largo_hyper, reserved, 52);
PLACE(largo_hyper, lr, 56);
PLACE(largo_hyper, beta1, 64);
PLACE(largo_hyper, beta2, 72);
PLACE(largo_hyper, beta3, 80);
PLACE(largo_hyper, momentum, 88);
PLACE(largo_hyper, dampening, 96);
PLACE(largo_hyper, eps, 104);
PLACE(largo_hyper, eps2, 112);
PLACE(largo_hyper, weight_decay, 120);
PLACE(largo_hyper, trust_coefficient, 128);
PLACE(largo_hyper, clip_threshold, 136);
PLACE(largo_hyper, weight_norm_min, 144);
PLACE(largo_hyper, weight_norm_max, 152);
PLACE(largo_hyper, trust_ratio_min, 160);
PLACE(largo_hyper, trust_ratio_max, 168);
PLACE(largo_hyper, grad_scale, 176);
PLACE(largo_hyper, max_grad_norm, 184);
PLACE(largo_hyper, grad_factor, 192);

SIZE(largo_shard, 64);
PLACE(largo_shard, placement, 0);
PLACE(largo_shard, ndim, 4);
PLACE(largo_shard, shape, 8);
PLACE(largo_shard, offset, 56);

SIZE(largo_param_stats, 32);
PLACE(largo_param_stats, weight_norm, 0);
PLACE(largo_param_stats, update_norm, 8);
PLACE(largo_param_stats, trust_ratio, 16);
PLACE(largo_param_stats, reserved, 24);

SIZE(largo_reduction, 24);
PLACE(largo_reduction, values, 0);
PLACE(largo_reduction, n, 8);
PLACE(largo_reduction, dtype, 16);
PLACE(largo_reduction, op, 20);

SIZE(largo_slot, 80);
PLACE(largo_slot, name, 0);
PLACE(largo_slot, like, 8);
PLACE(largo_slot, bytes, 72);

SIZE(largo_outcome, 48);
PLACE(largo_outcome, struct_size, 0);
PLACE(largo_outcome, skipped, 8);
PLACE(largo_outcome, scanned, 12);
PLACE(largo_outcome, bad_param, 16);
PLACE(largo_outcome, bad_element, 24);
PLACE(largo_outcome, grad_norm, 32);
PLACE(largo_outcome, clip, 40);

SIZE(largo_schedule, 88);
PLACE(largo_schedule, struct_size, 0);
PLACE(largo_schedule, decay, 8);
PLACE(largo_schedule, flags, 12);
PLACE(largo_schedule, lr, 16);
PLACE(largo_schedule, start_lr, 24);
PLACE(largo_schedule, end_lr, 32);
PLACE(largo_schedule, warmup, 40);
PLACE(largo_schedule, total, 48);
PLACE(largo_schedule, power, 56);
PLACE(largo_schedule, gamma, 64);
PLACE(largo_schedule, milestones, 72);
PLACE(largo_schedule, n_milestones, 80);
SIZE(largo_legw, 24);
PLACE(largo_legw, lr, 0);
PLACE(largo_legw, warmup_epochs, 8);
PLACE(largo_legw, warmup, 16);

#endif

#define VALUE(name, number) _Static_assert((name) == (number), #name " is not " #number)

VALUE(LARGO_OK, 0);
VALUE(LARGO_SKIPPED, 1);
VALUE(LARGO_ERR_ARGUMENT, 2);
VALUE(LARGO_ERR_SHAPE, 3);
VALUE(LARGO_ERR_DTYPE, 4);
VALUE(LARGO_ERR_DEVICE, 5);
VALUE(LARGO_ERR_MEMORY, 6);
VALUE(LARGO_ERR_BACKEND, 7);
VALUE(LARGO_ERR_UNSUPPORTED, 8);
VALUE(LARGO_ERR_STATE, 9);
VALUE(LARGO_ERR_CALLBACK, 10);
VALUE(LARGO_ERR_NON_FINITE, 11);
VALUE(LARGO_MAX_DIMS, 6);
VALUE(LARGO_MAX_SLOTS, 8);
VALUE(LARGO_F32, 1);
VALUE(LARGO_BACKEND_AUTO, 0);
VALUE(LARGO_BACKEND_CPU, 1);
VALUE(LARGO_BACKEND_CUDA, 2);
VALUE(LARGO_SGD, 1);
VALUE(LARGO_ADAMW, 2);
VALUE(LARGO_LAMB, 4);
VALUE(LARGO_CAME, 5);
VALUE(LARGO_MERIT, 6);
VALUE(LARGO_UNSET, 0);
VALUE(LARGO_OFF, 1);
VALUE(LARGO_ON, 2);
VALUE(LARGO_ADAPT_ALWAYS, 1);
VALUE(LARGO_ADAPT_IF_DECAYED, 2);
VALUE(LARGO_ADAPT_NEVER, 3);
VALUE(LARGO_NON_FINITE_SKIP, 1);
VALUE(LARGO_NON_FINITE_ERROR, 2);
VALUE(LARGO_NON_FINITE_PROPAGATE, 3);
VALUE(LARGO_PARAM_NO_DECAY, 1u);
VALUE(LARGO_PARAM_NO_TRUST, 2u);
VALUE(LARGO_PARAM_FROZEN, 4u);
VALUE(LARGO_PARAM_GRAD_SCRATCH, 8u);
VALUE(LARGO_DECAY_CONSTANT, 1);
VALUE(LARGO_DECAY_LINEAR, 2);
VALUE(LARGO_DECAY_COSINE, 3);
VALUE(LARGO_DECAY_POLYNOMIAL, 4);
VALUE(LARGO_DECAY_MULTI_STEP, 5);
VALUE(LARGO_SCHEDULE_ZERO_BASED, 1u);
VALUE(LARGO_SCHEDULE_DECAY_FROM_START, 2u);
VALUE(LARGO_SCALING_NONE, 1);
VALUE(LARGO_SCALING_LINEAR, 2);
VALUE(LARGO_SCALING_SQRT, 3);

/* package_test.sh compares it with the versions that CMake and pkg-config tell. */
static void the_library_has_the_headers_version(void **state)
{
    (void)state;
    assert_int_equal(largo_version(),
                     LARGO_VERSION_MAJOR * 10000 + LARGO_VERSION_MINOR * 100 + LARGO_VERSION_PATCH);
    assert_in_range(LARGO_VERSION_MINOR, 0, 99);
    assert_in_range(LARGO_VERSION_PATCH, 0, 99);
}

/* The list of the header and the library's tables are the same. */
static void statuses_have_their_names(void **state)
{
    (void)state;
#define CHECK(name, code, sentence)                                                                \
    assert_int_equal(name, code);                                                                  \
    assert_string_equal(largo_status_name(name), #name);                                           \
    assert_string_equal(largo_status_sentence(name), sentence);
    LARGO_STATUS_LIST(CHECK)
#undef CHECK
    assert_string_equal(largo_status_name((largo_status)12), "LARGO_ERR_UNKNOWN");
    assert_non_null(largo_status_sentence((largo_status)12));
}

/* Initializers say the size of the struct that this program knows. */
static void initializers_set_the_size(void **state)
{
    (void)state;
    const largo_ctx_options options = LARGO_CTX_OPTIONS;
    const largo_schedule schedule = LARGO_SCHEDULE;
    largo_hyper hyper;
    memset(&hyper, 0x5a, sizeof hyper);
    assert_ok(largo_hyper_init(&hyper, LARGO_LAMB));
    assert_int_equal(options.struct_size, sizeof options);
    assert_int_equal(schedule.struct_size, sizeof schedule);
    assert_int_equal(hyper.struct_size, sizeof hyper);
    assert_int_equal(hyper.algo, LARGO_LAMB);
}

/* What largo_param_f32 does not set is zero: reserved words can get a meaning later. */
static void reserved_words_are_zero(void **state)
{
    (void)state;
    float value, grad;
    const largo_param p = largo_param_f32(&value, &grad, 1, 1);
    const unsigned char *bytes = (const unsigned char *)&p;
    for (size_t i = offsetof(largo_param, state); i < sizeof p; i++) assert_int_equal(bytes[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_has_the_headers_version),
        cmocka_unit_test(statuses_have_their_names),
        cmocka_unit_test(initializers_set_the_size),
        cmocka_unit_test(reserved_words_are_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
