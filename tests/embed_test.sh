#!/usr/bin/env bash
# labels: package
# The embedding example of the README compiles as it stands there, by the README's own command, against
# an installed largo, and prints what the README says.
#
# In README.md a line `<!-- embed -->` stands before the ```c block of the program. The first block
# after it, indented or fenced as ``` or ```text or ```console, is a session: "$ " and a command, which
# takes the program as a file *.c, then what it prints.
#
#   embed_test.sh SOURCE_DIR BUILD_DIR C_COMPILER
set -euo pipefail
source=$1 build=$2
cc=$(command -v "$3")
readme=$source/README.md

fail() { echo "FAILED: $*"; exit 1; }
skip() { echo "skipped: $*"; exit 77; }

grep -q '^LARGO_SANITIZE:[A-Z]*=$' "$build/CMakeCache.txt" ||
    skip "a library with a sanitizer is not one to embed"
command -v pkg-config >/dev/null || skip "no pkg-config"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -f "$readme" ] || fail "there is no README.md"
awk -v program="$work/example.c" -v session="$work/session" '
    /^<!-- embed -->/ { state = 1; next }
    state == 1 && /^```c$/ { state = 2; next }
    state == 2 && /^```$/ { state = 3; next }
    state == 2 { print >program }
    state == 3 && /^```(text|console)?$/ { state = 4; next }
    state == 3 && /^    / { state = 6 }
    state == 3 && /^```/ { state = 5; next } # a block of something else
    state == 5 && /^```$/ { state = 3; next }
    state == 4 && /^```$/ { exit }
    state == 4 { print >session }
    state == 6 && !/^    / { exit }
    state == 6 { sub(/^    /, ""); print >session }' "$readme"
[ -s "$work/example.c" ] || fail "README.md has no line '<!-- embed -->' before a block of C"
[ -s "$work/session" ] || fail "README.md has no block after the example that says what it prints"
sed -n 's/^\$ //p' "$work/session" >"$work/command"
grep -v '^\$ ' "$work/session" >"$work/expected" || fail "README.md does not say what is printed"
file=$(grep -oE '[A-Za-z0-9_]+\.c' "$work/command" | head -n 1) ||
    fail "README.md does not say how the example is compiled: '$ cc FILE.c ...'"
mv "$work/example.c" "$work/$file"

cmake --install "$build" --prefix "$work/prefix" >"$work/log" || { cat "$work/log"; fail "install"; }
libdir=$(dirname "$(find "$work/prefix" -name largo.pc)")
export PKG_CONFIG_LIBDIR=$libdir LD_LIBRARY_PATH=$libdir/..
# The README's cc is this build's compiler, and a careful one.
mkdir "$work/bin"
printf '#!/bin/sh\nexec "%s" -Wall -Wextra -Werror "$@"\n' "$cc" >"$work/bin/cc"
chmod +x "$work/bin/cc"
(cd "$work" && PATH=$work/bin:$PATH sh -e ./command) >"$work/printed" 2>&1 ||
    { cat "$work/printed"; fail "the README's command ends with a failure"; }
diff "$work/expected" "$work/printed" ||
    fail "the README says the lines with <, the example prints those with >"
echo "$(grep -c . "$work/$file") lines of C, printed $(cat "$work/printed")"
