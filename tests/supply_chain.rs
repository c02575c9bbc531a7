//! What libsplit, and what is built on it, depends on according to `cargo metadata`: sources, licences, Rust versions.
//!
//! These are the rules of `tools/deny.toml` that need no network; `make deny` asks cargo-deny.

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
    source: Option<String>,
    manifest_path: PathBuf,
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
    kind: Option<String>, // "build", "dev", or null for a normal one
}

impl Dependency {
    /// Whether the package itself needs it, not only its build script or its tests.
    fn is_normal(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.is_none())
    }
}

/// The packages that are built with all features.
fn metadata() -> Metadata {
    metadata_with(&["--all-features"])
}

fn metadata_with(features: &[&str]) -> Metadata {
    metadata_of(Path::new(env!("CARGO_MANIFEST_DIR")), features)
}

/// Returns the metadata of the workspace in a directory.
fn metadata_of(directory: &Path, features: &[&str]) -> Metadata {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--format-version=1"])
        .args(features)
        .args(["--filter-platform", env!("LIBSPLIT_TARGET")])
        .current_dir(directory)
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

    /// Returns these packages and everything that they are built from.
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

/// Returns the licences that deny.toml allows to all packages, and to those that it names.
fn allowed_licences() -> (Vec<String>, Vec<(&'static str, Vec<String>)>) {
    let rules = include_str!("../tools/deny.toml");
    let list = |text: &str| serde_json::from_str(text).unwrap();
    let all = rules.split_once("[licenses]\nallow = ").unwrap().1.lines().next().unwrap();
    let of_package = |line: &'static str| {
        let (name, allowed) = line.strip_prefix("    { crate = \"")?.split_once("\", allow = ")?;
        Some((name, list(allowed.strip_suffix(" },")?)))
    };
    (list(all), rules.lines().filter_map(of_package).collect())
}

/// The directories of all workspaces: the library's, and those of what is built on it.
fn workspaces() -> Vec<PathBuf> {
    let mut locks = Vec::new();
    files(Path::new(env!("CARGO_MANIFEST_DIR")), &|path| path.ends_with("Cargo.lock"), &mut locks);
    assert!(locks.len() >= 5, "only {locks:?} found");
    locks.iter().map(|lock| lock.parent().unwrap().to_owned()).collect()
}

/// Returns what the library itself depends on with these features.
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
    for directory in workspaces() {
        let lock = std::fs::read_to_string(directory.join("Cargo.lock")).unwrap();
        let sources: Vec<_> = lock.lines().filter(|line| line.starts_with("source = ")).collect();
        for source in &sources {
            assert!(source.starts_with("source = \"registry+"), "{source}");
            assert!(source.ends_with("/crates.io-index\""), "{source}");
        }
        let without_source = lock.matches("[[package]]\n").count() - sources.len();
        let metadata = metadata_of(&directory, &["--all-features"]);
        let ours = metadata.packages.iter().filter(|package| package.source.is_none());
        let ours: Vec<_> = ours.map(|package| &package.manifest_path).collect();
        assert!(ours.iter().all(|path| path.starts_with(env!("CARGO_MANIFEST_DIR"))), "{ours:?}");
        assert_eq!(without_source, ours.len(), "{}", directory.display());
    }
}

#[test]
fn every_licence_of_what_is_built_is_allowed() {
    let (allowed, exceptions) = allowed_licences();
    assert!(!exceptions.is_empty());
    for directory in workspaces() {
        let metadata = metadata_of(&directory, &["--all-features"]);
        for package in metadata.made_of(&metadata.workspace_members) {
            let name = &package.name;
            let text =
                package.license.as_deref().unwrap_or_else(|| panic!("{name} has no licence"));
            let licence = spdx::Expression::parse_mode(text, spdx::ParseMode::LAX).unwrap();
            let own = exceptions.iter().filter(|(of, _)| of == name);
            let allowed: Vec<_> = own.flat_map(|(_, more)| more).chain(&allowed).collect();
            let is_allowed = |licence: String| allowed.iter().any(|allowed| **allowed == licence);
            let fits = licence.evaluate(|wanted| is_allowed(wanted.to_string()));
            assert!(fits, "{name} is under {text}; deny.toml allows {allowed:?}");
        }
    }
}

/// Finds the files of this repository that are wanted.
fn files(directory: &Path, is_wanted: &dyn Fn(&Path) -> bool, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            let is_ours = !["target", "build", "out", "vendor"].contains(&name);
            if is_ours && (!name.starts_with('.') || name == ".ci") {
                files(&path, is_wanted, found);
            }
        } else if is_wanted(&path) {
            found.push(path);
        }
    }
}

/// Returns whether it is a build file, a script or a Python program.
fn is_script(path: &Path) -> bool {
    let is_named = |name: &&str| path.ends_with(name);
    ["Makefile", "CMakeLists.txt", "run"].iter().any(is_named)
        || path
            .extension()
            .is_some_and(|kind| ["cmake", "py", "sh"].map(OsStr::new).contains(&kind))
}

/// What Cargo.lock lists is what is built, or the build fails.
#[test]
fn scripts_call_cargo_with_locked() {
    let commands = ["bench", "build", "check", "clippy", "doc", "install", "run", "rustc", "test"];
    let (mut found, mut calls) = (Vec::new(), 0);
    files(Path::new(env!("CARGO_MANIFEST_DIR")), &is_script, &mut found);
    for file in found {
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
