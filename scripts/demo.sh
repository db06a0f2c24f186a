#!/bin/sh
# From a bare Debian 12 to a table and a picture: AdamW and LAMB on Fashion-MNIST, at batch 256 and
# 8192, three seeds each. A few minutes on two cores.
#
#   scripts/demo.sh        as root, or with sudo for the packages that are missing
set -eu
cd "$(dirname "$0")/.."
build=build/release

say() { printf '\n==> %s\n' "$*"; }
stop() { echo "demo.sh: $*" >&2; exit 1; }

installed()
{
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Programs count wherever they come from; libraries and data have to be the packages.
missing_packages()
{
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || command -v make >/dev/null || echo ninja-build
    command -v "${CC:-cc}" >/dev/null || echo gcc
    command -v gnuplot >/dev/null || echo gnuplot-nox
    for package in libc6-dev libblis-dev zlib1g-dev dataset-fashion-mnist; do
        installed "$package" || echo "$package"
    done
}

install_packages()
{
    if [ "$(id -u)" -eq 0 ]; then
        as_root=
    elif command -v sudo >/dev/null; then
        as_root=sudo
    else
        stop "needs packages that only root can install, and there is no sudo: apt-get install" "$@"
    fi
    say "Installing $*"
    $as_root apt-get update -q
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" ||
        stop "apt-get could not install: $*"
}

command -v dpkg-query >/dev/null ||
    stop "installs Debian packages; elsewhere see docs/dependencies.md and build with cmake"
missing=$(missing_packages | tr '\n' ' ')
# shellcheck disable=SC2086  # one word for each package
[ -z "$missing" ] || install_packages $missing

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
