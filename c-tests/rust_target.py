"""The Rust target is found from the C compiler's processor and system, for those that people build for; for others,
configuring ends with an error that names the variable to set.

usage: rust_target.py RUST_TARGET_CMAKE CMAKE WORK
"""

import shutil
import subprocess
import sys
from pathlib import Path

module, cmake, work = sys.argv[1:]
source = Path(__file__).resolve().parent.parent
work = Path(work)
work.mkdir(exist_ok=True)
FOUND = {
    ("Linux", "x86_64"): "x86_64-unknown-linux-gnu",
    ("Linux", "AMD64"): "x86_64-unknown-linux-gnu",
    ("Linux", "aarch64"): "aarch64-unknown-linux-gnu",
    ("Linux", "arm64"): "aarch64-unknown-linux-gnu",
    ("Linux", "i386"): "i686-unknown-linux-gnu",
    ("Linux", "i686"): "i686-unknown-linux-gnu",
    ("Linux", "armv7l"): "armv7-unknown-linux-gnueabihf",
    ("Linux", "armv7"): "armv7-unknown-linux-gnueabihf",
    ("Linux", "riscv64"): "riscv64gc-unknown-linux-gnu",
    ("Linux", "ppc64le"): "powerpc64le-unknown-linux-gnu",
    ("Linux", "ppc64"): "powerpc64-unknown-linux-gnu",
    ("Linux", "s390x"): "s390x-unknown-linux-gnu",
    ("Linux", "loongarch64"): "loongarch64-unknown-linux-gnu",
    ("Android", "aarch64"): "aarch64-linux-android",
    ("Android", "armv7-a"): "armv7-linux-androideabi",
    ("Android", "i686"): "i686-linux-android",
    ("Android", "x86_64"): "x86_64-linux-android",
    ("Darwin", "arm64"): "aarch64-apple-darwin",
    ("Darwin", "x86_64"): "x86_64-apple-darwin",
    ("FreeBSD", "amd64"): "x86_64-unknown-freebsd",
    ("NetBSD", "x86_64"): "x86_64-unknown-netbsd",
    ("OpenBSD", "amd64"): "x86_64-unknown-openbsd",
    ("Windows", "AMD64"): "x86_64-pc-windows-gnu",
    ("Windows", "x86"): "i686-pc-windows-gnu",
    ("Windows", "ARM64"): "aarch64-pc-windows-gnullvm",
    ("Windows", "AMD64", "MSVC"): "x86_64-pc-windows-msvc",
    ("Windows", "ARM64", "MSVC"): "aarch64-pc-windows-msvc",
}
UNKNOWN = [("Linux", "e2k"), ("Linux", "armv6l"), ("Linux", "mips"), ("Linux", ""), ("iOS", "arm64"),
           ("Darwin", "arm64;x86_64"), ("SunOS", "x86_64")]

script = work / "script.cmake"
script.write_text(f"""include({module})
libsplit_rust_target(found nobodys-machine)
message("found: ${{found}}")
""")


def ask(system, processor, *more):
    settings = {"CMAKE_SYSTEM_NAME": system, "CMAKE_SYSTEM_PROCESSOR": processor, "CMAKE_CROSSCOMPILING": "ON",
                "WIN32": system == "Windows", "APPLE": system in ("Darwin", "iOS")}
    settings.update(dict.fromkeys(more, "ON"))
    return subprocess.run([cmake, *(f"-D{name}={value}" for name, value in settings.items()), "-P", script],
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def is_error(said):
    words = " ".join(said.split())
    return "set LIBSPLIT_CARGO_TARGET" in words and "rustup target add" in words


rustc = shutil.which("rustc") or Path.home() / ".cargo/bin/rustc"
listed = subprocess.run([rustc, "--print", "target-list"], check=True, text=True, stdout=subprocess.PIPE).stdout
for asked, target in FOUND.items():
    said = ask(*asked)
    assert f"found: {target}\n" in said, f"{asked}: {said}"
    assert target in listed.split(), f"rustc has no {target}"
for asked in UNKNOWN:
    assert is_error(said := ask(*asked)), f"{asked}: {said}"

# A project that is configured with a toolchain file stops before anything is built.
toolchain = work / "toolchain.cmake"
toolchain.write_text("set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR e2k)\n")
done = subprocess.run([cmake, "-S", source, "-B", work / "build", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}"],
                      text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
assert done.returncode != 0 and is_error(done.stdout), done.stdout
print(f"{len(FOUND)} targets found, {len(UNKNOWN) + 1} errors")
