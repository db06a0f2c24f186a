#!/usr/bin/env bash
# labels: package
# A program that loads the shared library, and the same one built with -ffast-math, which starts with
# subnormals flushed: loading, a context and steps leave the floating-point control, the number of
# threads and the environment as they were, and both get the same bits (H71). The other half of H66, no
# wide instructions and no constructors, is in isa_objects and symbols.
#
#   guest_control_test.sh SOURCE_DIR BUILD_DIR C_COMPILER
set -euo pipefail
source=$1 build=$2 cc=$3
export OMP_WAIT_POLICY=passive

fail() { echo "FAILED: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }

grep -q '^LARGO_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" ||
    skip "a sanitizer makes threads and changes the environment"
case $("$cc" -dumpmachine) in
x86_64*) ;;
*) skip "MXCSR is the control of x86-64" ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# host NAME FLAGS...: builds it; run NAME LIBRARY: what it prints.
host()
{
    local name=$1
    shift
    "$cc" -O2 -Wall -Wextra -Werror "$@" -I"$source/include" "$source/tests/guest/control.c" \
        -o "$work/$name" -ldl || fail "$cc $*"
}
run() { timeout 120 "$work/$1" "$2" 2>&1; }

host plain
host fast -ffast-math
plain=$(run plain "$build/liblargo.so") || fail "the plain host: $plain"
fast=$(run fast "$build/liblargo.so") || fail "the host built with -ffast-math: $fast"
[ "${plain% *}" = 1f80 ] || fail "the plain host starts with MXCSR ${plain% *}, not 1f80"
[ "${fast% *}" = 9fc0 ] || fail "the host built with -ffast-math starts with MXCSR ${fast% *}, not 9fc0"
[ "${plain#* }" = "${fast#* }" ] || fail "other bits: $plain and $fast"

# The checks can fail: a library that flushes, makes a thread and sets a variable when it is loaded.
cat >"$work/planted.c" <<'P'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <xmmintrin.h>
static void *sleeps(void *unused) { pause(); return unused; }
__attribute__((constructor)) static void begin(void)
{
    if (PLANTED == 1) _mm_setcsr(_mm_getcsr() | 0x8040);
    if (PLANTED == 2) setenv("PLANTED", "1", 1);
    pthread_t thread;
    if (PLANTED == 3) pthread_create(&thread, NULL, sleeps, NULL);
}
P
planted=(- "MXCSR was" "the environment changed" "2 after dlopen")
for i in 1 2 3; do
    "$cc" -shared -fPIC -DPLANTED=$i "$work/planted.c" -o "$work/planted.so" -fopenmp -pthread \
        -Wl,--whole-archive "$build/liblargo.a" -Wl,--no-whole-archive -lm || fail "planted $i"
    found=$(run plain "$work/planted.so") && fail "planted $i is not found"
    grep -q "${planted[i]}" <<<"$found" || fail "planted $i is found as: $found"
done
echo "MXCSR ${plain% *} and ${fast% *}, hash ${plain#* }"
