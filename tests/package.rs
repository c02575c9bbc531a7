//! The package for the registry: what is in it, and that it builds from that alone.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

const BESIDE_SOURCES: [&str; 12] = [
    ".cargo_vcs_info.json",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "Cargo.toml.orig",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "build.rs",
    "include/libsplit.h",
    "include/libsplit.hpp",
    "include/libsplit_dlpack.h",
];

fn cargo_package(arguments: &[&OsStr]) -> Output {
    let output = Command::new(env!("CARGO"))
        .args(["package", "--locked", "--allow-dirty"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn the_package_is_the_sources_and_what_users_need() {
    let list = cargo_package(&["--list".as_ref()]).stdout;
    let list = String::from_utf8(list).unwrap();
    let is_source = |file: &&str| {
        file.starts_with("src/")
            && std::path::Path::new(file).extension().is_some_and(|e| e == "rs")
    };
    let (sources, others): (Vec<_>, Vec<_>) = list.lines().partition(is_source);
    assert!(sources.contains(&"src/lib.rs"));
    // Outside of a clone there is no .cargo_vcs_info.json.
    let is_known = |file: &&str| BESIDE_SOURCES.contains(file);
    assert!(others.iter().all(is_known), "{others:?}");
    assert!(others.len() >= BESIDE_SOURCES.len() - 1, "{others:?}");
}

/// `make test-all` runs this, because it compiles the crate once more.
#[test]
#[ignore = "slow"]
fn the_package_builds_from_its_own_archive() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
    cargo_package(&["--target-dir".as_ref(), target.as_ref()]);
    let name = concat!("package/libsplit-", env!("CARGO_PKG_VERSION"), ".crate");
    let bytes = std::fs::metadata(target.join(name)).unwrap().len();
    assert!(bytes < 412_000, "the package has grown to {bytes} bytes");
}
