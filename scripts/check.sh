#!/usr/bin/env bash
# The longer checks, after scripts/test.sh: both compilers with warnings as errors, the same golden
# bits from clang, a host and a library of different compilers, valgrind, the thread sanitizer, scripts
# and oracles that parse. Half an hour at most.
#
#   scripts/check.sh
#
# As root, or with sudo for packages that are missing. The exit code is 0 if nothing failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

started=$SECONDS
failures=()
sh scripts/install-deps.sh check || exit 1
mkdir -p build

say() { printf '\n==> %s\n' "$*"; }
check()
{
    local name=$1
    shift
    say "check: $name"
    "$@" || failures+=("$name")
}

# gcc, every warning an error: the build alone, for release has run the tests.
warnings()
{
    cmake --preset dev >build/dev.log 2>&1 || { cat build/dev.log; return 1; }
    cmake --build --preset dev --parallel "$(nproc)"
}

scripts_parse()
{
    local file shell ok=0
    for file in scripts/*.sh tests/*.sh .ci/run; do
        shell="sh"
        head -n 1 "$file" | grep -q bash && shell=bash
        $shell -n "$file" || ok=1
    done
    return $ok
}

oracles_parse()
{
    local file ok=0
    for file in tests/oracle/*.py; do
        python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" || ok=1
    done
    return $ok
}

check "scripts parse" scripts_parse
check "oracles parse" oracles_parse
check "gcc without warnings" warnings
check "a host of the other compiler" ctest --preset dev -L two-compilers --no-tests=error
check "clang, valgrind, thread sanitizer" bash scripts/test.sh clang valgrind tsan

say "Summary"
for name in "${failures[@]}"; do echo "FAILED: $name"; done
echo "check.sh: ${#failures[@]} of 5 checks failed in $((SECONDS - started)) s"
[ ${#failures[@]} -eq 0 ]
