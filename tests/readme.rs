//! The README's C program compiles as it stands and prints what the README says.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The first block of this language in the README.
fn block(language: &str) -> &'static str {
    let readme = include_str!("../README.md");
    let begin = readme.find(&format!("```{language}\n")).unwrap() + language.len() + 4;
    let length = readme[begin..].find("```").unwrap();
    &readme[begin..begin + length]
}

/// Where cargo has put the static library that belongs to this test.
fn static_library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libsplit.a")
}

fn compiler() -> Command {
    cc::Build::new()
        .target(env!("LIBSPLIT_TARGET"))
        .host(env!("LIBSPLIT_TARGET"))
        .opt_level(1)
        .cargo_metadata(false)
        .out_dir(std::env::temp_dir())
        .get_compiler()
        .to_command()
}

#[test]
fn the_rust_program_is_one_of_the_doc_examples() {
    let docs = include_str!("../src/split.rs");
    for line in block("rust").lines().filter(|line| line.starts_with("let")) {
        assert!(docs.contains(line), "{line}");
    }
}

#[test]
fn the_c_program_runs_as_it_stands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("readme.c"), folder.path().join("readme"));
    std::fs::write(&source, block("c")).unwrap();
    let compiled = compiler()
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"])
        .arg(root.join("include"))
        .args([&source, &static_library()])
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let run = Command::new(&program).output().unwrap();
    assert!(run.status.success());
    assert_eq!(String::from_utf8(run.stdout).unwrap(), block("text"));
}
