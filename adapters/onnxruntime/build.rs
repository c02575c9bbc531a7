//! Binds the library's calls to the libsplit inside it, whatever else the process has loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    if var("CARGO_CFG_TARGET_FAMILY") == "unix" && var("CARGO_CFG_TARGET_VENDOR") != "apple" {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    }
}
