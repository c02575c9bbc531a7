//! The binary interface, as the library's own debug information has it, is the committed one.
//!
//! `abi/libsplit.abi` has a line for every exported function and for every field of a structure,
//! with its offset. What the compiler made of the sources is compared, not the sources.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use gimli::{AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit};
use object::{Object, ObjectSection};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// An entry of the debug information: a function, a type, a parameter or a field.
struct Entry<'a> {
    library: &'a Library<'a>,
    unit: &'a Unit<Bytes<'a>>,
    at: DebuggingInformationEntry<'a, 'a, Bytes<'a>>,
}

struct Library<'a> {
    dwarf: Dwarf<Bytes<'a>>,
    units: Vec<Unit<Bytes<'a>>>,
}

impl<'a> Entry<'a> {
    fn value(&self, attribute: gimli::DwAt) -> Option<AttributeValue<Bytes<'a>>> {
        self.at.attr_value(attribute).unwrap()
    }

    fn number(&self, attribute: gimli::DwAt) -> u64 {
        self.value(attribute).unwrap().udata_value().unwrap()
    }

    fn name(&self) -> Option<String> {
        let name = self.value(gimli::DW_AT_name)?;
        let name = self.library.dwarf.attr_string(self.unit, name).unwrap();
        Some(name.to_string().unwrap().replace("libsplit::ffi::types::", ""))
    }

    /// The type of a parameter, of a field, or of what a function returns.
    fn type_name(&self) -> String {
        let (unit, offset) = match self.value(gimli::DW_AT_type) {
            Some(AttributeValue::UnitRef(offset)) => (self.unit, offset),
            Some(AttributeValue::DebugInfoRef(at)) => self.library.find(at),
            other => panic!("no type: {other:?}"),
        };
        let at = unit.entry(offset).unwrap();
        let of = Entry { library: self.library, unit, at };
        of.name().unwrap_or_else(|| of.array())
    }

    fn array(&self) -> String {
        let lengths = self.children(gimli::DW_TAG_subrange_type);
        format!("[{}; {}]", self.type_name(), lengths[0].number(gimli::DW_AT_count))
    }

    fn children(&self, tag: gimli::DwTag) -> Vec<Entry<'a>> {
        let mut tree = self.unit.entries_tree(Some(self.at.offset())).unwrap();
        let mut nodes = tree.root().unwrap().children();
        let mut found = Vec::new();
        while let Some(node) = nodes.next().unwrap() {
            if node.entry().tag() == tag {
                found.push(Entry { at: node.entry().clone(), ..*self });
            }
        }
        found
    }

    fn function(&self, name: &str) -> String {
        let parameters = self.children(gimli::DW_TAG_formal_parameter);
        let parameters: Vec<_> = parameters.iter().map(Entry::type_name).collect();
        format!("{name}({}) -> {}\n", parameters.join(", "), self.type_name())
    }

    fn structure(&self, name: &str) -> String {
        let mut text = String::new();
        for field in self.children(gimli::DW_TAG_member) {
            let offset = field.number(gimli::DW_AT_data_member_location);
            let (field, of) = (field.name().unwrap(), field.type_name());
            writeln!(text, "{name} at {offset}: {field}: {of}").unwrap();
        }
        // One that tells its size may grow.
        if !text.contains(": struct_size:") {
            let bytes = self.number(gimli::DW_AT_byte_size);
            writeln!(text, "{name} in all: {bytes} bytes").unwrap();
        }
        text
    }
}

impl<'a> Library<'a> {
    fn parse(file: &'a [u8]) -> Self {
        let file = object::File::parse(file).unwrap();
        let section = |id: gimli::SectionId| {
            let data = file.section_by_name(id.name()).map(|section| section.data().unwrap());
            Ok::<_, gimli::Error>(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
        };
        let dwarf = Dwarf::load(section).unwrap();
        let (mut headers, mut units) = (dwarf.units(), Vec::new());
        while let Some(header) = headers.next().unwrap() {
            units.push(dwarf.unit(header).unwrap());
        }
        Self { dwarf, units }
    }

    /// The unit of an entry, and where it is in that.
    fn find(&self, at: gimli::DebugInfoOffset) -> (&Unit<Bytes<'a>>, gimli::UnitOffset) {
        let mut units = self.units.iter();
        units.find_map(|unit| Some((unit, at.to_unit_offset(&unit.header)?))).unwrap()
    }

    /// What there is of functions and structures by names of the library.
    fn interface(&'a self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for unit in &self.units {
            let mut entries = unit.entries();
            while let Some((_, entry)) = entries.next_dfs().unwrap() {
                let entry = Entry { library: self, unit, at: entry.clone() };
                let Some(name) = entry.name().filter(|name| name.starts_with("libsplit_")) else {
                    continue;
                };
                match entry.at.tag() {
                    gimli::DW_TAG_subprogram => found.insert(entry.function(&name)),
                    gimli::DW_TAG_structure_type => found.insert(entry.structure(&name)),
                    _ => false,
                };
            }
        }
        found
    }
}

fn lines_only_in(text: &str, other: &str) -> String {
    let only = text.lines().filter(|line| !other.lines().any(|other| other == *line));
    only.flat_map(|line| ["\n  ", line]).collect()
}

/// Builds the C artifact with all its debug information.
fn c_library() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi");
    let arguments = ["rustc", "--locked", "--lib", "--crate-type=cdylib", "--features=capi"];
    let mut cargo = Command::new(env!("CARGO"));
    let status = cargo.args(arguments).arg("--target-dir").arg(&target).status().unwrap();
    assert!(status.success());
    target.join("debug/liblibsplit.so")
}

#[test]
fn the_binary_interface_is_the_committed_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("abi/libsplit.abi");
    let library = std::fs::read(c_library()).unwrap();
    let found: String = Library::parse(&library).interface().into_iter().collect();
    if std::env::var_os("LIBSPLIT_UPDATE_ABI").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let (gone, new) = (lines_only_in(&committed, &found), lines_only_in(&found, &committed));
    assert!(gone.is_empty(), "this breaks programs: gone is{gone}\nand in its place{new}");
    assert!(new.is_empty(), "run `make abi-baseline` and commit what was added:{new}");
}
