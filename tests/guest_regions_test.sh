#!/usr/bin/env bash
# labels: package two-compilers
# A host built by the other compiler, gcc or clang, with OpenMP regions of its own between the steps (H69):
# with the library bound to the host's OpenMP, as the loader does it, and to its own.
#
#   guest_regions_test.sh SOURCE_DIR BUILD_DIR C_COMPILER
set -euo pipefail
source=$1 build=$2 cc=$3
export OMP_WAIT_POLICY=passive

fail() { echo "FAILED: $*"; exit 1; }
# What is not here is skipped by a developer and missed by continuous integration.
skip() { [ "${CI:-}" != true ] || fail "$*"; echo "skipped: $*"; exit 77; }

grep -q '^LARGO_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" || fail "not for a build with a sanitizer"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

other=clang own=libgomp theirs=libomp
if "$cc" --version | grep -q clang; then other=gcc own=libomp theirs=libgomp; fi
command -v $other >/dev/null || skip "no $other"
echo 'int main(void) { return 0; }' >"$work/empty.c"
$other -fopenmp "$work/empty.c" -o "$work/empty" 2>"$work/log" || skip "no OpenMP with $other"
$other -O2 -Wall -Wextra -Werror -fopenmp -I"$source/include" "$source/tests/guest/regions.c" \
    -o "$work/host" -ldl || fail "$other"
readelf -d "$work/host" | grep -q "NEEDED.*$theirs" || fail "the host does not need $theirs"
readelf -d "$build/liblargo.so" | grep -q "NEEDED.*$own" || fail "the library does not need $own"

printed=$(timeout 120 "$work/host" "$build/liblargo.so" 2>&1) || fail "as loaded: $printed"
deep=$(timeout 120 "$work/host" "$build/liblargo.so" deep 2>&1) || fail "bound to $own: $deep"
[ "${deep% *}" = 3 ] || fail "bound to $own: ${deep% *} threads, not one of each OpenMP and the host's"
[ "${printed#* }" = "${deep#* }" ] || fail "other bits: $printed and $deep"
echo "a host with $theirs: ${printed% *} threads, with $own too: ${deep% *}; hash ${deep#* }"
