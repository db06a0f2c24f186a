#!/bin/sh
# Unpacks the AArch64 copies of the libraries that the tests need into build/aarch64-libraries, from
# Debian's packages. Nothing is installed: a machine that is told of a second architecture would be
# upgraded with it. Needs the network once, and no root.
set -eu
cd "$(dirname "$0")/.."

target=$PWD/build/aarch64-libraries
packages="libcmocka0 libcmocka-dev libcjson1 libcjson-dev libxxhash-dev librandom123-dev libdlpack-dev"
[ "$(cat "$target/complete" 2>/dev/null)" != "$packages" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/packages"

# apt as it would be on an AArch64 machine with nothing installed.
arm_apt()
{
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
        -o Dir::State="$work" -o Dir::State::Lists="$work/lists" -o Dir::State::status=/dev/null \
        -o Dir::Cache="$work/cache" -o APT::Sandbox::User= "$@"
}

arm_apt update >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
# shellcheck disable=SC2086  # one word for each package
(cd "$work/packages" && arm_apt download $packages) >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; exit 1; }
rm -rf "$target"
mkdir -p "$target"
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$target"; done
echo "$packages" >"$target/complete"
