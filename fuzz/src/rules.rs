//! The model of the operators, written from ONNX's and OpenVINO's documents and the header: it
//! takes parameters and gives lengths of pieces.

use crate::tensor::{bits_of, check_size, Refused};

pub const ONNX_SPLIT: i64 = 1;
pub const SPLIT_TO_SEQUENCE: i64 = 2;
pub const VARIADIC_SPLIT: i64 = 3;
pub const OPENVINO_SPLIT: i64 = 4;

/// The most parts that can be requested by a number or by a list.
const MOST: i128 = i32::MAX as i128;
/// The model lists the lengths of up to this many parts one by one.
pub const FEW: i128 = 64;

/// What is requested of an operator.
#[derive(Debug, Clone)]
pub struct Ask {
    pub op: i64,
    pub opset: i64,
    pub dtype: i64,
    pub shape: Vec<i64>,
    pub axis: i64,
    pub lengths: Option<Lengths>,
    pub num_outputs: i64,
    pub keepdims: bool,
    pub flags: u32,
    /// The outputs that there are, unless their number is the question.
    pub given: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct Lengths {
    pub dtype: i64,
    /// `None` for a scalar.
    pub len: Option<i64>,
    pub values: Values,
}

#[derive(Debug, Clone)]
pub enum Values {
    Unknown,
    /// All have the same value, because their stride is 0.
    Same(Option<i128>),
    /// `None` for what is no whole number.
    Each(Vec<Option<i128>>),
}

/// What the operator returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub axis: usize,
    pub keeps_axis: bool,
    pub count: i128,
    /// The length of each piece, -1 if unknown; `None` if there are too many to list.
    pub lengths: Option<Vec<i64>>,
    /// Whether the lengths follow from what is known.
    pub known: bool,
}

/// The versions, each with its operator, the opset that introduced it, and how many element types it takes.
pub const VERSIONS: [(i64, i64, i64); 9] = [
    (ONNX_SPLIT, 1, 15),
    (ONNX_SPLIT, 2, 15),
    (ONNX_SPLIT, 11, 15),
    (ONNX_SPLIT, 13, 16),
    (ONNX_SPLIT, 18, 16),
    (SPLIT_TO_SEQUENCE, 11, 15),
    (SPLIT_TO_SEQUENCE, 24, 16),
    (VARIADIC_SPLIT, 1, 26),
    (OPENVINO_SPLIT, 1, 26),
];
const _: () = assert!(VERSIONS.len() == libsplit::Operator::ALL.len(), "VERSIONS lacks a version");

/// The operator's version, and how many element types it takes.
pub fn version(op: i64, opset: i64) -> Option<(i64, i64)> {
    let governs = |since: i64| match op {
        ONNX_SPLIT | SPLIT_TO_SEQUENCE => since <= opset,
        _ => since == opset || (since, opset) == (1, 0),
    };
    let newest = VERSIONS.iter().rev().find(|(of, since, _)| *of == op && governs(*since));
    newest.map(|(_, since, types)| (*since, *types))
}

fn is_integer(dtype: i64) -> bool {
    matches!(dtype, 2..=7 | 12 | 13 | 21 | 22 | 25 | 26)
}

/// Refuses unless `holds` is true.
fn must(holds: bool) -> Result<(), Refused> {
    if holds {
        Ok(())
    } else {
        Err(Refused)
    }
}

pub fn answer(ask: &Ask) -> Result<Answer, Refused> {
    let (version, types) = version(ask.op, ask.opset).ok_or(Refused)?;
    must(ask.flags & !1 == 0)?;
    must((1..=types).contains(&ask.dtype))?;
    must(ask.op != ONNX_SPLIT || version != 1 || matches!(ask.dtype, 1 | 10 | 11))?;
    let rank = ask.shape.len() as i64;
    must((1..=64).contains(&rank) && (-rank..rank).contains(&ask.axis))?;
    must(ask.shape.iter().all(|extent| *extent >= -1))?;
    check_size(&ask.shape, bits_of(ask.dtype).ok_or(Refused)?)?;
    let axis = if ask.axis < 0 { ask.axis + rank } else { ask.axis } as usize;
    let extent = Some(i128::from(ask.shape[axis])).filter(|extent| *extent >= 0);
    let (count, lengths, known) = match &ask.lengths {
        None => without_lengths(ask, version, extent),
        Some(lengths) => with_lengths(ask, version, lengths, extent),
    }?;
    must(ask.num_outputs == 0 || i128::from(ask.num_outputs) == count)?;
    must(ask.given.is_none_or(|given| given as i128 == count))?;
    let keeps_axis = ask.op != SPLIT_TO_SEQUENCE || ask.lengths.is_some() || ask.keepdims;
    Ok(Answer { axis, keeps_axis, count, lengths, known })
}

type Pieces = Result<(i128, Option<Vec<i64>>, bool), Refused>;

/// Returns `count` pieces of `size`, as far as `extent` goes.
fn pieces_of(size: i128, count: i128, extent: i128) -> Pieces {
    let length = |index: i128| (extent - index * size).clamp(0, size) as i64;
    Ok((count, (count <= FEW).then(|| (0..count).map(length).collect()), true))
}

fn unknown(count: i128, length: i64) -> Pieces {
    Ok((count, (count <= FEW).then(|| vec![length; count as usize]), length >= 0))
}

/// Returns how many pieces the caller says there are.
fn said(ask: &Ask) -> Result<i128, Refused> {
    let param = Some(i128::from(ask.num_outputs)).filter(|count| *count > 0);
    ask.given.map(|given| given as i128).or(param).ok_or(Refused)
}

fn without_lengths(ask: &Ask, version: i64, extent: Option<i128>) -> Pieces {
    match ask.op {
        SPLIT_TO_SEQUENCE => match extent {
            Some(extent) => pieces_of(1, extent, extent),
            None => unknown(said(ask)?, 1),
        },
        ONNX_SPLIT | OPENVINO_SPLIT => {
            let count = match (ask.num_outputs, ask.given) {
                (0, Some(given)) if ask.op == ONNX_SPLIT && version < 18 => given as i128,
                (count, _) => i128::from(count),
            };
            must((1..=MOST).contains(&count))?;
            let Some(extent) = extent else { return unknown(count, -1) };
            let size = (extent + count - 1) / count;
            let last = extent - (count - 1) * size;
            let may_be_uneven = ask.op == ONNX_SPLIT && version >= 18;
            must(extent % count == 0 || may_be_uneven && (last >= 0 || ask.flags & 1 == 1))?;
            pieces_of(size, count, extent)
        }
        _ => Err(Refused),
    }
}

fn with_lengths(ask: &Ask, version: i64, lengths: &Lengths, extent: Option<i128>) -> Pieces {
    must(match ask.op {
        ONNX_SPLIT => {
            let has_type = lengths.dtype == 7 || version == 1 && lengths.dtype == ask.dtype;
            has_type && lengths.len != Some(0) && (version < 18 || ask.num_outputs == 0)
        }
        SPLIT_TO_SEQUENCE => matches!(lengths.dtype, 6 | 7),
        VARIADIC_SPLIT => is_integer(lengths.dtype),
        _ => false,
    })?;
    let Some(count) = lengths.len else { return scalar(ask, lengths, extent) };
    let count = i128::from(count);
    must((0..=MOST).contains(&count))?;
    if count == 0 {
        must(extent.is_none_or(|extent| extent == 0))?;
        return Ok((0, Some(vec![]), true));
    }
    let values = match &lengths.values {
        Values::Unknown => return unknown(count, -1),
        // Only the sum of the others counts.
        Values::Same(value) => vec![*value; count.min(2) as usize],
        Values::Each(values) => values.clone(),
    };
    let mut values = values.into_iter().collect::<Option<Vec<i128>>>().ok_or(Refused)?;
    let rest = values.iter().position(|value| *value == -1 && ask.op == VARIADIC_SPLIT);
    let others = values.iter().enumerate().filter(|(index, _)| Some(*index) != rest);
    must(others.clone().all(|(_, value)| *value >= 0))?;
    let mut sum: i128 = others.map(|(_, value)| *value).sum();
    if let (Values::Same(Some(value)), 2..) = (&lengths.values, count) {
        sum = value * count;
    }
    must(sum <= i128::from(i64::MAX))?;
    must(extent.is_none_or(|extent| if rest.is_some() { sum <= extent } else { sum == extent }))?;
    if let Some(rest) = rest {
        values[rest] = extent.map_or(-1, |extent| extent - sum);
    }
    if let (Values::Same(_), 2..=FEW) = (&lengths.values, count) {
        values = vec![values[0]; count as usize];
    }
    let listed = (count <= FEW).then(|| values.iter().map(|value| *value as i64).collect());
    Ok((count, listed, true))
}

fn scalar(ask: &Ask, lengths: &Lengths, extent: Option<i128>) -> Pieces {
    must(ask.op == SPLIT_TO_SEQUENCE)?;
    let size = match &lengths.values {
        Values::Unknown => return unknown(said(ask)?, -1),
        Values::Same(value) => *value,
        Values::Each(values) => values[0],
    };
    let size = size.filter(|size| *size >= 1).ok_or(Refused)?;
    match extent {
        Some(extent) => pieces_of(size, (extent + size - 1) / size, extent),
        None => unknown(said(ask)?, if size == 1 { 1 } else { -1 }),
    }
}
