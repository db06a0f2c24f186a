#!/usr/bin/env bash
# labels: tree
# What is in the repository: text that any machine can use, scripts that parse, links that lead
# somewhere, nothing that a build made.
#
#   tree_test.sh SOURCE_DIR [BUILD_DIR C_COMPILER]
set -u
export LC_ALL=C
cd "$1" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

none()
{
    local found
    found=$(cat)
    [ -z "$found" ] && return
    printf 'FAILED: %s:\n%s\n' "$1" "$found" | tee -a "$work/failed"
}

# What git has, or all there is in an unpacked archive.
if git rev-parse --show-toplevel >/dev/null 2>&1; then
    git ls-files
else
    find . -type f -not -path './build*' | sed 's/^\.\///'
fi | while read -r file; do
    [ -f "$file" ] && echo "$file"
done | sort >"$work/files"
[ "$(wc -l <"$work/files")" -ge 50 ] || echo "" | none "the files are not found"
grep -v -E '\.(png|gz|bin|ckpt)$|^tests/fuzz/corpus/' "$work/files" >"$work/text"

# in_text OPTIONS...: grep in every text file.
in_text() { xargs -d '\n' grep -nHI "$@" <"$work/text"; }

grep -E '(^|/)(build[^/]*|__pycache__|\.cache)/|\.(o|a|so|pyc|log|orig|rej)$|~$|compile_commands\.json$' \
    "$work/files" | none "made by a build or an editor"
grep -E '[^A-Za-z0-9._/-]' "$work/files" | none "names that need quoting"
xargs -d '\n' stat -c '%s %n' <"$work/files" | awk '$1 > 2000000' | none "files of more than 2 MB"

in_text -P '\r$' | head -n 5 | none "lines that end with a carriage return"
in_text -E '[ 	]+$' | grep -v -E '^[^:]*\.md:' | head -n 5 | none "space at the end of a line"
while read -r file; do
    [ ! -s "$file" ] || [ -z "$(tail -c 1 "$file")" ] || echo "$file"
done <"$work/text" | none "no newline at the end"
in_text -E '^(<<<<<<<|>>>>>>>|\|\|\|\|\|\|\|)( |$)' | none "a conflict left over"

# Folders of somebody's machine; /usr, /etc, /tmp and /dev are everybody's.
in_text -E '(^|[^A-Za-z0-9_.})*-])/(home|root|Users|mnt|media|srv|work|workspace|builds|data|scratch)/[A-Za-z0-9_.]' |
    none "a path of one machine"

# ---- scripts -------------------------------------------------------------------------------------

grep -E '\.sh$|^\.ci/run$' "$work/files" >"$work/scripts"
while read -r file; do
    shell="sh"
    if head -n 1 "$file" | grep -q bash; then shell=bash; fi
    head -n 1 "$file" | grep -q -E '^#!/(bin/sh|usr/bin/env bash|bin/bash)' || echo "$file: no #! line"
    $shell -n "$file" 2>&1
done <"$work/scripts" | none "scripts that do not parse"
if command -v shellcheck >/dev/null; then
    xargs -d '\n' shellcheck --severity=warning --format=gcc <"$work/scripts" | none "shellcheck"
else
    echo "not checked: shellcheck, which is not here"
fi
if command -v python3 >/dev/null; then
    grep -E '\.(py|json)$' "$work/files" | python3 -c '
import ast, json, sys
for name in sys.stdin.read().split():
    try:
        text = open(name, encoding="utf-8").read()
        ast.parse(text, name) if name.endswith(".py") else json.loads(text)
    except (SyntaxError, ValueError) as error:
        print(f"{name}: {error}")
' 2>&1 | none "Python or JSON that does not parse"
else
    echo "not checked: Python and JSON, for want of python3"
fi

# ---- tests and documents -------------------------------------------------------------------------

# A test without labels would be left out where tests are chosen by them.
grep -E '^tests/[^/]*_test\.(c|sh)$' "$work/files" | grep -v '^tests/examples_train_test\.sh$' |
    while read -r file; do
        grep -q 'labels: [a-z]' "$file" || echo "$file"
    done | none "tests without a line 'labels: ...'"

# Links of documents to files of the repository.
grep '\.md$' "$work/files" | while read -r file; do
    awk '/^```/ { code = !code } !code' "$file" | grep -oE '\]\([^)#: ]+(#[^)]*)?\)' |
        sed -E 's/^\]\(([^)#]*).*/\1/' | while read -r target; do
        [ -e "$(dirname "$file")/$target" ] || echo "$file: $target"
    done
done | none "links that lead nowhere"

[ ! -e "$work/failed" ] || exit 1
echo "$(wc -l <"$work/files") files, $(wc -l <"$work/scripts") scripts"
