#!/usr/bin/env bash
# labels: package
# What the libraries show to a linker (H90): exactly the functions of largo.h, no writable global, no
# constructor, no executable stack, nothing of C++.
#
#   symbols_test.sh SOURCE_DIR BUILD_DIR C_COMPILER
set -u # no -e: a grep that finds nothing is what most checks hope for
export LC_ALL=C
source=$1 build=$2 cc=$3
shared=$build/liblargo.so archive=$build/liblargo.a

if ! grep -q '^LARGO_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt"; then
    echo "skipped: a sanitizer adds symbols of its own"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for need in nm objdump readelf "$cc"; do
    command -v "$need" >/dev/null || { echo "FAILED: there is no $need"; exit 1; }
done
for need in "$shared" "$archive"; do
    [ -s "$need" ] || { echo "FAILED: there is no $need"; exit 1; }
done

# none TEXT: what stands on stdin should not be there.
none()
{
    local found
    found=$(cat)
    [ -z "$found" ] && return
    printf 'FAILED: %s:\n%s\n' "$1" "$found" | tee -a "$work/failed"
}

# ---- the functions of the header -----------------------------------------------------------------

# Declarations of largo.h: what is left of the preprocessed text without bodies, typedefs and static
# functions.
"$cc" -E -P -DLARGO_EXPERIMENTAL "$source/include/largo.h" | tr '\n' ' ' |
    awk '{
        text = $0
        while (sub(/\{[^{}]*\}/, ";", text)) { }
        n = split(text, statement, ";")
        for (i = 1; i <= n; i++)
            if (statement[i] !~ /(^| )(typedef|static) / &&
                match(statement[i], /(^|[ *])largo_[a-z0-9_]+ *\(/)) {
                name = substr(statement[i], RSTART, RLENGTH)
                gsub(/[ *(]/, "", name)
                print name
            }
    }' | sort >"$work/declared"
[ "$(wc -l <"$work/declared")" -ge 20 ] || none "too few declarations found" <"$work/declared"
sort "$work/declared" | uniq -d | none "declared twice"

nm -D --defined-only "$shared" | awk '{ print $NF }' | sort >"$work/defined"
comm -23 "$work/declared" "$work/defined" | none "declared in largo.h, not exported"
comm -13 "$work/declared" "$work/defined" | none "exported, not declared in largo.h"
nm -D --defined-only "$shared" | awk '$2 != "T"' | none "exported, but no function"
grep -v '^largo_[^_]' "$work/defined" | none "exported without the prefix"

# ---- what it needs -------------------------------------------------------------------------------

nm -D --undefined-only "$shared" | awk '{ print $NF }' |
    grep -E '^_Z|__cxa_[^f]|__gxx|_Unwind|torch|c10|cuda|^(printf|puts|exit|abort|_exit|fprintf|fputs|perror)(@|$)' |
    none "undefined symbols that a C library for embedding does not need"
readelf -d "$shared" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -v -E '^(libc|libm|libpthread|libgomp|libomp|ld-linux-[a-z0-9-]+)\.so' |
    none "needs libraries other than those of C and OpenMP"
[ "$(readelf -d "$shared" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" = \
    "liblargo.so.$(sed -n 's/^#define LARGO_VERSION_MAJOR \([0-9]*\).*/\1/p' \
        "$source/include/largo.h")" ] || readelf -d "$shared" | none "SONAME is not the major version"

# ---- the archive ---------------------------------------------------------------------------------

nm -g --defined-only "$archive" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort >"$work/global"
grep -v -E '^largo_' "$work/global" | none "global in the archive without the prefix"
comm -23 "$work/declared" "$work/global" | none "declared in largo.h, not in the archive"
uniq -d "$work/global" | none "defined twice in the archive"

# ---- state of the process ------------------------------------------------------------------------

# writable FILE: symbols of data that can be written, but for what each thread has of its own.
# Constant tables of pointers are in .data.rel.ro: only the loader writes them.
writable()
{
    objdump -t "$1" | grep -E ' O (\.data|\.bss|\*COM\*|\.tm_clone)' |
        grep -v -E ' \.data\.rel\.ro| (__dso_handle|completed\.[0-9]*|__TMC_END__)$'
}
writable "$archive" | none "writable global data in the archive"
writable "$shared" | none "writable global data in the shared library"
objdump -t "$archive" | awk '/ \.t(bss|data)/ && / O / { print $NF }' |
    grep -v -x -E "last_error|region_process" | none "thread-local data that is not known"
objdump -h "$archive" | awk '$2 ~ /^\.(init_array|fini_array|ctors|dtors|preinit_array)/' |
    none "constructors or destructors in the archive"
# The compiler's own start file registers one function.
readelf -SW "$shared" | awk '
    { sub(/^ *\[ *[0-9]+\] */, "") }
    $1 ~ /^\.(init|fini)_array$/ && $5 != "000008" || $1 ~ /^\.(preinit_array|ctors|dtors)$/' |
    none "constructors or destructors in the shared library"
readelf -d "$shared" | grep -E 'TEXTREL' | none "relocations of code"
readelf -lW "$shared" | grep -E 'GNU_STACK.*E' | none "an executable stack"
readelf -lW "$shared" | grep -q GNU_STACK || echo "GNU_STACK" | none "a header is missing"
readelf -SW "$archive" | awk '/note.GNU-stack/ && / X /' | none "an object wants an executable stack"

# ---- the checks can fail -------------------------------------------------------------------------

cat >"$work/planted.c" <<'P'
static int counter;
int next(void) { return ++counter; }
__attribute__((constructor)) static void begin(void) { counter = 7; }
P
"$cc" -fPIC -c "$work/planted.c" -o "$work/planted.o"
writable "$work/planted.o" | grep -q counter || echo counter | none "a planted global is not found"
objdump -h "$work/planted.o" | grep -q -E '\.(init_array|ctors)' ||
    echo begin | none "a planted constructor is not found"
nm -g --defined-only "$work/planted.o" | grep -q ' next$' || echo next | none "a planted name"

[ ! -e "$work/failed" ] || exit 1
echo "$(wc -l <"$work/declared") functions, all of them exported, nothing else"
