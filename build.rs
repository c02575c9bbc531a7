//! Tells the tests for which target they are built.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=LIBSPLIT_TARGET={target}");
}
