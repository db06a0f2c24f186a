/* fpenv.c - read and set the floating-point control register; see fpenv.h. */
#include "fpenv.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { CONTROL = 0x1f80 }; /* all exceptions masked, nearest, FTZ and DAZ off */

static uint64_t get(void)
{
    return _mm_getcsr();
}
static void set(uint64_t control)
{
    _mm_setcsr((unsigned)control);
}
#elif defined(__aarch64__)
enum { CONTROL = 0 }; /* nearest, FZ off, no traps */

static uint64_t get(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
static void set(uint64_t control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}
#else
#error "largo needs the floating-point control register of this processor: add it here"
#endif

largo__fpenv largo__fpenv_enter(void)
{
    const largo__fpenv previous = {get()};
    set(CONTROL);
    return previous;
}

void largo__fpenv_leave(largo__fpenv previous)
{
    set(previous.control);
}
