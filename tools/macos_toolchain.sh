# shellcheck shell=sh
# What builds for macOS: LLVM's compiler and linker; and from the package ziglang of PyPI, in the environment $venv, what macOS
# has to link, and the C++ compiler. Sourced after foreign.sh, with the directory $build to write to.
need_llvm
need_rust_for aarch64-apple-darwin x86_64-apple-darwin
"$venv/bin/python" -c 'import ziglang' 2>/dev/null || tools/pip.sh "$venv" ziglang
zig=$("$venv/bin/python" -c 'import os, ziglang; print(os.path.dirname(ziglang.__file__))')

# The SDK. ziglang describes the libraries of arm64e, whose functions arm64 has, too.
sdk=$build/sdk
rm -rf "$sdk"
mkdir -p "$sdk/usr/lib"
"$venv/bin/python" - "$zig/lib/libc/darwin/libSystem.tbd" "$sdk/usr/lib/libSystem.tbd" <<'END'
import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text("utf-8")
text = re.sub(r",\s*arm64e\.x1-\w+", "", text).replace("arm64e-", "arm64-")
Path(sys.argv[2]).write_text(text, "utf-8")
END
ln -s libSystem.tbd "$sdk/usr/lib/libc.tbd"
ln -s "$zig/lib/libc/include/any-darwin-any" "$sdk/usr/include"

# What CMake knows only on macOS.
echo 'set(CMAKE_SHARED_LIBRARY_RUNTIME_C_FLAG "-Wl,-rpath,")' >"$build/rpath.cmake"

# macos_toolchain CPU: writes CMake's toolchain file for arm64 or x86_64 to $build/CPU.cmake.
macos_toolchain() {
    cpu=$1
    rust_cpu=$(echo "$cpu" | sed 's/arm64/aarch64/')
    # CMake gives options of Clang to compilers for macOS that zig does not know.
    cat >"$build/$cpu-c++" <<END
#!/bin/sh
for word; do
    shift
    case \$word in
    -isysroot | $sdk | -arch | arm64 | x86_64 | -mmacosx-version-min=*) ;;
    *) set -- "\$@" "\$word" ;;
    esac
done
exec "$zig/zig" c++ -target $rust_cpu-macos.11.0 "\$@"
END
    chmod +x "$build/$cpu-c++"
    cat >"$build/$cpu.cmake" <<END
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_USER_MAKE_RULES_OVERRIDE $build/rpath.cmake)
set(CMAKE_SYSTEM_PROCESSOR $cpu)
set(CMAKE_OSX_ARCHITECTURES $cpu)
set(CMAKE_OSX_DEPLOYMENT_TARGET 11.0)
set(CMAKE_OSX_SYSROOT $sdk)
set(CMAKE_C_COMPILER clang-$llvm)
set(CMAKE_C_COMPILER_TARGET $cpu-apple-macos11)
set(CMAKE_CXX_COMPILER $build/$cpu-c++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -fuse-ld=lld)
set(CMAKE_FIND_ROOT_PATH $sdk)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
END
    for tool in ar nm otool ranlib strip install-name-tool lipo; do
        variable=$(echo "$tool" | tr a-z- A-Z_)
        echo "set(CMAKE_$variable $(command -v "llvm-$tool-$llvm"))" >>"$build/$cpu.cmake"
    done
}
