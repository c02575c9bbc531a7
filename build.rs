//! Gives the shared library its SONAME, and the tests the name of the target.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let elf = var("CARGO_CFG_TARGET_FAMILY") == "unix" && var("CARGO_CFG_TARGET_VENDOR") != "apple";
    // Under cargo-c the SONAME is cargo-c's task.
    if elf && var("CARGO_FEATURE_CAPI").is_empty() {
        let major = var("CARGO_PKG_VERSION_MAJOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsplit.so.{major}");
    }
    println!("cargo::rustc-env=LIBSPLIT_TARGET={}", var("TARGET"));
}
