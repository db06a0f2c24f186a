#!/usr/bin/env bash
# labels: tree
# The formula headers are CUDA too: every update, term and finish hook of algos.def compiles with nvcc
# as C++17 for the device, with the flags that the bits need, and no kernel spills a register. No GPU
# is needed. Without nvcc it is a counted skip, and a failure where CI=true.
#
#   cuda_test.sh SOURCE_DIR [BUILD_DIR C_COMPILER]
set -euo pipefail
export LC_ALL=C
source=$1

nvcc=$(command -v nvcc || echo "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc")
if [ ! -x "$nvcc" ]; then
    [ "${CI:-}" != true ] || { echo "FAILED: no nvcc, and CI=true"; exit 1; }
    echo "skipped: no nvcc"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }

cat >"$work/rows.cu" <<'P'
// One kernel for each PASS row, and one for each FINISH row that has hooks.
#include "optim/all.h"
#include "core/canon.h"
#include "core/exact.h"

#define PASS(family, n, update, reads, writes, op, scope, terms, term0, term1)                     \
    extern "C" __global__ void pass_##family##_##n(largo__elem *x, const largo__k *k, float *term) \
    {                                                                                              \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                       \
        largo__elem e = x[i];                                                                      \
        const largo__k constants = *k;                                                             \
        update(&e, &constants);                                                                    \
        if (terms > 0) term[2 * i] = term0(&e, &constants);                                        \
        if (terms > 1) term[2 * i + 1] = term1(&e, &constants);                                    \
        x[i] = e;                                                                                  \
    }
#include "optim/algos.def"

// A hook, or 0 for none.
template <auto hook> struct line {
    __device__ static void run(const double stat[2], double count, const largo__d *d, float *state,
                               float *out)
    {
        *out = hook(stat, count, d, state);
    }
};
template <> struct line<0> {
    __device__ static void run(const double *, double, const largo__d *, float *, float *) {}
};
template <auto hook> struct matrix {
    __device__ static void run(double mean, float seg[2]) { hook(mean, seg); }
};
template <> struct matrix<0> {
    __device__ static void run(double, float *) {}
};
template <auto hook> struct segment {
    __device__ static void run(const double sum[2], double count, const largo__d *d, float seg[4])
    {
        hook(sum, count, d, seg);
    }
};
template <> struct segment<0> {
    __device__ static void run(const double *, double, const largo__d *, float *) {}
};

#define FINISH(family, n, line_hook, row_slot, col_slot, matrix_hook, segment_hook)                \
    extern "C" __global__ void finish_##family##_##n(const double *sum, const double *count,       \
                                                     const largo__d *d, float *state, float *out)  \
    {                                                                                              \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                       \
        line<line_hook>::run(sum + 2 * i, count[i], d, state + i, out + 5 * i);                     \
        matrix<matrix_hook>::run(sum[i] / count[i], out + 5 * i + 1);                              \
        segment<segment_hook>::run(sum + 2 * i, count[i], d, out + 5 * i + 1);                     \
    }
#include "optim/algos.def"

// The canonical tree and the exact sum are device code as well.
extern "C" __global__ void canonical(double *lane, largo__exact *sum, double *out)
{
    const double x = largo__tree(lane, LARGO__LANES);
    if (!largo__needs_second_look(x)) largo__exact_add(sum, x);
    largo__exact_normalise(sum);
    *out = x;
}
P

rows=$(grep -c -E '^PASS\(' "$source/optim/algos.def")
hooks=$(grep -c -E '^FINISH\(' "$source/optim/algos.def")
if [ "$rows" -lt 10 ] || [ "$hooks" -lt 5 ]; then fail "the rows of algos.def are not found"; fi
for arch in 80 90; do
    "$nvcc" -std=c++17 -O3 -arch=sm_$arch -cubin -o "$work/rows.cubin" "$work/rows.cu" -I "$source" \
        -I "$source/include" -fmad=false -prec-div=true -prec-sqrt=true -ftz=false \
        -Xptxas -v -Werror all-warnings >"$work/log" 2>&1 || { cat "$work/log"; fail "nvcc, sm_$arch"; }
    for kind in "pass $rows" "finish $hooks" "canonical 1"; do
        read -r name wanted <<<"$kind"
        found=$(grep -c "Compiling entry function '$name" "$work/log")
        [ "$found" -eq "$wanted" ] || fail "sm_$arch: $found kernels of $name, not $wanted"
    done
    # ptxas tells of each kernel its stack and its spills, then its registers.
    spills=$(awk '
        /Compiling entry function/ { name = $7 }
        /bytes stack frame/ && !/ 0 bytes spill stores, 0 bytes spill loads/ { print name ": " $0 }' \
        "$work/log")
    [ -z "$spills" ] || fail "sm_$arch: registers are spilled: $spills"
    [ "$(grep -c 'bytes spill stores' "$work/log")" -ge $((rows + hooks + 1)) ] ||
        fail "sm_$arch: ptxas does not tell of spills"
    most=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$work/log" | sort -n | tail -n 1)
    echo "sm_$arch: $rows passes and $hooks hooks compile, at most $most registers, no spills"
done
