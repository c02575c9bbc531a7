//! The committed header is the one that the sources describe.

use std::io::Write;
use std::path::Path;

const EXPORTED: &str = "#[cfg_attr(feature = \"capi\", unsafe(no_mangle))]";

/// Names the calling convention in each declaration of a function or of a pointer to one, which cbindgen cannot do.
fn with_calling_convention(header: &str) -> String {
    const CONVENTION: &str = "LIBSPLIT_CALL ";
    let (mut convened, mut indent) = (String::new(), 0);
    for line in header.lines() {
        let code = !line.starts_with([' ', '#', '/', '*']) && !line.contains(" inline ");
        let name = line.find("(*libsplit_").map(|at| at + 1).or_else(|| {
            let open = line.find('(')?;
            line[..open].rfind("libsplit_")
        });
        if let Some(at) = name.filter(|_| code) {
            let (before, after) = line.split_at(at);
            convened += &[before, CONVENTION, after].concat();
            indent = CONVENTION.len();
        } else {
            convened += &" ".repeat(if line.starts_with("  ") { indent } else { 0 });
            convened += line;
        }
        if line.ends_with(';') {
            indent = 0;
        }
        convened.push('\n');
    }
    convened
}

#[test]
fn the_committed_header_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("include/cbindgen.toml")).unwrap();
    // cbindgen does not look into cfg_attr, which exports the functions only from the C artifact.
    let exports = std::fs::read_to_string(root.join("src/ffi/exports.rs")).unwrap();
    let exports = exports.replace(EXPORTED, "#[unsafe(no_mangle)]");
    let mut source = tempfile::NamedTempFile::new().unwrap();
    source.write_all(exports.as_bytes()).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/types.rs"))
        .with_src(source.path())
        .generate()
        .unwrap();
    let mut generated = Vec::new();
    bindings.write(&mut generated);
    let generated = with_calling_convention(&String::from_utf8(generated).unwrap());
    let path = root.join("include/libsplit.h");
    if std::env::var_os("LIBSPLIT_UPDATE_HEADER").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "include/libsplit.h differs from the sources: run `make header` and commit the result"
    );
}
