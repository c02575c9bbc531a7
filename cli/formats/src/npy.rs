//! The `.npy` format: the header of an array, and those of its pieces.
//!
//! The dtype is kept as the file spells it, so that any dtype that NumPy can describe comes out as
//! it went in; only its size is worked out.

use crate::literal::{self, Value};
use crate::{invalid, Invalid, Result};

/// What a file says of its array.
#[derive(Debug, Clone)]
pub struct Header {
    /// The dtype as the file spells it: `'<f4'`, or a list of fields.
    pub descr: String,
    /// The code of a plain dtype without byte order, as `f4`, however the file spells it; empty for
    /// structures.
    pub code: String,
    /// Bytes of one item.
    pub size: usize,
    /// Its extents.
    pub shape: Vec<i64>,
    /// Whether the first axis is the innermost in the file.
    pub fortran: bool,
    /// Version 3, whose text is UTF-8.
    is_utf8: bool,
}

impl Header {
    /// The header at the beginning of a file, and how many bytes it takes.
    ///
    /// # Errors
    /// The bytes are no such header, or end within it.
    pub fn parse(file: &[u8]) -> Result<(Self, usize)> {
        let [0x93, b'N', b'U', b'M', b'P', b'Y', version @ 1..=3, _, rest @ ..] = file else {
            invalid!("not an .npy file, or one of an unknown version");
        };
        // The length of the text takes 2 bytes in version 1, 4 in the others.
        let room = if *version == 1 { 2 } else { 4 };
        let (text, data) = rest
            .split_at_checked(room)
            .and_then(|(length, rest)| rest.split_at_checked(little_endian(length)))
            .ok_or_else(|| Invalid("truncated: the file ends within its header".into()))?;
        let is_utf8 = *version == 3;
        let text = if is_utf8 {
            let text = std::str::from_utf8(text);
            text.map_err(|_| Invalid("header: not UTF-8".into()))?.to_owned()
        } else {
            text.iter().map(|&latin1| char::from(latin1)).collect()
        };
        let header = Self::from_text(&text, is_utf8);
        let header = header.map_err(|error| Invalid(format!("header: {error}")))?;
        Ok((header, file.len() - data.len()))
    }

    fn from_text(text: &str, is_utf8: bool) -> Result<Self> {
        let entries = literal::dictionary(text)?;
        let entry = |key: &str| {
            let mut found = entries.iter().filter(|(name, ..)| name == key);
            match (found.next(), found.next()) {
                (Some((_, value, text)), None) => Ok((value, *text)),
                (None, _) => invalid!("{key} is missing"),
                _ => invalid!("{key} appears twice"),
            }
        };
        let (descr, order, shape) = (entry("descr")?, entry("fortran_order")?, entry("shape")?);
        let Some(size) = item_size(descr.0) else {
            if has_objects(descr.0) {
                invalid!(
                    "dtype {} contains Python objects, which are pickled and cannot be split",
                    descr.1
                );
            }
            invalid!(
                "dtype {} is not built into NumPy: save the array with another dtype",
                descr.1
            );
        };
        let Some(extents) = extents(shape.0) else { invalid!("{} is not a shape", shape.1) };
        let Value::Boolean(fortran) = *order.0 else {
            invalid!("fortran_order {} is neither True nor False", order.1);
        };
        let code = match descr.0 {
            Value::Text(text) => plain(text).map_or(String::new(), |(code, _)| code),
            _ => String::new(),
        };
        Ok(Self { descr: descr.1.into(), code, size, shape: extents, fortran, is_utf8 })
    }

    /// Bytes of an array of this dtype.
    ///
    /// # Errors
    /// There are more than can be numbered.
    pub fn bytes(&self, shape: &[i64]) -> Result<usize> {
        let bytes = product(shape).and_then(|count| count.checked_mul(self.size));
        let bytes = bytes.filter(|bytes| isize::try_from(*bytes).is_ok());
        bytes.ok_or_else(|| {
            Invalid(format!("shape {}: more bytes than 63 bits can count", tuple(shape)))
        })
    }

    /// The header of a piece, in C order, padded so that its data is aligned to 64 bytes.
    #[must_use]
    pub fn of_piece(&self, shape: &[i64]) -> Vec<u8> {
        let (descr, shape) = (&self.descr, tuple(shape));
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        let text: Vec<u8> = if self.is_utf8 {
            text.into_bytes()
        } else {
            text.chars().map(|latin1| u8::try_from(latin1).unwrap_or(b'?')).collect()
        };
        let version: u8 = match text.len() {
            _ if self.is_utf8 => 3,
            ..65_000 => 1,
            _ => 2,
        };
        let before = if version == 1 { 10 } else { 12 };
        let end = (before + text.len() + 1).next_multiple_of(64);
        let mut header = b"\x93NUMPY".to_vec();
        header.extend([version, 0]);
        header.extend(&(end - before).to_le_bytes()[..before - 8]);
        header.extend(text);
        header.resize(end - 1, b' ');
        header.push(b'\n');
        header
    }
}

fn little_endian(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Types by the names and letters that NumPy has for them, with the code of each.
const NAMES: [(&str, &str); 68] = [
    ("?", "b1"),
    ("b", "i1"),
    ("B", "u1"),
    ("h", "i2"),
    ("H", "u2"),
    ("i", "i4"),
    ("I", "u4"),
    ("l", "i8"),
    ("L", "u8"),
    ("q", "i8"),
    ("Q", "u8"),
    ("p", "i8"),
    ("P", "u8"),
    ("n", "i8"),
    ("N", "u8"),
    ("e", "f2"),
    ("f", "f4"),
    ("d", "f8"),
    ("g", "f16"),
    ("F", "c8"),
    ("D", "c16"),
    ("G", "c32"),
    ("c", "S1"),
    ("S", "S0"),
    ("U", "U0"),
    ("V", "V0"),
    ("m", "m8"),
    ("M", "M8"),
    ("bool", "b1"),
    ("int8", "i1"),
    ("int16", "i2"),
    ("int32", "i4"),
    ("int64", "i8"),
    ("uint8", "u1"),
    ("uint16", "u2"),
    ("uint32", "u4"),
    ("uint64", "u8"),
    ("float16", "f2"),
    ("float32", "f4"),
    ("float64", "f8"),
    ("float128", "f16"),
    ("complex64", "c8"),
    ("complex128", "c16"),
    ("complex256", "c32"),
    ("byte", "i1"),
    ("ubyte", "u1"),
    ("short", "i2"),
    ("ushort", "u2"),
    ("intc", "i4"),
    ("uintc", "u4"),
    ("int", "i8"),
    ("uint", "u8"),
    ("long", "i8"),
    ("ulong", "u8"),
    ("longlong", "i8"),
    ("ulonglong", "u8"),
    ("intp", "i8"),
    ("uintp", "u8"),
    ("half", "f2"),
    ("single", "f4"),
    ("double", "f8"),
    ("float", "f8"),
    ("longdouble", "f16"),
    ("csingle", "c8"),
    ("cdouble", "c16"),
    ("complex", "c16"),
    ("clongdouble", "c32"),
    ("bool_", "b1"),
];

/// The code of a type that is not a structure, without byte order, and bytes of one item.
fn plain(text: &str) -> Option<(String, usize)> {
    let text = text.strip_prefix(['<', '>', '=', '|']).unwrap_or(text);
    let code = NAMES.iter().find(|(name, _)| *name == text).map_or(text, |(_, code)| *code);
    let kind = code.get(..1)?;
    let size = code.get(1..)?.split('[').next()?.parse::<usize>().ok()?;
    let bytes = match kind {
        "b" if size == 1 => size,
        "i" | "u" if [1, 2, 4, 8].contains(&size) => size,
        "f" if [2, 4, 8, 12, 16].contains(&size) => size,
        "c" if [8, 16, 24, 32].contains(&size) => size,
        "m" | "M" if size == 8 => size,
        "S" | "a" | "V" => size,
        "U" => size.checked_mul(4)?,
        _ => return None,
    };
    Some((code.into(), bytes))
}

/// Whether a type is, or has within it, that of Python objects.
fn has_objects(descr: &Value) -> bool {
    match descr {
        Value::Text(text) => {
            let text = text.strip_prefix(['<', '>', '=', '|']).unwrap_or(text);
            text == "object"
                || text
                    .strip_prefix('O')
                    .is_some_and(|size| size.parse::<u8>().is_ok() || size.is_empty())
        }
        Value::List(within) | Value::Tuple(within) => within.iter().any(has_objects),
        _ => false,
    }
}

/// Bytes of one item, if they are a fixed number.
fn item_size(descr: &Value) -> Option<usize> {
    match descr {
        Value::Text(text) => plain(text).map(|(_, bytes)| bytes),
        // Fields: name, type and perhaps a shape.
        Value::List(fields) => fields.iter().try_fold(0_usize, |sum, field| match field {
            Value::Tuple(field) => sum.checked_add(array_size(field.get(1..)?)?),
            _ => None,
        }),
        Value::Tuple(array) => array_size(array),
        _ => None,
    }
}

/// Bytes of a type and perhaps a shape.
fn array_size(array: &[Value]) -> Option<usize> {
    match array {
        [descr] => item_size(descr),
        [descr, Value::Integer(extent)] => {
            item_size(descr)?.checked_mul(usize::try_from(*extent).ok()?)
        }
        [descr, shape] => item_size(descr)?.checked_mul(product(&extents(shape)?)?),
        _ => None,
    }
}

fn extents(shape: &Value) -> Option<Vec<i64>> {
    let Value::Tuple(shape) = shape else { return None };
    let extent = |extent: &Value| match extent {
        Value::Integer(extent) => i64::try_from(*extent).ok().filter(|extent| *extent >= 0),
        _ => None,
    };
    shape.iter().map(extent).collect()
}

/// The product of all, 0 if one is 0, whatever the others are.
fn product(shape: &[i64]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let mut extents = shape.iter().map(|extent| usize::try_from(*extent).ok());
    extents.try_fold(1_usize, |product, extent| product.checked_mul(extent?))
}

/// A shape as Python writes it.
#[must_use]
pub fn tuple(shape: &[i64]) -> String {
    let extents: Vec<_> = shape.iter().map(ToString::to_string).collect();
    format!("({}{})", extents.join(", "), if shape.len() == 1 { "," } else { "" })
}

#[cfg(test)]
mod tests {
    use super::{plain, Header};

    #[test]
    fn types_by_every_spelling() {
        for (text, code, bytes) in [
            ("<f8", "f8", 8),
            ("f8", "f8", 8),
            ("=f8", "f8", 8),
            ("float64", "f8", 8),
            ("<d", "f8", 8),
            (">q", "i8", 8),
            ("i", "i4", 4),
            ("?", "b1", 1),
            ("|b1", "b1", 1),
            ("U3", "U3", 12),
            ("<M8[ns]", "M8[ns]", 8),
            ("c", "S1", 1),
        ] {
            assert_eq!(plain(text), Some((code.into(), bytes)), "{text}");
        }
        for text in ["", "<", "bfloat16", "<g2", "<f3", "f", "é", "O", "x4", "i16"] {
            assert_eq!(plain(text).is_some(), text == "f", "{text}");
        }
    }

    #[test]
    fn a_header_comes_out_as_it_went_in() {
        for descr in ["'<f4'", "[('a', '<i4', (2, 3)), (\"it's\", '|S3')]", "[('größe', '|u1')]"]
        {
            let text = format!("{{'descr': {descr}, 'fortran_order': True, 'shape': (2, 3)}}\n");
            let mut file = b"\x93NUMPY\x03\x00".to_vec();
            file.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            file.extend(text.as_bytes());
            let (header, size) = Header::parse(&file).unwrap();
            assert_eq!((header.descr.as_str(), header.fortran, size), (descr, true, file.len()));
            let piece = header.of_piece(&[1, 3]);
            let (again, size) = Header::parse(&piece).unwrap();
            assert_eq!((again.descr.as_str(), again.fortran), (descr, false));
            assert_eq!((again.shape, size, size % 64), (vec![1, 3], piece.len(), 0));
        }
    }
}
