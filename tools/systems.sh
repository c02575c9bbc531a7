#!/bin/sh
# Builds the library for systems that cannot be run here: FreeBSD, for which all C tests are linked, with zig's
# description of its libraries in the environment $1; Android, whose C library has a stand-in; and WebAssembly, which
# node runs, if there is one. What is missing is installed from Debian, as root; if that fails, the exit code is 77.
set -eu
venv=$1
. tools/foreign.sh
build=$PWD/build/systems
need_llvm
need_rust_for x86_64-unknown-freebsd aarch64-linux-android wasm32-unknown-unknown
"$venv/bin/python" -c 'import ziglang' 2>/dev/null || tools/pip.sh "$venv" ziglang
zig=$("$venv/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')
mkdir -p "$build"
configure() {
    cmake -S . -B "$@" -DCMAKE_BUILD_TYPE=Release -DLIBSPLIT_BUILD_EXAMPLES=OFF -DLIBSPLIT_BUILD_BENCH=OFF \
        -DLIBSPLIT_CARGO_DIR="$build/cargo" >/dev/null
}

echo "==> systems: FreeBSD"
for language in cc c++; do
    # zig passes no --exclude-libs to the linker.
    cat >"$build/freebsd-$language" <<END
#!/bin/sh
for word; do
    shift
    case \$word in
    -Xlinker | --exclude-libs | libsplit.a) ;;
    *) set -- "\$@" "\$word" ;;
    esac
done
exec "$zig/zig" $language -target x86_64-freebsd "\$@"
END
    chmod +x "$build/freebsd-$language"
done
cat >"$build/freebsd.cmake" <<END
set(CMAKE_SYSTEM_NAME FreeBSD)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER $build/freebsd-cc)
set(CMAKE_CXX_COMPILER $build/freebsd-c++)
END
configure "$build/freebsd" -DCMAKE_TOOLCHAIN_FILE="$build/freebsd.cmake"
cmake --build "$build/freebsd" --parallel "$jobs"
"llvm-nm-$llvm" -D "$build/freebsd/lib/libsplit.so"

echo "==> systems: Android"
printf 'void *memcpy(void *a, const void *b, unsigned long n) { (void)b, (void)n; return a; }
void *memset(void *a, int b, unsigned long n) { (void)b, (void)n; return a; }\n' |
    "clang-$llvm" --target=aarch64-linux-android -shared -nostdlib -fuse-ld=lld -fno-builtin -Wl,-soname,libc.so \
        -o "$build/libc.so" -x c -
configure "$build/android" -DANDROID=ON -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY -DLIBSPLIT_BUILD_TESTS=OFF \
    -DLIBSPLIT_CARGO_TARGET=aarch64-linux-android -DCMAKE_C_COMPILER="clang-$llvm" \
    -DCMAKE_C_COMPILER_TARGET=aarch64-linux-android -DCMAKE_C_FLAGS=-fuse-ld=lld \
    -DCMAKE_SHARED_LINKER_FLAGS="-L$build" -DCMAKE_OBJCOPY="$(command -v "llvm-objcopy-$llvm")"
cmake --build "$build/android"
"llvm-readelf-$llvm" -dlW "$build/android/lib/libsplit.so" | tee "$build/android.txt"
grep -q 'SONAME.*\[libsplit.so\]' "$build/android.txt"
! grep 'LOAD.* 0x1000$' "$build/android.txt"

echo "==> systems: WebAssembly"
cargo rustc --lib --locked --profile capi --crate-type staticlib --no-default-features --features capi \
    --target wasm32-unknown-unknown --target-dir "$build/cargo"
"wasm-ld-$llvm" --no-entry --export=libsplit_version --export=libsplit_dtype_bits --export=libsplit_copy \
    --export=libsplit_view --export=libsplit_plan_init -o "$build/libsplit.wasm" \
    "$build/cargo/wasm32-unknown-unknown/capi/liblibsplit.a"
if command -v node >/dev/null; then
    node -e '
        const module = new WebAssembly.Module(require("fs").readFileSync(process.argv[1]));
        const { libsplit_dtype_bits } = new WebAssembly.Instance(module).exports;
        console.log("imports", WebAssembly.Module.imports(module).length, "bits of FLOAT", libsplit_dtype_bits(1));
        process.exit(libsplit_dtype_bits(1) === 32 ? 0 : 1)' "$build/libsplit.wasm"
fi
