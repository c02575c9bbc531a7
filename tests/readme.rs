//! The README's Rust program is a tested one. (Its C program: `c-tests/readme.py`.)

/// The first block of this language in the README.
fn block(language: &str) -> &'static str {
    let readme = include_str!("../README.md");
    let begin = readme.find(&format!("```{language}\n")).unwrap() + language.len() + 4;
    let length = readme[begin..].find("```").unwrap();
    &readme[begin..begin + length]
}

#[test]
fn the_rust_program_is_one_of_the_doc_examples() {
    let docs = include_str!("../src/split.rs");
    for line in block("rust").lines().filter(|line| line.starts_with("let")) {
        assert!(docs.contains(line), "{line}");
    }
}
