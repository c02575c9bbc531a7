//! What libsplit is made of, as `cargo metadata` has it: sources, licences, Rust versions.
//!
//! These are the rules of `deny.toml` that need no network; `make deny` asks cargo-deny.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    workspace_members: Vec<String>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    license: Option<String>,
    rust_version: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>, // "build", "dev", or null of a normal one
}

impl Dependency {
    /// Needed by the package itself, not by its build script or tests alone.
    fn is_normal(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.is_none())
    }
}

/// What is built with all features.
fn metadata() -> Metadata {
    metadata_with(&["--all-features"])
}

fn metadata_with(features: &[&str]) -> Metadata {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version=1"])
        .args(features)
        .args(["--filter-platform", env!("LIBSPLIT_TARGET")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    serde_json::from_slice(&cargo.stdout).unwrap()
}

impl Metadata {
    fn package(&self, id: &str) -> &Package {
        self.packages.iter().find(|package| package.id == id).unwrap()
    }

    fn id(&self, name: &str) -> String {
        self.packages.iter().find(|package| package.name == name).unwrap().id.clone()
    }

    /// These packages and all that they are built from.
    fn made_of(&self, roots: &[String]) -> Vec<&Package> {
        let nodes: BTreeMap<_, _> =
            self.resolve.nodes.iter().map(|node| (&node.id, node)).collect();
        let (mut found, mut open) = (BTreeSet::new(), roots.to_vec());
        while let Some(id) = open.pop() {
            let needed = nodes[&id].deps.iter().filter(|dependency| dependency.is_normal());
            if found.insert(id.clone()) {
                open.extend(needed.map(|dependency| dependency.pkg.clone()));
            }
        }
        found.iter().map(|id| self.package(id)).collect()
    }
}

/// The licences that deny.toml allows.
fn allowed_licences() -> Vec<String> {
    let rules = include_str!("../deny.toml");
    let list = rules.split_once("[licenses]\nallow = ").unwrap().1.lines().next().unwrap();
    serde_json::from_str(list).unwrap()
}

/// What the library itself asks for, with these features.
fn needed(features: &[&str]) -> BTreeSet<String> {
    let metadata = metadata_with(features);
    let library = metadata.id("libsplit");
    let node = metadata.resolve.nodes.iter().find(|node| node.id == library).unwrap();
    let needed = node.deps.iter().filter(|dependency| dependency.is_normal());
    needed.map(|of| metadata.package(&of.pkg).name.clone()).collect()
}

#[test]
fn the_library_needs_three_packages() {
    let three = ["half", "num-complex", "thiserror"].map(String::from);
    assert_eq!(needed(&[]), BTreeSet::from(three.clone()));
    assert_eq!(needed(&["--no-default-features", "--features=capi"]), BTreeSet::from(three));
}

#[test]
fn features_need_the_package_of_their_name() {
    for feature in ["ndarray", "rayon"] {
        let with = needed(&["--features", feature]);
        assert_eq!(with.difference(&needed(&[])).collect::<Vec<_>>(), [feature]);
    }
}

#[test]
fn nothing_that_the_library_needs_wants_a_newer_rust() {
    let version = |text: &str| -> (u32, u32) {
        let mut numbers = text.split('.').map(|number| number.parse().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    };
    let metadata = metadata();
    let ours = version(env!("CARGO_PKG_RUST_VERSION"));
    let needed = metadata.made_of(&[metadata.id("libsplit")]);
    assert!(needed.len() > 3);
    for package in needed {
        let theirs = package.rust_version.as_deref().map_or((0, 0), version);
        assert!(theirs <= ours, "{} needs Rust {theirs:?}, libsplit says {ours:?}", package.name);
    }
}

#[test]
fn every_package_comes_from_the_registry_or_this_repository() {
    let lock = include_str!("../Cargo.lock");
    let sources: Vec<_> = lock.lines().filter(|line| line.starts_with("source = ")).collect();
    for source in &sources {
        assert!(source.starts_with("source = \"registry+"), "{source}");
        assert!(source.ends_with("/crates.io-index\""), "{source}");
    }
    let without_source = lock.matches("[[package]]\n").count() - sources.len();
    assert_eq!(without_source, metadata().workspace_members.len());
}

#[test]
fn every_licence_of_what_is_built_is_allowed() {
    let (metadata, allowed) = (metadata(), allowed_licences());
    for package in metadata.made_of(&metadata.workspace_members) {
        let name = &package.name;
        let text = package.license.as_deref().unwrap_or_else(|| panic!("{name} has no licence"));
        let licence = spdx::Expression::parse_mode(text, spdx::ParseMode::LAX).unwrap();
        let fits =
            licence.evaluate(|wanted| allowed.iter().any(|licence| *licence == wanted.to_string()));
        assert!(fits, "{name} is under {text}; deny.toml allows {allowed:?}");
    }
}

/// The build files, scripts and Python programs of this repository.
fn scripts(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            let is_ours = !["target", "build", "out"].contains(&name);
            if is_ours && (!name.starts_with('.') || name == ".ci") {
                scripts(&path, found);
            }
        } else if ["Makefile", "CMakeLists.txt", "run"].contains(&name)
            || path
                .extension()
                .is_some_and(|kind| ["cmake", "py", "sh"].map(OsStr::new).contains(&kind))
        {
            found.push(path);
        }
    }
}

/// What Cargo.lock says is what is built, or the build fails.
#[test]
fn scripts_call_cargo_with_locked() {
    let commands = ["bench", "build", "check", "clippy", "doc", "install", "run", "rustc", "test"];
    let (mut files, mut calls) = (Vec::new(), 0);
    scripts(Path::new(env!("CARGO_MANIFEST_DIR")), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.lines().filter(|line| !line.contains("echo ") && !line.starts_with('#'));
        for line in code.map(|line| line.split("##").next().unwrap()) {
            let is_call = |command: &&str| {
                let cargo =
                    ["cargo", "cargo}", "CARGO}"].map(|cargo| format!("{cargo} {command} "));
                cargo.iter().any(|call| line.contains(call))
            };
            if commands.iter().any(is_call) {
                calls += 1;
                assert!(line.contains(" --locked"), "{}: {line}", file.display());
            }
        }
    }
    assert!(calls >= 8, "only {calls} calls found");
}
