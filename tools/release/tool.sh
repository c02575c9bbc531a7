#!/bin/sh
# The command-line tool for Linux: an archive for each CPU, with a program that needs no library, its manual pages and its
# completions. Each splits an array; that for AArch64 does so under qemu.
set -eu
. tools/release/common.sh
need_llvm
need qemu-aarch64 qemu-user
need_rust_for x86_64-unknown-linux-musl aarch64-unknown-linux-musl
# Rust comes with musl, and with a linker for it.
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
native=$PWD/build/tool/$(uname -m)-unknown-linux-musl/release/libsplit

for cpu in x86_64 aarch64; do
    cargo build --quiet --locked --release --manifest-path cli/Cargo.toml --target "$cpu-unknown-linux-musl" \
        --target-dir build/tool
done
for cpu in x86_64 aarch64; do
    name=libsplit-tool-$version-$cpu-linux
    stage=$stages/$name
    rm -rf "$stage"
    mkdir -p "$stage/bin" "$stage/share/man/man1" "$stage/share/bash-completion/completions" \
        "$stage/share/zsh/site-functions" "$stage/share/fish/vendor_completions.d"
    cp "build/tool/$cpu-unknown-linux-musl/release/libsplit" "$stage/bin"
    cp LICENSE-MIT LICENSE-APACHE cli/README.md "$stage"
    "$native" man "$stage/share/man/man1"
    "$native" completion bash >"$stage/share/bash-completion/completions/libsplit"
    "$native" completion zsh >"$stage/share/zsh/site-functions/_libsplit"
    "$native" completion fish >"$stage/share/fish/vendor_completions.d/libsplit.fish"
    tools/pack.sh "$stage" "$out"
    [ -z "${ONLY_BUILD:-}" ] || continue

    tool=$(unpack "$name")/bin/libsplit
    ! "llvm-readelf-$llvm" --program-headers --dynamic "$tool" | grep -E 'INTERP|NEEDED' ||
        { echo "error: $name is not static" >&2; exit 1; }
    run=
    [ "$cpu" = "$(uname -m)" ] || run=$(command -v "qemu-$cpu")
    # shellcheck disable=SC2086 # perhaps no word
    expect "libsplit $version" $run "$tool" --version
    # An array of 3 by 4 doubles, as NumPy writes it.
    {
        printf '\223NUMPY\001\000\166\000'
        printf "%-117s\n" "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }"
        head -c 96 /dev/zero
    } >"$fresh/a.npy"
    # shellcheck disable=SC2086
    expect "$fresh/$cpu/a_0.npy  '<f8'  (3, 1)
$fresh/$cpu/a_1.npy  '<f8'  (3, 3)" $run "$tool" npy "$fresh/a.npy" "$fresh/$cpu" --axis 1 --lengths 1,3
done
