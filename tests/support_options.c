/* support_options.c - see support_options.h. */
#include "support_options.h"

largo_hyper test_option_hyper(const test_option *option)
{
    largo_hyper h;
    assert_ok(largo_hyper_init(&h, option->algo));
    h.lr = 0.01;
    test_hyper_set(&h, option->set);
    return h;
}
