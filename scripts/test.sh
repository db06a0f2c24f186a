#!/usr/bin/env bash
# From a bare Debian 12 to a tested largo: installs what is missing, builds, runs every test, sums up.
#
#   scripts/test.sh              release, then with the address and undefined-behaviour sanitizers,
#                                then AArch64 under an emulator
#   scripts/test.sh PRESET...    these presets of CMakePresets.json instead
#
# As root, or with sudo for packages that are missing; else neither root nor network is needed. Builds
# in build/PRESET. The exit code is 0 if nothing failed. A skipped test is counted and told with its
# reason; with CI=true the CUDA tests are not skipped but fail.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

presets=("$@")
[ $# -gt 0 ] || presets=(release asan-ubsan aarch64)
jobs=$(nproc)
started=$SECONDS
passed=0 failed=0 skipped=0
lines=()

sh scripts/install-deps.sh test || exit 1

say() { printf '\n==> %s\n' "$*"; }

# count ATTRIBUTE FILE: of the first element of a JUnit file.
count() { sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -n 1; }

# told FILE: of each test in a JUnit file that failed or was skipped, a line with the reason.
told()
{
    awk '
        /<testcase / {
            name = $0; sub(/.*<testcase name="/, "", name); sub(/".*/, "", name)
            state = ""; reason = ""
        }
        /<failure/ { state = "FAILED" }
        /<skipped/ { state = "skipped" }
        /skipped: / { reason = $0; sub(/.*skipped: /, ": ", reason) }
        /<\/testcase>/ && state { print "    " state " " name (state == "skipped" ? reason : "") }
    ' "$1"
}

# configure PRESET
configure()
{
    local generator=()
    if [ ! -e "build/$1/CMakeCache.txt" ] && [ -z "${CMAKE_GENERATOR:-}" ] &&
        command -v ninja >/dev/null; then
        generator=(-G Ninja)
    fi
    cmake --preset "$1" "${generator[@]}" >"build/$1.log" 2>&1 || { cat "build/$1.log"; return 1; }
}

# broken TEXT: a preset that does not come to its tests.
broken()
{
    failed=$((failed + 1))
    lines+=("$1")
}

# suite PRESET: build and test, and count.
suite()
{
    local report=$PWD/build/$1.xml code all bad left since=$SECONDS
    rm -f "$report"
    if [ "$1" = aarch64 ] && [ "$(uname -m)" != x86_64 ]; then
        skipped=$((skipped + 1))
        lines+=("aarch64: skipped: cross-compiled from x86-64 only")
        return
    fi
    say "$1: building"
    if [ "$1" = aarch64 ]; then
        sh scripts/arm-libraries.sh || { broken "$1: no libraries for its tests: FAILED"; return; }
    fi
    configure "$1" || { broken "$1: cmake FAILED"; return; }
    if ctest --preset "$1" -N | grep -qx 'Total Tests: 0'; then
        broken "$1: there are no tests: FAILED"
        return
    fi
    cmake --build --preset "$1" --parallel "$jobs" || { broken "$1: the build FAILED"; return; }
    say "$1: testing"
    ctest --preset "$1" --parallel "$jobs" --output-junit "$report"
    code=$?
    [ -e "$report" ] || { broken "$1: ctest FAILED with exit code $code"; return; }
    all=$(count tests "$report") bad=$(count failures "$report") left=$(count skipped "$report")
    if [ $code -ne 0 ] && [ "$bad" -eq 0 ]; then bad=1; fi
    passed=$((passed + all - bad - left))
    failed=$((failed + bad))
    skipped=$((skipped + left))
    lines+=("$1: $((all - bad - left)) passed, $bad failed, $left skipped, $((SECONDS - since)) s")
    while IFS= read -r line; do lines+=("$line"); done < <(told "$report")
}

mkdir -p build
for preset in "${presets[@]}"; do suite "$preset"; done

say "Summary"
printf '%s\n' "${lines[@]}"
echo "test.sh: $passed passed, $failed failed, $skipped skipped in $((SECONDS - started)) s"
[ $failed -eq 0 ]
