#!/bin/sh
# From a bare Debian 12 to a table and a picture: AdamW and LAMB on Fashion-MNIST, at batch 256 and
# 8192, three seeds each. A few minutes on two cores.
#
#   scripts/demo.sh        as root, or with sudo for the packages that are missing
set -eu
cd "$(dirname "$0")/.."
build=build/demo

say() { printf '\n==> %s\n' "$*"; }

sh scripts/install-deps.sh demo

say "Building in $build"
generator=
[ -e $build/CMakeCache.txt ] || ! command -v ninja >/dev/null || generator="-G Ninja"
# shellcheck disable=SC2086
cmake -S . -B $build $generator -DCMAKE_BUILD_TYPE=Release -DLARGO_TESTS=OFF -DLARGO_EXAMPLES=ON
cmake --build $build --parallel "$(nproc)"

# Threads that spin while they wait lose several times their work if anything else is running.
export OMP_WAIT_POLICY="${OMP_WAIT_POLICY:-passive}"

say "Training"
$build/examples/largo-train --compare --optimizer adamw,lamb --epochs 12 --seeds 3 \
    --csv $build/compare.csv
gnuplot -c examples/plot_compare.gp $build/compare.csv $build/compare.png

say "Accuracy of each epoch: $build/compare.csv, as a picture: $build/compare.png"
