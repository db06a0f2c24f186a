#!/usr/bin/env bash
# labels: package
# Four MPI processes that hold parts of tensors step them to the bits of one. Without MPI it is a
# counted skip, and a failure where CI=true.
#
#   examples_mpi_test.sh SOURCE_DIR BUILD_DIR [C_COMPILER]
set -euo pipefail
build=$2
program=$build/examples/largo-mpi-step

fail() { echo "FAILED: $*"; exit 1; }
absent()
{
    [ "${CI:-}" != true ] || fail "$*, and CI=true"
    echo "skipped: $*"
    exit 77
}

grep -q '^LARGO_EXAMPLES:BOOL=ON$' "$build/CMakeCache.txt" || absent "the examples are not built"
command -v mpirun >/dev/null || absent "no mpirun (openmpi-bin)"
[ -x "$program" ] || absent "no largo-mpi-step: CMake did not find MPI (libopenmpi-dev)"

# OpenMPI refuses root and more processes than processors, and looks for ssh, unless it is told.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
code=0
out=$(timeout -k 5 120 mpirun -np 4 "$program" 2>&1 </dev/null) || code=$?
echo "$out"
[ $code -eq 0 ] || fail "exit code $code"
[ "$(grep -c '^4 processes, .*: the same bits as one process$' <<<"$out")" -eq 1 ] ||
    fail "it does not say that the bits are the same"
