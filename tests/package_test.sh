#!/usr/bin/env bash
# labels: package
# Installs into a fresh prefix and builds somebody else's program against it in every way the README
# names: find_package, pkg-config, a plain compiler line, add_subdirectory, FetchContent; C and C++;
# into a program and into a shared library; after the prefix was moved.
#
#   package_test.sh SOURCE_DIR BUILD_DIR C_COMPILER
set -euo pipefail
source=$1 build=$2 cc=$3
here=$source/tests/package

fail() { echo "FAILED: $*" >&2; exit 1; }
skip() { echo "skipped: $*"; exit 77; }

cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
[ -z "$(cached LARGO_SANITIZE)" ] || skip "a library with a sanitizer is not one to install"
[ "$(cached LARGO_INSTALL)" = ON ] || skip "this build has no install rules"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CFLAGS CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH largo_DIR
# What is installed on this machine must not be found instead.
export PKG_CONFIG_LIBDIR=

version_of() { sed -n "s/^#define LARGO_VERSION_$1 \([0-9]*\).*/\1/p" "$source/include/largo.h"; }
major=$(version_of MAJOR) minor=$(version_of MINOR) patch=$(version_of PATCH)
version=$major.$minor.$patch
expected="$version $((major * 10000 + minor * 100 + patch))"

case $(basename "$cc") in
*clang*) cxx=$(dirname "$cc")/$(basename "$cc" | sed 's/clang/clang++/') ;;
*gcc*) cxx=$(dirname "$cc")/$(basename "$cc" | sed 's/gcc/g++/') ;;
*) cxx=$(dirname "$cc")/c++ ;;
esac
command -v "$cxx" >/dev/null || cxx=
[ -n "$cxx" ] || echo "not checked: C++, for want of a compiler beside $(basename "$cc")"

# runs LABEL COMMAND...: the consumer runs and prints the versions.
runs()
{
    local label=$1 out
    shift
    out=$("$@" 2>&1) || fail "$label: the program fails: $out"
    [ "$out" = "$expected" ] || fail "$label: the program prints '$out', not '$expected'"
    echo "ok: $label"
}

logged()
{
    local label=$1
    shift
    "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "$label"; }
}

# uses_shared LABEL PROGRAM yes|no: does it load liblargo.so?
uses_shared()
{
    local found=no
    readelf -d "$2" | grep -q "NEEDED.*\[liblargo\.so\.$major\]" && found=yes
    [ $found = "$3" ] || fail "$1: loads liblargo.so: $found, not $3"
}

# configure LABEL DIRECTORY OPTIONS..., then consume LABEL DIRECTORY OPTIONS...
configure()
{
    local label=$1 dir=$2
    shift 2
    logged "$label: configure" cmake -S "$here" -B "$dir" "-DCMAKE_C_COMPILER=$cc" \
        ${cxx:+"-DCMAKE_CXX_COMPILER=$cxx"} "$@"
}

consume()
{
    local label=$1 dir=$2
    configure "$@"
    logged "$label: build" cmake --build "$dir" --parallel 2
    # Flags of largo's own build stay there.
    if grep '"command".*consumer\.c' "$dir/compile_commands.json" |
        grep -E -- '-fopenmp|-ffp-contract|-fno-trapping|-Werror|-mavx|-O3'; then
        fail "$label: flags of largo reach its user"
    fi
}

# ---- the prefix ----------------------------------------------------------------------------------

logged "install" cmake --install "$build" --prefix "$work/first"
for file in include/largo.h include/largo_dlpack.h lib*/liblargo.a lib*/liblargo.so lib*/liblargo.so."$major" \
    lib*/cmake/largo/largoConfig.cmake lib*/cmake/largo/largoConfigVersion.cmake \
    lib*/cmake/largo/largoTargets.cmake lib*/pkgconfig/largo.pc; do
    compgen -G "$work/first/$file" >/dev/null ||
        compgen -G "$work/first/${file/lib\*/lib/*}" >/dev/null || fail "not installed: $file"
done
scripts=$(find "$work/first" -name '*.cmake' -o -name '*.pc')
# shellcheck disable=SC2086  # one word for each file; the directory's name is ours
if grep -nF -e "$source" -e "$build" -e "$work" -e largo_flags $scripts; then
    fail "an installed file names a path or target of the build"
fi
# The prefix is moved before anybody uses it: every check below is also one of relocation.
mkdir "$work/moved"
mv "$work/first" "$work/moved/prefix"
prefix=$work/moved/prefix
libdir=$(dirname "$(find "$prefix" -name liblargo.a)")
[ "$(readlink "$libdir/liblargo.so")" = "liblargo.so.$major" ] || fail "liblargo.so is no link"

# largo_dlpack.h needs dlpack.h from elsewhere, as every test does; careful compilers take it.
echo '#include <largo_dlpack.h>' >"$work/dlpack.c"
careful=(-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only "-I$prefix/include")
logged "largo_dlpack.h in C" "$cc" -std=c11 "${careful[@]}" "$work/dlpack.c"
[ -z "$cxx" ] || logged "largo_dlpack.h in C++" "$cxx" -x c++ "${careful[@]}" "$work/dlpack.c"

# ---- find_package --------------------------------------------------------------------------------

find_options=("-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF
    "-DCONSUMER_VERSION=$major.$minor")

dir=$work/find
consume "find_package, default" "$dir" "${find_options[@]}" -DCONSUMER_LANGUAGE=C \
    -DCONSUMER_TARGET=largo::largo
uses_shared "find_package, default" "$dir/consumer" yes
runs "find_package, default" "$dir/consumer"

for target in static shared; do
    wanted=no
    [ $target = static ] || wanted=yes
    consume "find_package, largo::$target" "$dir" "-DCONSUMER_TARGET=largo::$target"
    uses_shared "find_package, largo::$target" "$dir/consumer" $wanted
    runs "find_package, largo::$target" "$dir/consumer"
done
for choice in BUILD_SHARED_LIBS=OFF LARGO_USE_STATIC=ON; do
    consume "find_package, $choice" "$dir" -UBUILD_SHARED_LIBS -ULARGO_USE_STATIC \
        -DCONSUMER_TARGET=largo::largo -D$choice
    uses_shared "find_package, $choice" "$dir/consumer" no
    runs "find_package, $choice" "$dir/consumer"
done

consume "find_package, the archive in a module" "$work/module" "${find_options[@]}" \
    -DCONSUMER_LANGUAGE=C -DCONSUMER_TARGET=largo::static -DCONSUMER_KIND=MODULE
uses_shared "the archive in a module" "$work/module/libplugin.so" no
runs "find_package, the archive in a module" "$work/module/consumer" "$work/module/libplugin.so"

if [ -n "$cxx" ]; then # a project that knows no C at all
    for target in shared static; do
        consume "find_package in C++, largo::$target" "$work/cxx" "${find_options[@]}" \
            -DCONSUMER_LANGUAGE=CXX -DCONSUMER_TARGET=largo::$target
        runs "find_package in C++, largo::$target" "$work/cxx/consumer"
    done
fi

# Another minor version is refused before 1.0.
if cmake -S "$here" -B "$work/other" "-DCMAKE_C_COMPILER=$cc" "${find_options[@]}" \
    "-DCONSUMER_VERSION=$major.$((minor + 1))" -DCONSUMER_LANGUAGE=C \
    -DCONSUMER_TARGET=largo::largo >"$work/log" 2>&1; then
    fail "version $major.$((minor + 1)) was asked for, $version was accepted"
fi
grep -q "version: $version" "$work/log" || { cat "$work/log"; fail "refused for another reason"; }
echo "ok: find_package refuses another minor version"

# ---- pkg-config and a plain compiler line --------------------------------------------------------

if command -v pkg-config >/dev/null; then
    export PKG_CONFIG_LIBDIR=$libdir/pkgconfig
    [ "$(pkg-config --modversion largo)" = "$version" ] || fail "version in largo.pc"
    program=$work/plain
    # shellcheck disable=SC2046  # flags are words
    "$cc" "$here/consumer.c" -o "$program" $(pkg-config --cflags --libs largo) "-Wl,-rpath,$libdir"
    uses_shared "pkg-config" "$program" yes
    runs "pkg-config" "$program"
    if [ -n "$cxx" ]; then
        # shellcheck disable=SC2046
        "$cxx" -x c++ "$here/consumer.c" -o "$program" \
            $(pkg-config --cflags --libs largo) "-Wl,-rpath,$libdir"
        runs "pkg-config in C++" "$program"
    fi

    # A prefix with nothing but the archive, as a distribution's -static package.
    cp -r "$prefix" "$work/archive"
    find "$work/archive" -name 'liblargo.so*' -delete
    PKG_CONFIG_LIBDIR=${libdir/$prefix/$work/archive}/pkgconfig
    # shellcheck disable=SC2046
    "$cc" "$here/consumer.c" -o "$program" $(pkg-config --static --cflags --libs largo)
    uses_shared "pkg-config --static" "$program" no
    runs "pkg-config --static" "$program"

    # The archive in a position-independent program and, nothing left open, in a shared library.
    # shellcheck disable=SC2046
    "$cc" -fPIE -pie "$here/consumer.c" -o "$program" $(pkg-config --static --cflags --libs largo)
    readelf -h "$program" | grep -q 'Type:.*DYN' || fail "no PIE was made"
    runs "the archive in a PIE" "$program"
    # shellcheck disable=SC2046
    "$cc" -fPIC -shared -Wl,-z,defs -Dmain=consumer_main "$here/consumer.c" \
        -o "$work/libplugin.so" -Wl,--whole-archive "$libdir/liblargo.a" -Wl,--no-whole-archive \
        $(pkg-config --static --cflags --libs largo)
    "$cc" "$here/loader.c" -o "$program" -ldl
    runs "the whole archive in a shared library" "$program" "$work/libplugin.so"
else
    echo "not checked: pkg-config, which is not here"
fi

# ---- as part of another project ------------------------------------------------------------------

dir=$work/sub
consume "add_subdirectory" "$dir" "-DCONSUMER_SOURCE=$source" -DCONSUMER_LANGUAGE=C \
    -DCONSUMER_TARGET=largo::static
uses_shared "add_subdirectory" "$dir/consumer" no
runs "add_subdirectory" "$dir/consumer"
[ "$(ctest --test-dir "$dir" -N 2>/dev/null | sed -n 's/^Total Tests: //p')" = 0 ] ||
    fail "add_subdirectory brings tests"
logged "install of the other project" cmake --install "$dir" --prefix "$work/theirs"
[ ! -e "$work/theirs" ] || fail "add_subdirectory installs: $(find "$work/theirs" -type f)"
echo "ok: add_subdirectory brings no tests and installs nothing"

consume "add_subdirectory, the default" "$dir" -DCONSUMER_TARGET=largo::largo
uses_shared "add_subdirectory, the default" "$dir/consumer" yes
runs "add_subdirectory, the default" "$dir/consumer"
consume "add_subdirectory, BUILD_SHARED_LIBS=OFF" "$dir" -DBUILD_SHARED_LIBS=OFF
uses_shared "add_subdirectory, BUILD_SHARED_LIBS=OFF" "$dir/consumer" no

language=C
[ -z "$cxx" ] || language=CXX
configure "FetchContent" "$work/fetch" "-DCONSUMER_SOURCE=$source" -DCONSUMER_FETCH=ON \
    -DCONSUMER_LANGUAGE=$language -DCONSUMER_TARGET=largo::static
echo "ok: FetchContent configures"
