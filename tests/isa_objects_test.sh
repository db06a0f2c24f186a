#!/usr/bin/env bash
# labels: package isa
# Wide instructions stand only where the processor was asked first (H66): VEX code in the objects of
# the avx2 and avx512 kernels, zmm and mask registers in the latter's alone, nothing of it in any other
# object or in code that runs at loading. And the kernels are what they should be: every function with
# a division in the scalar object has a packed one of full width in the others, and calls nothing
# through a pointer. On AArch64, where NEON is in the baseline, only the last two.
#
#   isa_objects_test.sh SOURCE_DIR BUILD_DIR C_COMPILER
set -u
export LC_ALL=C
build=$2 cc=$3

machine=$("$cc" -dumpmachine)
case $machine in
x86_64* | aarch64*) ;;
*) echo "skipped: neither x86-64 nor AArch64"; exit 77 ;;
esac
objdump=objdump
[ "${machine%%-*}" = "$(uname -m)" ] || objdump=$machine-objdump
if ! grep -q '^LARGO_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt"; then
    echo "skipped: sanitized kernels are not vectorized"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAILED: $*" | tee -a "$work/failed"; }

# code FILE: function, tab, instruction; one a line.
code()
{
    "$objdump" -d --no-show-raw-insn -w "$1" | awk '
        /^[0-9a-f]+ <.*>:$/ { f = $2; gsub(/[<>:]/, "", f); next }
        /^ *[0-9a-f]+:\t/ { sub(/^ *[0-9a-f]+:\t/, ""); gsub(/\t/, " "); print f "\t" $0 }'
}

# level: of each instruction on stdin that is more than x86-64 has. 1: VEX, BMI or FMA; 2: AVX-512,
# by its registers or its mask operands.
level()
{
    awk -F '\t' '
        {
            split($2, word, " ")
            n = 0
            if (word[1] ~ /^v/ && word[1] !~ /^ver[rw]/) n = 1
            if (word[1] ~ /^(andn|bextr|blsi|blsmsk|blsr|bzhi|mulx|pdep|pext|rorx|sarx|shlx|shrx)[lq]?$/)
                n = 1
            if ($2 ~ /%ymm/) n = 1
            if ($2 ~ /%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])|\{1to/) n = 2
            if (n) print n "\t" $0
        }'
}

# most FILE: the highest level in it.
most() { code "$1" | level | cut -f 1 | sort -nr | head -n 1 | grep . || echo 0; }

# dividing FILE ISA DIVISION: kernels with such an instruction, without the ISA's name. Those for a few
# elements are left out: they are as wide as the compiler finds them worth; clang takes some one by one.
dividing()
{
    code "$1" | awk -F '\t' -v isa="_$2" -v division="$3" '
        $2 ~ division && (i = index($1, isa)) { print substr($1, 1, i - 1) }' |
        grep -v '^largo__few_' | sort -u
}

# divides FILE DIVISION: the scalar object has them; their names are kept in $work/divide.
divides()
{
    dividing "$1" scalar "$2" >"$work/divide"
    for kernel in adamw_pass0 lamb_pass0 lamb_pass1 came1d_pass0; do
        grep -q "$kernel$" "$work/divide" || fail "$kernel does not divide"
    done
}

# packed FILE ISA DIVISION: each of them divides so.
packed()
{
    dividing "$1" "$2" "$3" | comm -23 "$work/divide" - | while read -r kernel; do
        fail "${kernel}_$2 has no packed division"
    done
}

# ---- AArch64 -------------------------------------------------------------------------------------

case $machine in
aarch64*)
    neon=$build/CMakeFiles/largo_kernels_neon.dir/cpu/kernels.c.o
    divides "${neon/_neon./_scalar.}" '^fdiv s[0-9]'
    packed "$neon" neon '^fdiv v[0-9]+\\.4s'
    code "$neon" | grep -E $'\t''blr\b' && fail "the neon kernels call through a pointer"
    [ ! -e "$work/failed" ] || exit 1
    echo "$(wc -l <"$work/divide") kernels with a division"
    exit 0
    ;;
esac

# ---- which object holds what ---------------------------------------------------------------------

objects=$(find "$build/CMakeFiles" -path '*/largo_*.dir/*' -name '*.o')
count=$(wc -l <<<"$objects")
[ "$count" -eq "$(ar t "$build/liblargo.a" | wc -l)" ] ||
    fail "$count objects found, but the archive has $(ar t "$build/liblargo.a" | wc -l)"

for object in $objects; do
    allowed=0
    case $object in
    *largo_kernels_avx2.dir*) allowed=1 avx2=$object ;;
    *largo_kernels_avx512.dir*) allowed=2 avx512=$object ;;
    *largo_kernels_scalar.dir*) scalar=$object ;;
    esac
    found=$(most "$object")
    [ "$found" -le $allowed ] && continue
    fail "${object#"$build"/} has instructions that the processor was not asked for:"
    code "$object" | level | awk -v a=$allowed '$1 > a' | head -n 5
done
for isa in scalar avx2 avx512; do
    [ -n "${!isa:-}" ] || { fail "no object of the $isa kernels"; exit 1; }
done
[ "$(most "$avx2")" = 1 ] || fail "the avx2 kernels use no VEX instruction"
[ "$(most "$avx512")" = 2 ] || fail "the avx512 kernels use no zmm register"

# The linked library: by name of function. Nothing outside the kernels, so nothing at loading either.
code "$build/liblargo.so" | level |
    awk -F '\t' '$1 == 1 && $2 !~ /_avx(2|512)(\.|$)/ || $1 == 2 && $2 !~ /_avx512(\.|$)/ { print $2 }' |
    sort -u >"$work/outside"
[ ! -s "$work/outside" ] || fail "wide code outside the kernels: $(tr '\n' ' ' <"$work/outside")"

# ---- the kernels ---------------------------------------------------------------------------------

divides "$scalar" '^v?div[ps]s .*%xmm'
packed "$avx2" avx2 '^v?div[ps]s .*%ymm'
packed "$avx512" avx512 '^v?div[ps]s .*%zmm'

# kernels FILE ISA: all of them, without the ISA's name.
kernels()
{
    nm --defined-only "$1" | awk '$2 == "t" || $2 == "T" { print $3 }' |
        sed -n "s/_$2\$//p" | sort -u
}
kernels "$scalar" scalar >"$work/kernels"
[ "$(wc -l <"$work/kernels")" -ge 18 ] || fail "only $(wc -l <"$work/kernels") kernels"
for isa in avx2 avx512; do
    register='%ymm'
    [ $isa = avx2 ] || register='%zmm'
    kernels "${!isa}" $isa | comm -3 "$work/kernels" - >"$work/differ"
    [ ! -s "$work/differ" ] || fail "not the same kernels in scalar and $isa: $(cat "$work/differ")"
    # A kernel that only jumps to another one was found equal to it by the compiler.
    code "${!isa}" | awk -F '\t' -v isa="_$isa" -v register=$register '
        ($2 ~ register || $2 ~ /^jmp +[0-9a-f]+ <largo__(span|tile)_[a-z0-9_]+>$/) &&
        (i = index($1, isa)) { print substr($1, 1, i - 1) }' | sort -u |
        comm -23 "$work/kernels" - | grep -v '^largo__few_' | while read -r kernel; do
        fail "${kernel}_$isa does not use $register"
    done
done

# indirect FILE: calls and jumps through a register or memory.
indirect() { code "$1" | grep -E $'\t''(notrack |bnd )?(call|jmp)q? +\*'; }
for isa in scalar avx2 avx512; do
    indirect "${!isa}" >"$work/indirect" &&
        fail "the $isa kernels call through a pointer: $(head -n 3 "$work/indirect")"
done

# ---- the checks can fail -------------------------------------------------------------------------

cat >"$work/planted.c" <<'P'
float sum[64];
__attribute__((constructor)) void planted(void)
{
    for (int i = 0; i < 64; i++) sum[i] = sum[i] / 3.0f;
}
void through(void (*f)(void)) { f(); f(); }
P
# planted LEVEL FLAGS...: is the level of this code found?
planted()
{
    local wanted=$1
    shift
    "$cc" -O3 "$@" -c "$work/planted.c" -o "$work/planted.o" || fail "$cc $*"
    [ "$(most "$work/planted.o")" = "$wanted" ] || fail "planted code, $*: level is not $wanted"
}
planted 0
planted 1 -mavx2
planted 2 -mavx512f -mprefer-vector-width=512
indirect "$work/planted.o" >/dev/null || fail "a planted indirect call is not found"
code "$work/planted.o" | level | grep -q $'\tplanted\t' || fail "the planted constructor has no name"

[ ! -e "$work/failed" ] || exit 1
echo "$count objects, $(wc -l <"$work/kernels") kernels, $(wc -l <"$work/divide") with a division"
