#!/bin/sh
# The Python packages. libsplit: a wheel for glibc and one for musl, for every CPython from 3.10 on; libsplit-onnxruntime: a
# wheel for glibc; and the source distribution of each, from which a wheel is built again. What is for glibc is installed in
# new environments and used. There is no CPython for musl here, so that wheel is only looked at: it needs musl alone.
set -eu
. tools/release/common.sh
need_llvm
need_rust_for x86_64-unknown-linux-gnu x86_64-unknown-linux-musl
python=$venv/bin/python
export PATH="$venv/bin:$PATH" CARGO_TARGET_DIR="$PWD/build/python-cargo"
made=$PWD/build/wheels
rm -rf "$made"
mkdir -p "$made"

maturin() {
    "$python" -m maturin "$@"
}
maturin build --quiet --locked --release --zig --target x86_64-unknown-linux-gnu --compatibility manylinux_2_17 \
    --manifest-path python/Cargo.toml --out "$made"
maturin build --quiet --locked --release --zig --target x86_64-unknown-linux-musl --compatibility musllinux_1_2 \
    --manifest-path python/Cargo.toml --out "$made"
maturin sdist --manifest-path python/Cargo.toml --out "$made"

# The provider is linked by maturin's wrapper around zig, as the wheels above are.
cat >build/link-glibc-2.17 <<WRAPPER
#!/bin/sh
exec "$venv/bin/maturin" zig cc -- -target x86_64-linux-gnu.2.17 "\$@"
WRAPPER
chmod +x build/link-glibc-2.17
# with_setuptools WORD ARGUMENT: calls a function of setuptools' build backend in the provider's package.
with_setuptools() {
    (cd adapters/onnxruntime/python && "$python" -c "from setuptools import build_meta as backend; backend.$1($2)" >/dev/null)
}
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER="$PWD/build/link-glibc-2.17" CARGO_BUILD_TARGET=x86_64-unknown-linux-gnu
with_setuptools build_wheel "'$made', {'--build-option': ['--plat-name=manylinux_2_17_x86_64']}"
with_setuptools build_sdist "'$made'"
unset CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER CARGO_BUILD_TARGET

# setuptools' archive tells who made it, and when.
(cd "$made" && tar -xzf "libsplit_onnxruntime-$version.tar.gz")
tools/pack.sh "$made/libsplit_onnxruntime-$version" "$made"
rm -r "$made/libsplit_onnxruntime-$version"
cp "$made"/*.whl "$made"/*.tar.gz "$out"
[ -z "${ONLY_BUILD:-}" ] || exit 0

# The tag is the one that the symbols allow, and no lower one. auditwheel can judge only what is for this machine's libc.
for wheel in "$made"/*manylinux*.whl; do
    "$python" -m auditwheel show "$wheel" >"$fresh/shown"
    tag=$(tr '\n' ' ' <"$fresh/shown" | grep -oE 'tag: +"[^"]*"' | cut -d '"' -f 2)
    case $wheel in *"${tag:-none}"*) ;; *) cat "$fresh/shown" >&2 && exit 1 ;; esac
done

"$python" -m zipfile -e "$made"/*musllinux*.whl "$fresh/musl"
needed=$("llvm-readelf-$llvm" --dynamic "$fresh/musl/libsplit/_libsplit.abi3.so" | grep NEEDED)
[ "${needed##* }" = "[libc.so]" ] && [ "$(echo "$needed" | wc -l)" = 1 ] ||
    { echo "error: the wheel for musl needs $needed" >&2; exit 1; }

# new_environment PACKAGE...: with these packages and nothing else.
new_environment() {
    rm -rf "$fresh/venv"
    "$python" -m venv "$fresh/venv"
    "$fresh/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}
numpy=$(grep -E '^numpy==.*>=' tools/requirements-dev.txt | cut -d ';' -f 1)
onnxruntime=$(grep '^onnxruntime==' tools/requirements-dev.txt)
first='import numpy, libsplit; print(libsplit.split(numpy.arange(7), [3, -1])[1])'
registered='import onnxruntime as ort, libsplit_onnxruntime as ls; ls.register()
print(any(device.ep_name == ls.get_ep_name() for device in ort.get_ep_devices()))'
new_environment "$made"/libsplit-*manylinux*.whl "$made"/libsplit_onnxruntime-*.whl "$numpy" "$onnxruntime"
expect '[3 4 5 6]' "$fresh/venv/bin/python" -c "$first"
expect True "$fresh/venv/bin/python" -c "$registered"

# As where Rust is. The crates come from cargo's registry.
unset CARGO_NET_OFFLINE CARGO_TARGET_DIR
new_environment --no-binary libsplit,libsplit-onnxruntime "$made/libsplit-$version.tar.gz" \
    "$made/libsplit_onnxruntime-$version.tar.gz" "$numpy" "$onnxruntime"
expect '[3 4 5 6]' "$fresh/venv/bin/python" -c "$first"
expect True "$fresh/venv/bin/python" -c "$registered"
