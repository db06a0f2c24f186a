#!/bin/sh
# Installs what is missing of the Debian packages that largo's scripts need. Where nothing is missing
# it asks nobody: no root, no network.
#
#   install-deps.sh build|demo|test|check ...     as root, or with sudo
#   install-deps.sh --list demo ...               only say what is missing
#
#   build   compiler and CMake          test    + what the tests use
#   demo    build + scripts/demo.sh     check   test + scripts/check.sh
set -eu

stop() { echo "install-deps.sh: $*" >&2; exit 1; }

# Programs count wherever they come from; libraries and data have to be the packages.
program() { command -v "$1" >/dev/null || echo "${2:-$1}"; }
package()
{
    for name in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$name" 2>/dev/null | grep -qx installed ||
            echo "$name"
    done
}

build()
{
    program cmake
    command -v ninja >/dev/null || command -v make >/dev/null || echo ninja-build
    program "${CC:-cc}" gcc
    package libc6-dev
}
examples() { package libblis-dev zlib1g-dev dataset-fashion-mnist; }
tests()
{
    program "${CXX:-c++}" g++
    program pkg-config
    program readelf binutils
    program python3
    package libcmocka-dev libcjson-dev libxxhash-dev librandom123-dev libdlpack-dev
    package libopenmpi-dev openmpi-bin
}
# AArch64 on another machine: cross compiler and emulator. The libraries of its tests are unpacked by
# arm-libraries.sh.
arm()
{
    [ "$(uname -m)" = x86_64 ] || return 0
    program aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    program qemu-aarch64 qemu-user
    package libc6-dev-arm64-cross
}
missing()
{
    for what in "$@"; do
        case $what in
        build) build ;;
        demo) build; examples; program gnuplot gnuplot-nox ;;
        test) build; examples; tests; arm ;;
        check)
            build; examples; tests; arm
            program clang
            package libomp-dev
            program valgrind
            program shellcheck
            ;;
        esac
    done | sort -u
}

list=no
if [ "${1:-}" = --list ]; then
    list=yes
    shift
fi
[ $# -gt 0 ] || stop "say what for: build, demo, test or check"
for what in "$@"; do
    case $what in
    build | demo | test | check) ;;
    *) stop "knows build, demo, test and check, not $what" ;;
    esac
done
if ! command -v dpkg-query >/dev/null; then
    echo "install-deps.sh: not a Debian system; going on with what is here (docs/dependencies.md)" >&2
    exit 0
fi

packages=$(missing "$@" | tr '\n' ' ')
[ -n "$packages" ] || exit 0
if [ $list = yes ]; then
    echo "$packages"
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    stop "only root can install packages, and there is no sudo: apt-get install $packages"
fi
echo "==> Installing $packages"
# shellcheck disable=SC2086  # one word for each package
{
    $as_root apt-get update -q || echo "install-deps.sh: no new list of packages; trying the old" >&2
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
        $packages || stop "apt-get could not install: $packages"
}
