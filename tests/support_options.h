/* support_options.h - options that lead to every family of kernels, for tests that walk over all. A row
 * added to optim/algos.def needs one here; bits_test.c says so. */
#ifndef LARGO_TESTS_SUPPORT_OPTIONS_H
#define LARGO_TESTS_SUPPORT_OPTIONS_H

#include "support.h"

typedef struct test_option {
    const char *name;
    largo_algo algo;
    uint32_t flags;
    const char *set; /* field=value, for largo_hyper_set */
} test_option;

static const test_option test_options[] = {
    {"sgd", LARGO_SGD, 0, "weight_decay=0.01"},
    {"sgd_momentum", LARGO_SGD, 0, "momentum=0.9 dampening=0.1 weight_decay=0.01"},
    {"sgd_nesterov", LARGO_SGD, 0, "momentum=0.9 nesterov=1 weight_decay=0.01"},
    {"sgd_nesterov/maximize", LARGO_SGD, 0, "momentum=0.8 nesterov=1 maximize=1 max_grad_norm=3"},
    {"adamw", LARGO_ADAMW, 0, ""},
    {"adamw/no_bias_correction", LARGO_ADAMW, 0, "bias_correction=0 beta2=0.99"},
    {"adamw/scaled", LARGO_ADAMW, 0, "grad_scale=0.3 maximize=1"},
    {"adamw/no_decay", LARGO_ADAMW, LARGO_PARAM_NO_DECAY, "weight_decay=0.1"},
    {"adamw/unscanned", LARGO_ADAMW, 0, "non_finite=3 beta1=0 eps=1e-30"},
    {"lamb", LARGO_LAMB, 0, ""},
    {"lamb/if_decayed", LARGO_LAMB, 0, "adapt=2 weight_decay=0.1"},
    {"lamb/if_decayed_without", LARGO_LAMB, 0, "adapt=2 weight_decay=0"},
    {"lamb/never", LARGO_LAMB, 0, "adapt=3"},
    {"lamb/no_grad_averaging", LARGO_LAMB, 0, "grad_averaging=0 bias_correction=0"},
    {"lamb/clip", LARGO_LAMB, 0, "max_grad_norm=1 grad_scale=0.25"},
    {"lamb/bounds", LARGO_LAMB, 0,
     "weight_norm_min=0.5 weight_norm_max=10 trust_ratio_min=0.1 trust_ratio_max=3"},
    {"lamb/no_decay", LARGO_LAMB, LARGO_PARAM_NO_DECAY, "weight_decay=0.1"},
    {"lamb/no_trust", LARGO_LAMB, LARGO_PARAM_NO_TRUST, "weight_decay=0.1"},
    {"lamb/no_decay_no_trust", LARGO_LAMB, LARGO_PARAM_NO_DECAY | LARGO_PARAM_NO_TRUST, ""},
    {"lamb_l2", LARGO_LAMB, 0, "l2=1 weight_decay=0.1 grad_scale=0.5"},
    {"lamb_l2/never", LARGO_LAMB, 0, "l2=1 adapt=3 weight_decay=0.1"},
    {"lars", LARGO_LARS, 0, "weight_decay=1e-4"},
    {"lars/nesterov_larc", LARGO_LARS, 0, "nesterov=1 larc=1 lr=0.01 weight_decay=0.01 eps=1e-8"},
    {"lars/ratio", LARGO_LARS, 0, "velocity=2 adapt=2 weight_decay=0.01 grad_scale=0.25"},
    {"lars/grad_clamp", LARGO_LARS, 0, "velocity=3 clip_threshold=0.3 trust_ratio_max=50"},
    {"lars_decayed", LARGO_LARS, 0, "denominator=2 weight_decay=0.1 max_grad_norm=1"},
    {"lars_update", LARGO_LARS, 0, "denominator=3 velocity=3 nesterov=1 weight_decay=0.1"},
    {"lars/no_trust", LARGO_LARS, LARGO_PARAM_NO_TRUST, "weight_decay=0.1"},
    {"lars0", LARGO_LARS, 0, "momentum=0 weight_decay=0.1"},
    {"lars0_decayed", LARGO_LARS, 0, "momentum=0 denominator=2 weight_decay=0.1"},
    {"lars0_update", LARGO_LARS, 0, "momentum=0 denominator=3 velocity=3 clip_threshold=0.3"},
    {"lars0/never", LARGO_LARS, 0, "momentum=0 adapt=3 weight_decay=0.1"},
    {"came", LARGO_CAME, 0, ""},
    {"came/decay", LARGO_CAME, 0, "weight_decay=0.1 clip_threshold=0.3 max_grad_norm=1"},
    {"merit", LARGO_MERIT, 0, ""},
    {"merit/decay", LARGO_MERIT, 0, "weight_decay=0.1 clip_threshold=0.3 max_grad_norm=1"},
};
enum { TEST_OPTIONS = sizeof test_options / sizeof *test_options };

largo_hyper test_option_hyper(const test_option *option);

#endif
