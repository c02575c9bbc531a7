# shellcheck shell=sh
# What the steps of a release share. Sourced from the root of the unpacked source archive, with variables that
# tools/release.sh has set: out, venv, version.
. tools/foreign.sh
stages=$PWD/build/stages
mkdir -p "$stages"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

# zig_cc TARGET: prints the path of a C compiler for that target of zig's, which names the version of glibc.
zig_cc() {
    zig=$("$venv/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
    compiler=$PWD/build/zig/cc-$1
    mkdir -p "$(dirname "$compiler")"
    # zig passes no --exclude-libs to the linker.
    cat >"$compiler" <<WRAPPER
#!/bin/sh
for word; do
    shift
    case \$word in
    -Xlinker | --exclude-libs | -Wl,--exclude-libs,* | libsplit.a) ;;
    *) set -- "\$@" "\$word" ;;
    esac
done
exec "$zig/zig" cc -target $1 "\$@"
WRAPPER
    chmod +x "$compiler"
    echo "$compiler"
}

# build_library NAME [option of CMake...]: builds the library, installs it in stages/NAME and packs that.
build_library() {
    name=$1
    shift
    cmake -S . -B "build/$name" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_LIBDIR=lib -DLIBSPLIT_BUILD_TESTS=OFF \
        -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF -DLIBSPLIT_CARGO_DIR="$PWD/build/cargo" "$@" >/dev/null
    cmake --build "build/$name" --target libsplit-build
    rm -rf "${stages:?}/$name"
    cmake --install "build/$name" --prefix "$stages/$name" >/dev/null
}

# unpack NAME: unpacks what was packed in a new place, and prints where it lies.
unpack() {
    rm -rf "${fresh:?}/$1"
    tar -xzf "$out/$1.tar.gz" -C "$fresh"
    echo "$fresh/$1"
}

# expect TEXT COMMAND...: runs the command with an empty environment and compares what it prints.
expect() {
    expected=$1
    shift
    printed=$(env -i "$@" | tr -d '\r')
    [ "$printed" = "$expected" ] || { echo "error: '$*' printed '$printed', not '$expected'" >&2; exit 1; }
    echo "ran: $*"
}
