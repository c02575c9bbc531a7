//! The header of a `.safetensors` file: a length in 8 bytes, then JSON.
//!
//! The crate `safetensors` reads whole files and keeps neither the order of the metadata nor a
//! name that is there twice; this reads the header alone, and an error has both numbers. Tests and
//! a fuzz target hold the two against each other.

use crate::{invalid, Invalid, Result};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::str::from_utf8;

/// An element type: its name in the format, and the bits of one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dtype {
    /// Its name, as `BF16`.
    pub name: &'static str,
    /// Bits of one element.
    pub bits: u64,
}

/// All that the format knows.
pub const DTYPES: [Dtype; 22] = {
    const fn dtype(name: &'static str, bits: u64) -> Dtype {
        Dtype { name, bits }
    }
    [
        dtype("BOOL", 8),
        dtype("F4", 4),
        dtype("F6_E2M3", 6),
        dtype("F6_E3M2", 6),
        dtype("U8", 8),
        dtype("I8", 8),
        dtype("F8_E5M2", 8),
        dtype("F8_E4M3", 8),
        dtype("F8_E8M0", 8),
        dtype("F8_E4M3FNUZ", 8),
        dtype("F8_E5M2FNUZ", 8),
        dtype("I16", 16),
        dtype("U16", 16),
        dtype("F16", 16),
        dtype("BF16", 16),
        dtype("I32", 32),
        dtype("U32", 32),
        dtype("F32", 32),
        dtype("C64", 64),
        dtype("F64", 64),
        dtype("I64", 64),
        dtype("U64", 64),
    ]
};

impl Dtype {
    /// Bytes of so many elements; none if they are not whole, or overflows 64 bits.
    #[must_use]
    pub fn bytes(self, shape: &[u64]) -> Option<u64> {
        let bits = shape.iter().try_fold(self.bits, |bits, extent| bits.checked_mul(*extent))?;
        (bits % 8 == 0).then_some(bits / 8)
    }
}

/// A tensor in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its element type.
    pub dtype: Dtype,
    /// Its extents.
    pub shape: Vec<u64>,
    /// Where its bytes begin, counted from the end of the header.
    pub begin: u64,
    /// Where they end.
    pub end: u64,
}

/// What a file says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// The tensors, in the order of their bytes.
    pub tensors: Vec<Tensor>,
    /// The entries of `__metadata__`, in the file's order, if there is one.
    pub metadata: Option<Vec<(String, String)>>,
}

/// The longest header that the format allows.
pub const LONGEST: u64 = 100_000_000;

/// How long the header's text is, from a file's first 8 bytes and the file's size.
///
/// # Errors
/// It cannot be that long.
pub fn text_length(begin: [u8; 8], file_bytes: u64) -> Result<u64> {
    let length = u64::from_le_bytes(begin);
    if length > LONGEST {
        invalid!("not a safetensors file: its header would take {length} bytes, and the format allows {LONGEST}");
    }
    if length + 8 > file_bytes {
        invalid!("truncated: the header takes 8 + {length} bytes, the file has {file_bytes}");
    }
    Ok(length)
}

impl Header {
    /// Reads the text of a header, for a file with so many bytes after it.
    ///
    /// # Errors
    /// The text is not a header, or not that of so many bytes.
    pub fn parse(text: &[u8], data_bytes: u64) -> Result<Self> {
        if text.first() != Some(&b'{') {
            invalid!("not a safetensors file: its header does not begin with '{{'");
        }
        let text = from_utf8(text).map_err(|error| Invalid(format!("header: {error}")))?;
        let raw: Raw =
            serde_json::from_str(text).map_err(|error| Invalid(format!("header: {error}")))?;
        let tensors = raw.tensors.into_iter().map(|(name, raw)| raw.tensor(name));
        let mut tensors = tensors.collect::<Result<Vec<_>>>()?;
        tensors.sort_by_key(|tensor| (tensor.begin, tensor.end));
        check_offsets(&tensors, data_bytes)?;
        Ok(Self { tensors, metadata: raw.metadata })
    }

    /// At most so many bytes is the text of the header of any file that has these tensors, or parts of them.
    #[must_use]
    pub fn longest_bytes(&self) -> u64 {
        // Each character may take a few in JSON, and each number 20 digits.
        let text = |text: &str| 6 * text.len() as u64 + 4;
        let metadata = self.metadata.iter().flatten();
        let metadata: u64 = metadata.map(|(key, value)| text(key) + text(value)).sum();
        let tensors = self.tensors.iter();
        let tensors = tensors.map(|it| text(&it.name) + 100 + 21 * it.shape.len() as u64);
        tensors.sum::<u64>() + metadata + 100
    }

    /// The beginning of a file with these tensors: length and text, padded to 8 bytes.
    ///
    /// # Errors
    /// It would be longer than the format allows, so that nobody could read it.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut entries = Vec::new();
        if let Some(metadata) = &self.metadata {
            let pairs =
                metadata.iter().map(|(key, value)| format!("{}:{}", json(key), json(value)));
            entries.push(format!("\"__metadata__\":{{{}}}", pairs.collect::<Vec<_>>().join(",")));
        }
        entries.extend(self.tensors.iter().map(|tensor| {
            let Tensor { name, dtype, shape, begin, end } = tensor;
            let shape = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let mut text = json(name);
            let _ = write!(text, ":{{\"dtype\":\"{}\",\"shape\":[{shape}],", dtype.name);
            let _ = write!(text, "\"data_offsets\":[{begin},{end}]}}");
            text
        }));
        let text = format!("{{{}}}", entries.join(","));
        let length = text.len().next_multiple_of(8);
        if length as u64 > LONGEST {
            invalid!("its header would take {length} bytes, and the format allows {LONGEST}: divide the model into more files");
        }
        let mut bytes = (length as u64).to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(8 + length, b' ');
        Ok(bytes)
    }
}

/// A string as JSON has it.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Each tensor begins where the one before it ends, and the last ends with the file.
fn check_offsets(tensors: &[Tensor], data_bytes: u64) -> Result<()> {
    let mut end = 0;
    let mut before: Option<&Tensor> = None;
    for tensor in tensors {
        let (name, begin) = (&tensor.name, tensor.begin);
        if begin > end {
            invalid!(
                "tensor {name} begins at byte {begin}: bytes {end} to {begin} belong to no tensor"
            );
        }
        if begin < end {
            let other = before.map_or("", |before| before.name.as_str());
            invalid!("tensor {name} begins at byte {begin}, within {other}, which ends at {end}");
        }
        end = tensor.end;
        before = Some(tensor);
    }
    if end > data_bytes {
        invalid!("truncated: the tensors take {end} bytes, the file has {data_bytes} for them");
    }
    if end < data_bytes {
        invalid!("the tensors take {end} bytes, but the file has {data_bytes}: the others belong to no tensor");
    }
    Ok(())
}

/// The header as it is written, nothing of it checked.
#[derive(Default)]
struct Raw {
    tensors: Vec<(String, RawTensor)>,
    metadata: Option<Vec<(String, String)>>,
}

#[derive(Deserialize)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl RawTensor {
    fn tensor(self, name: String) -> Result<Tensor> {
        let Self { dtype, shape, data_offsets: (begin, end) } = self;
        let Some(dtype) = DTYPES.into_iter().find(|known| known.name == dtype) else {
            invalid!("tensor {name}: {dtype:?} is not a safetensors dtype");
        };
        let Some(length) = end.checked_sub(begin) else {
            invalid!("tensor {name} begins at byte {begin} and ends before it, at {end}");
        };
        match dtype.bytes(&shape) {
            Some(bytes) if bytes == length => Ok(Tensor { name, dtype, shape, begin, end }),
            Some(bytes) => invalid!(
                "tensor {name}: {} of shape {shape:?} takes {bytes} bytes, \
                 its offsets {begin} to {end} have {length}",
                dtype.name
            ),
            None => invalid!(
                "tensor {name}: {} of shape {shape:?} is not a whole number of bytes, \
                 or overflows 64 bits",
                dtype.name
            ),
        }
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Raw, A::Error> {
        let (mut raw, mut names) = (Raw::default(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format!("{name:?} appears twice")));
            }
            if name == "__metadata__" {
                raw.metadata = map.next_value::<Option<Pairs>>()?.map(|pairs| pairs.0);
            } else {
                raw.tensors.push((name, map.next_value()?));
            }
        }
        Ok(raw)
    }
}

/// An object of strings, in its order.
struct Pairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Pairs, A::Error> {
        let (mut pairs, mut keys) = (Vec::new(), HashSet::new());
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format!("metadata {key:?} appears twice")));
            }
            pairs.push((key, value));
        }
        Ok(Pairs(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::{text_length, Header, DTYPES};

    fn error(text: &str, data_bytes: u64) -> String {
        Header::parse(text.as_bytes(), data_bytes).unwrap_err().to_string()
    }

    #[test]
    fn the_crate_safetensors_knows_the_same_types() {
        for dtype in DTYPES {
            let theirs: safetensors::Dtype =
                serde_json::from_str(&format!("{:?}", dtype.name)).unwrap();
            assert_eq!(theirs.bitsize() as u64, dtype.bits, "{}", dtype.name);
        }
    }

    #[test]
    fn the_crate_safetensors_reads_what_is_written() {
        let text = r#"{"__metadata__":{"z":"1","a":"\"\n"},
            "é\"":{"dtype":"F4","shape":[3,2],"data_offsets":[4,7]},
            "a":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},
            "empty":{"dtype":"I64","shape":[0,5],"data_offsets":[4,4]}}"#;
        let header = Header::parse(text.as_bytes(), 7).unwrap();
        let names: Vec<_> = header.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
        assert_eq!(names, ["a", "empty", "é\""]);
        let mut file = header.to_bytes().unwrap();
        assert_eq!(file.len() % 8, 0);
        assert_eq!(Header::parse(&file[8..], 7).unwrap(), header);
        file.extend([1, 2, 3, 4, 5, 6, 7]);
        let theirs = safetensors::SafeTensors::deserialize(&file).unwrap();
        assert_eq!(theirs.tensor("é\"").unwrap().data(), [5, 6, 7]);
        let (_, theirs) = safetensors::SafeTensors::read_metadata(&file).unwrap();
        assert_eq!(theirs.metadata().as_ref().unwrap()["a"], "\"\n");
    }

    #[test]
    fn text_of_no_utf_8_is_refused_where_nobody_reads_it_too() {
        let text = br#"{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":"?"}}"#;
        assert!(Header::parse(text, 1).is_ok());
        let text = text.map(|byte| if byte == b'?' { 0xFF } else { byte });
        assert!(Header::parse(&text, 1).unwrap_err().to_string().contains("utf-8"));
    }

    #[test]
    fn what_is_wrong_is_told_with_both_numbers() {
        let one = |shape: &str, offsets: &str| {
            format!(r#"{{"w":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#)
        };
        for (text, bytes, words) in [
            (one("[2]", "[0,8]"), 7, &["truncated", "8", "7"][..]),
            (one("[2]", "[0,8]"), 9, &["8", "9"]),
            (one("[2]", "[0,12]"), 12, &["w", "8", "12"]),
            (one("[2]", "[4,12]"), 12, &["w", "4", "0"]),
            (one("[2]", "[8,0]"), 8, &["w", "8", "0", "before"]),
            (one("[-1]", "[0,8]"), 8, &["-1"]),
            (one("[4294967296,4294967296]", "[0,0]"), 0, &["w", "overflows"]),
            (one("[2]", "[0,8]").replace("F32", "F33"), 8, &["w", "F33"]),
            (one("[3]", "[0,1]").replace("F32", "F4"), 1, &["w", "whole"]),
            (r#"{"__metadata__":{"a":1}}"#.into(), 0, &["string"]),
            (r#"{"__metadata__":{"a":"1","a":"2"}}"#.into(), 0, &["twice"]),
            (
                r#"{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                "w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#
                    .into(),
                2,
                &["w", "twice"],
            ),
            (
                r#"{"v":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                "w":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}"#
                    .into(),
                6,
                &["w", "v", "2", "4"],
            ),
            (" {}".into(), 0, &["{"]),
            ("[]".into(), 0, &["{"]),
            ("{}}".into(), 0, &["header"]),
            ("{".repeat(100_000), 0, &["header"]),
        ] {
            let error = error(&text, bytes);
            assert!(words.iter().all(|word| error.contains(word)), "{text:.80}: {error}");
        }
        assert!(text_length([0xff; 8], 100).unwrap_err().to_string().contains("100000000"));
        assert!(text_length([93, 0, 0, 0, 0, 0, 0, 0], 100)
            .unwrap_err()
            .to_string()
            .contains("93"));
        assert_eq!(text_length([92, 0, 0, 0, 0, 0, 0, 0], 100).unwrap(), 92);
    }
}
