//! A C program, compiled against the header and linked with the library by nothing but `cargo test`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Builds the static library as C programs get it.
fn static_library(target_dir: &Path) -> PathBuf {
    run(Command::new(env!("CARGO"))
        .args(["rustc", "--locked", "--lib", "--crate-type=staticlib"])
        .args(["--no-default-features", "--features=capi", "--target-dir"])
        .arg(target_dir)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("CARGO_BUILD_TARGET"));
    target_dir.join("debug/liblibsplit.a")
}

/// `make test-all` runs this, because it compiles the crate once more. `make test` builds the same program with the
/// delivered library.
#[test]
#[ignore = "slow"]
fn a_c_program_splits_a_tensor() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_program");
    let library = static_library(&work);
    let program = work.join("program");
    let target = env!("LIBSPLIT_TARGET");
    let compiler = cc::Build::new()
        .target(target)
        .host(target)
        .opt_level(0)
        .include(root.join("include"))
        .flags(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .cargo_metadata(false)
        .get_compiler();
    run(compiler
        .to_command()
        .arg(root.join("c-tests/consumer/main.c"))
        .arg(library)
        .arg("-o")
        .arg(&program));
    assert_eq!(run(&mut Command::new(program)), "1 2 | 3 4 5 6\n");
}
