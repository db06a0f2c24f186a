#!/bin/sh
# Builds the benchmarks and prints the tables of docs/performance.md: whole steps on all lists.
#
#   bench/run.sh                 a few minutes on a quiet machine with two cores
#   bench/run.sh --quick         few rounds, only to see that it works
#   bench/run.sh --write         also appends to bench/results/<processor>.csv
#   bench/run.sh ... --threads 1 the rest goes to largo-bench-step; see its --help
#
# CC and CXX choose the compilers of a new build folder; BUILD is the folder (build/bench).
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build/bench}

write=
rounds=
while [ $# -gt 0 ]; do
    case $1 in
    --write) write=yes ;;
    --quick) rounds="--rounds 5 --drop 1" ;;
    --help | -h)
        sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' bench/run.sh
        exit 0
        ;;
    *) break ;;
    esac
    shift
done

mkdir -p "$(dirname "$build")"
generator=
[ -e "$build/CMakeCache.txt" ] || ! command -v ninja >/dev/null || generator="-G Ninja"
# shellcheck disable=SC2086  # two words
cmake -S . -B "$build" $generator -DCMAKE_BUILD_TYPE=Release -DLARGO_BENCH=ON -DLARGO_TESTS=OFF \
    -DLARGO_EXAMPLES=OFF >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" --parallel "$(nproc)" >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }

step=$build/bench/largo-bench-step
csv=
[ -z "$write" ] || mkdir -p bench/results
[ -z "$write" ] || csv="--csv bench/results/$("$step" --cpu-slug).csv"
# shellcheck disable=SC2086  # options are words
exec "$step" --list all $rounds $csv "$@"
