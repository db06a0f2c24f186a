/* consumer.c - a user's program: a step of LAMB with state of its own. C and C++. Prints the
 * version it was compiled with and the one it runs with; exit code 0 if both and the result are
 * right. */
#include <stdio.h>
#include <largo.h>

int main(void)
{
    largo_ctx *ctx = NULL;
    largo_ctx_options options = LARGO_CTX_OPTIONS;
    options.threads = 2;
    if (largo_failed(largo_ctx_create(&options, &ctx))) {
        fprintf(stderr, "%s\n", largo_last_error());
        return 1;
    }
    float value[4] = {1, -2, 3, -4}, exp_avg[4] = {0}, exp_avg_sq[4] = {0};
    const float grad[4] = {0.1f, -0.2f, 0.3f, 0.4f};
    const double want[4] = {0.7248762452, -1.7221508587, 2.7194263802, -4.2615056751};
    largo_hyper hyper;
    largo_param param = largo_param_f32(value, grad, 4, 1);
    param.state[0] = exp_avg;
    param.state[1] = exp_avg_sq;
    largo_status status = largo_hyper_init(&hyper, LARGO_LAMB);
    hyper.lr = 0.1;
    if (!largo_failed(status)) status = largo_step(ctx, &hyper, 1, 1, &param);
    if (largo_failed(status)) {
        fprintf(stderr, "%s\n", largo_last_error());
        return 1;
    }
    largo_ctx_destroy(ctx);
    for (int i = 0; i < 4; i++) {
        const double off = (double)value[i] - want[i];
        if (!(off < 1e-6 && off > -1e-6)) {
            fprintf(stderr, "value[%d] is %.9g, not %.9g\n", i, (double)value[i], want[i]);
            return 1;
        }
    }
    printf("%d.%d.%d %d\n", LARGO_VERSION_MAJOR, LARGO_VERSION_MINOR, LARGO_VERSION_PATCH,
           largo_version());
    return largo_version() !=
           LARGO_VERSION_MAJOR * 10000 + LARGO_VERSION_MINOR * 100 + LARGO_VERSION_PATCH;
}
