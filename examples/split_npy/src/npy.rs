//! The `.npy` format: the header of the file to split, and those of its pieces.
//!
//! The dtype is kept as the literal that the file has, so that any dtype that numpy can describe
//! comes out as it went in; only its size is worked out.

use anyhow::{bail, ensure, Context, Result};
use py_literal::Value;

/// What a file says of its array.
pub struct Header {
    /// The dtype as numpy describes it: `'<f4'`, or a list of fields.
    pub descr: Value,
    /// Bytes of one item.
    pub size: usize,
    pub shape: Vec<i64>,
    fortran: bool,
}

impl Header {
    /// The header of a file, and the bytes of its array.
    pub fn parse(file: &[u8]) -> Result<(Self, &[u8])> {
        let [0x93, b'N', b'U', b'M', b'P', b'Y', version @ 1..=3, _, rest @ ..] = file else {
            bail!("not an .npy file, or one of an unknown version");
        };
        // The length of the text takes 2 bytes in version 1, 4 in the others.
        let room = if *version == 1 { 2 } else { 4 };
        let (text, data) = rest
            .split_at_checked(room)
            .and_then(|(len, rest)| rest.split_at_checked(little_endian(len)))
            .context("truncated: the file ends within its header")?;
        let text = match version {
            3 => std::str::from_utf8(text).context("header: not UTF-8")?.to_owned(),
            _ => text.iter().map(|&latin1| char::from(latin1)).collect(),
        };
        let header = Self::from_text(&text).context("header")?;
        let bytes = header.bytes(&header.shape)?;
        let data = data.get(..bytes).with_context(|| {
            format!("truncated: the array takes {bytes} bytes, the file has {}", data.len())
        })?;
        Ok((header, data))
    }

    fn from_text(text: &str) -> Result<Self> {
        // The parser takes a time that is exponential in it.
        ensure!(nesting(text) <= 16, "too many brackets in brackets");
        let Ok(Value::Dict(entries)) = text.trim().parse() else {
            bail!("not a Python dictionary");
        };
        let entry = |key: &str| {
            let mut entries = entries.iter();
            let entry =
                entries.find(|(name, _)| matches!(name, Value::String(name) if name == key));
            entry.map(|(_, value)| value).with_context(|| format!("{key} is missing"))
        };
        let (descr, order, shape) = (entry("descr")?, entry("fortran_order")?, entry("shape")?);
        Ok(Self {
            descr: descr.clone(),
            size: item_size(descr).with_context(|| {
                format!("dtype {descr} cannot be split: no fixed size (as of Python objects)")
            })?,
            shape: extents(shape).with_context(|| format!("{shape} is not a shape"))?,
            fortran: match order {
                Value::Boolean(fortran) => *fortran,
                _ => bail!("fortran_order {order} is neither True nor False"),
            },
        })
    }

    /// The code of a plain dtype without byte order, as "f4"; empty for structures.
    pub fn code(&self) -> &str {
        match &self.descr {
            Value::String(descr) => descr.get(1..).unwrap_or_default(),
            _ => "",
        }
    }

    /// Bytes of an array of this dtype.
    pub fn bytes(&self, shape: &[i64]) -> Result<usize> {
        let bytes = product(shape).and_then(|count| count.checked_mul(self.size));
        bytes.context("more bytes than can be numbered")
    }

    /// A shape in elements of `size` bytes: where an item is not one of them, it is an axis.
    pub fn in_elements(&self, shape: &[i64], size: usize) -> Result<Vec<i64>> {
        let mut shape = shape.to_vec();
        if self.size != size {
            shape.push((self.size / size).try_into()?);
        }
        Ok(shape)
    }

    /// The strides of the file's array in elements of `size` bytes, for the shape in them.
    pub fn strides(&self, size: usize) -> Result<Vec<i64>> {
        let rank = self.shape.len();
        let mut strides = self.in_elements(&vec![1; rank], size)?;
        let mut stride = (self.size / size).try_into()?;
        for at in 0..rank {
            let axis = if self.fortran { at } else { rank - 1 - at };
            strides[axis] = stride;
            // Too much only for an empty array, whose strides do not matter.
            stride = stride.saturating_mul(self.shape[axis]);
        }
        if rank < strides.len() {
            strides[rank] = 1;
        }
        Ok(strides)
    }

    /// The header of a piece, padded so that its data is aligned to 64 bytes.
    pub fn of_piece(&self, shape: &[i64]) -> Result<Vec<u8>> {
        let (descr, shape) = (&self.descr, tuple(shape));
        let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        let (version, room) = if text.len() < 65_000 { (1, 2) } else { (2, 4) };
        let before = 8 + room;
        let end = (before + text.len() + 1).next_multiple_of(64);
        let mut header = b"\x93NUMPY".to_vec();
        header.extend([version, 0]);
        header.extend(&u32::try_from(end - before)?.to_le_bytes()[..room]);
        header.extend(text.as_bytes());
        header.resize(end - 1, b' ');
        header.push(b'\n');
        Ok(header)
    }
}

fn little_endian(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// How many brackets are open at once, at most.
fn nesting(text: &str) -> usize {
    let mut open = 0_usize;
    let depths = text.bytes().map(|byte| {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open
    });
    depths.max().unwrap_or_default()
}

/// Bytes of one item, if they are a fixed number.
fn item_size(descr: &Value) -> Option<usize> {
    match descr {
        // '<f4': byte order, kind, size, and a unit for times.
        Value::String(code) => {
            let unit = if code.get(1..2)? == "U" { 4 } else { 1 };
            code.get(2..)?.split('[').next()?.parse::<usize>().ok()?.checked_mul(unit)
        }
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
        [descr, shape] => item_size(descr)?.checked_mul(product(&extents(shape)?)?),
        _ => None,
    }
}

fn extents(shape: &Value) -> Option<Vec<i64>> {
    let Value::Tuple(shape) = shape else { return None };
    let extent = |extent: &Value| match extent {
        Value::Integer(extent) => i64::try_from(extent).ok().filter(|extent| *extent >= 0),
        _ => None,
    };
    shape.iter().map(extent).collect()
}

fn product(shape: &[i64]) -> Option<usize> {
    let mut extents = shape.iter().map(|extent| usize::try_from(*extent).ok());
    extents.try_fold(1_usize, |product, extent| product.checked_mul(extent?))
}

/// A shape as Python writes it.
pub fn tuple(shape: &[i64]) -> String {
    Value::Tuple(shape.iter().map(|extent| Value::Integer((*extent).into())).collect()).to_string()
}
