#define _POSIX_C_SOURCE 200809L /* sigaction */
#include "interrupt.h"

#include <signal.h>

static volatile sig_atomic_t caught;

static void note(int signal_number)
{
    (void)signal_number;
    caught = 1;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, 0);
}

bool interrupted(void)
{
    return caught != 0;
}
