#!/usr/bin/env bash
# labels: tree
# The rules of the house that grep can see: includes point down, OpenMP and intrinsics stay in their
# files, the library does not print or end the program, files stay small.
#
#   layers_test.sh SOURCE_DIR [BUILD_DIR C_COMPILER]
set -u
export LC_ALL=C
cd "$1" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# none TEXT: what stands on stdin should not be there.
none()
{
    local found
    found=$(cat)
    [ -z "$found" ] && return
    printf 'FAILED: %s:\n%s\n' "$1" "$found" | tee -a "$work/failed"
}

# ---- includes ------------------------------------------------------------------------------------

# upward: of lines "file: included" on stdin, those that point up. Included is a path from the top,
# or a name in the file's own folder.
#
#   include <- core <- optim, prune <- cpu, gpu
#
# Backends see the maths headers and tables of optim and prune, and core, but not each other; optim
# and prune see no backend; what is plain C in optim stays there.
upward()
{
    awk '
        BEGIN {
            sees["include"] = ""
            sees["core"] = "include"
            sees["optim"] = sees["prune"] = "include core"
            sees["cpu"] = sees["gpu"] = "include core optim prune"
            # Plain C of optim that a backend may not see.
            split("families.h hyper.h params.h power.h schedule.h stepper.h constants.h", list, " ")
            for (i in list) private["optim/" list[i]] = 1
        }
        {
            split($1, from, "/")
            if ($2 == "largo.h" || $2 == "largo_dlpack.h") $2 = "include/" $2
            if (split($2, to, "/") == 1) next
            ok = to[1] == from[1]
            n = split(sees[from[1]], allowed, " ")
            for (i = 1; i <= n; i++) if (to[1] == allowed[i]) ok = 1
            if (from[1] ~ /^(cpu|gpu)$/ && private[$2]) ok = 0
            if (!ok) print $1 " includes " $2
        }'
}

# includes: "file: included" of every #include "..." of the library.
sources=$(find include core optim prune cpu gpu -name '*.[ch]' -o -name '*.def' -o -name '*.cu' \
    -o -name '*.cuh' | sort)
includes()
{
    # shellcheck disable=SC2086  # one word for each file
    grep -HE '^ *# *include +"' $sources |
        sed -E 's/^([^:]*):[^"]*"(\.\.\/)?([^"]*)".*/\1 \3/'
}
[ "$(includes | wc -l)" -ge 30 ] || echo "" | none "the includes are not found"
includes | upward | none "an include that points up"
includes | grep -E ' \.\.|/\.\./| /' | none "an include by a path that leaves the top folder"
includes | while read -r file name; do
    case $name in
    largo.h | largo_dlpack.h) name=include/$name ;;
    */*) ;;
    *) name=$(dirname "$file")/$name ;;
    esac
    [ -f "$name" ] || echo "$file includes $name"
done | none "an include of a file that is not there"

# Formula headers see the vocabulary, and each other.
# shellcheck disable=SC2046
grep -hE '^ *# *include' $(sed -n 's/^#include "\(.*\)"/optim\/\1/p' optim/all.h) |
    grep -v -E '"(\.\./core/elem\.h|[a-z0-9_]+\.h)"' | none "a formula header includes more than formulas"
find optim prune core -name '*.[ch]' -print0 | xargs -0 grep -nE '[^a-z_](cpu|gpu)/' |
    none "a backend's folder is named outside it"

# ---- words that have one place -------------------------------------------------------------------

# code FILES: their text without comments and strings, each line with its file and number.
code()
{
    awk '
        FNR == 1 { inside = 0 }
        {
            line = $0
            gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
            gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ", line)
            sub(/\/\/.*/, "", line)
            if (inside) { if (line ~ /\*\//) { sub(/.*\*\//, "", line); inside = 0 } else next }
            if (line ~ /\/\*/) { sub(/\/\*.*/, "", line); inside = 1 }
            if (line !~ /^[ \t]*$/) print FILENAME ":" FNR ": " line
        }' "$@"
}
# shellcheck disable=SC2086
code $sources >"$work/code"

grep -E '# *pragma omp|omp_[a-z]|<omp\.h>' "$work/code" | grep -v '^cpu/cpu\.c:' |
    none "OpenMP outside cpu/cpu.c"
grep -E 'include *<([a-z]*mmintrin|x86intrin|cpuid|arm_[a-z]*)\.h>|_mm(256|512)?_[a-z]|__builtin_ia32|__asm__' \
    "$work/code" | grep -v -E '^(core/fpenv|cpu/detect)\.c:' |
    none "intrinsics outside core/fpenv.c and cpu/detect.c"
grep -E '(^|[^a-z_])(printf|fprintf|vprintf|puts|fputs|putchar|perror|exit|_exit|abort|quick_exit|raise|signal|assert_fail|system) *\(' \
    "$work/code" | none "the library prints or ends the program"
grep -E '(^|[^a-z_])(rand|srand|strtok|setlocale|putenv|setenv|sprintf|strcpy|strcat|gets) *\(' \
    "$work/code" | none "a function of the C library that an embedded library must not use"
# shellcheck disable=SC2086
grep -E '(^|[^A-Za-z0-9_])(TODO|FIXME|XXX)' $sources | grep -v -E '(TODO|FIXME|XXX)\(?#[0-9]+' |
    none "a note to oneself without an issue number"

# ---- sizes ---------------------------------------------------------------------------------------

# shellcheck disable=SC2086
wc -l $sources | awk '$2 != "total" && $1 > ($2 == "include/largo.h" ? 700 : 600)' |
    none "files that are too long"

# Functions, from the brace in the first column to the one that closes it. A warning only.
# shellcheck disable=SC2086
awk '
    FNR == 1 { start = 0 }
    /^\{/ { start = FNR }
    /^\}/ { if (start && FNR - start - 1 > 50) print FILENAME ":" start ": " FNR - start - 1 " lines"
            start = 0 }' $sources >"$work/long"
[ ! -s "$work/long" ] || sed 's/^/warning: a function of more than 50 lines: /' "$work/long"

# ---- the checks can fail -------------------------------------------------------------------------

upward >"$work/found" <<'P'
core/plan.h optim/elem.h
core/status.h largo.h
include/largo.h core/plan.h
optim/step.c cpu/cpu.h
optim/step.c hyper.h
optim/lamb.h core/elem.h
cpu/kernels.c optim/all.h
cpu/cpu.c optim/hyper.h
gpu/gpu.c cpu/layout.h
P
diff - "$work/found" <<'P' || echo "see above" | none "planted includes are not told apart"
core/plan.h includes optim/elem.h
include/largo.h includes core/plan.h
optim/step.c includes cpu/cpu.h
cpu/cpu.c includes optim/hyper.h
gpu/gpu.c includes cpu/layout.h
P
printf '%s\n' '/* printf(" */ int a; /* exit(1)' 'abort() */ b("exit(1)"); exit(2);' >"$work/planted.c"
[ "$(code "$work/planted.c" | grep -c exit)" = 1 ] || echo "see $0" | none "comments are not left out"
code "$work/planted.c" | grep -q 'abort' && echo abort | none "comments are not left out"

[ ! -e "$work/failed" ] || exit 1
echo "$(wc -w <<<"$sources") files, $(includes | wc -l) includes"
