//! The memory of a call. Every array and buffer is an allocation of its exact size, so that the
//! sanitizer sees one byte too many; every pointer is one of the harness's own, unless the library
//! must not look there.

use crate::rules::{
    Ask, Lengths, Values, ONNX_SPLIT, OPENVINO_SPLIT, SPLIT_TO_SEQUENCE, VARIADIC_SPLIT, VERSIONS,
};
use crate::script::{self, wild, Script};
use crate::tensor::{bits_of, packed_strides, Tensor};
use libsplit::ffi::{libsplit_dtype, libsplit_op, libsplit_params, libsplit_tensor};
use std::ptr::{null, null_mut};

/// The most bytes of a buffer: enough for several tasks, or so few that they test everything else.
pub fn most_bytes(script: &Script) -> i128 {
    if script.executor.rem_euclid(4) == 0 {
        8192
    } else {
        300_000
    }
}

/// The most bytes of a list of lengths.
const MOST_LIST_BYTES: i128 = 512;

/// A descriptor with its arrays and its buffer.
pub struct Described {
    pub raw: libsplit_tensor,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub buffer: Vec<u8>,
    /// What the descriptor says, if its dtype and rank mean something.
    pub model: Option<Tensor>,
    /// Whether a pointer to an array is NULL or askew.
    pub is_spoilt: bool,
    /// Whether data is NULL or at the address that the numbers say.
    pub is_placed: bool,
}

/// What the fuzzer may spoil in a descriptor.
mod fault {
    pub const SHAPE_NULL: i64 = 1;
    pub const SHAPE_ASKEW: i64 = 2;
    pub const STRIDES_ASKEW: i64 = 3;
    pub const DATA_NULL: i64 = 4;
}

/// An empty descriptor, to be filled in.
pub const ZERO: libsplit_tensor = libsplit_tensor::ZERO;

/// Bytes that look random.
pub fn noise(len: usize, seed: i64) -> Vec<u8> {
    let mut state = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Returns an address in the middle of the object that it should point to.
pub fn askew<T>(pointer: *const T) -> *const T {
    pointer.cast::<u8>().wrapping_add(1).cast()
}

/// Returns strides with axes in any order, gaps and directions; repeated elements if allowed.
fn laid_out(shape: &[i64], steps: &[i64; 8], may_repeat: bool) -> Vec<i64> {
    let step = |axis: usize| steps[axis % 8];
    let mut order: Vec<usize> = (0..shape.len()).collect();
    order.sort_by_key(|axis| (step(*axis) >> 4, usize::MAX - axis));
    let mut strides = vec![0; shape.len()];
    let mut reach = 1i128;
    for axis in order {
        let gap = match step(axis) & 3 {
            3 if may_repeat => 0,
            2 => 2,
            _ => 1,
        };
        let stride = reach.saturating_mul(gap).min(i128::from(i64::MAX));
        strides[axis] = if step(axis) & 4 != 0 { -(stride as i64) } else { stride as i64 };
        reach = reach.saturating_add((i128::from(shape[axis]) - 1).max(0).saturating_mul(stride));
    }
    strides
}

impl Described {
    /// Returns a tensor of `shape`, laid out and placed as `numbers` say. `rank` is what the
    /// descriptor claims.
    pub fn new(
        script: &Script,
        numbers: &script::Tensor,
        dtype: i32,
        rank: i32,
        shape: Vec<i64>,
        (may_repeat, most_bytes): (bool, i128),
    ) -> Self {
        let bits = bits_of(dtype.into());
        let is_wild = script.is_wild(wild::LAYOUT);
        let strides = match numbers.layout.rem_euclid(4) {
            0 => None,
            1 => Some(packed_strides_or_any(&shape)),
            3 if is_wild => Some((0..shape.len()).map(|axis| numbers.steps[axis % 8]).collect()),
            _ => Some(laid_out(&shape, &numbers.steps, may_repeat)),
        };
        let bit_offset = match bits {
            _ if is_wild => numbers.bit_offset as u32,
            Some(bits @ ..8) => numbers.bit_offset.rem_euclid(17) as u32 * bits as u32,
            _ => 0,
        };
        let model = bits.filter(|_| usize::try_from(rank) == Ok(shape.len()));
        let model = model.map(|bits| Tensor {
            data: 1 << 46,
            data_bytes: 0,
            shape: shape.clone(),
            strides: strides.clone(),
            bits,
            bit_offset,
        });
        let mut described = Self {
            raw: libsplit_tensor { rank, dtype: libsplit_dtype(dtype), bit_offset, ..ZERO },
            shape,
            strides: strides.unwrap_or_default(),
            buffer: vec![],
            model,
            is_spoilt: false,
            is_placed: false,
        };
        described.point();
        described.place(script, numbers, most_bytes);
        if script.is_wild(wild::POINTERS) {
            described.spoil(numbers.fault);
        }
        described.agree();
        described
    }

    fn point(&mut self) {
        self.raw.shape = self.shape.as_mut_ptr();
        let has_strides = self.model.as_ref().is_some_and(|model| model.strides.is_some());
        self.raw.strides = if has_strides { self.strides.as_mut_ptr() } else { null_mut() };
    }

    fn place(&mut self, script: &Script, numbers: &script::Tensor, most_bytes: i128) {
        let lead = numbers.lead.rem_euclid(67) as usize;
        let range = self.model.as_ref().filter(|model| model.span().is_ok_and(|s| s.is_some()));
        let range = range.and_then(|model| model.reach().ok());
        if let Some(range) = range.filter(|range| range.end - range.start <= most_bytes) {
            let bytes = (range.end - range.start) as usize;
            self.buffer = noise(lead + bytes, script.seed);
            let base = self.buffer.as_mut_ptr().wrapping_add(lead);
            self.raw.data = base.wrapping_offset(-range.start as isize).cast();
            self.raw.data_bytes = match numbers.data_bytes {
                0 => 0,
                1 => bytes,
                2 => bytes - 1,
                number if script.is_wild(wild::POINTERS) => number as usize,
                _ => bytes,
            };
            self.is_placed = true;
        } else if self.model.as_ref().is_some_and(Tensor::is_empty) {
            // There is nothing to look at.
            self.raw.data = std::ptr::without_provenance_mut(numbers.lead as usize);
            self.raw.data_bytes = numbers.data_bytes as usize;
            self.is_placed = true;
        } else {
            // More than there is: the descriptor claims it.
            self.buffer = noise(64, script.seed);
            self.raw.data = self.buffer.as_mut_ptr().wrapping_add(32).cast();
            self.raw.data_bytes = 1 + numbers.data_bytes.rem_euclid(32) as usize;
        }
    }

    fn spoil(&mut self, fault: i64) {
        match fault {
            fault::SHAPE_NULL if !self.shape.is_empty() => self.raw.shape = null_mut(),
            fault::SHAPE_ASKEW if !self.shape.is_empty() => {
                self.raw.shape = askew(self.raw.shape).cast_mut();
            }
            fault::STRIDES_ASKEW if !self.shape.is_empty() && !self.raw.strides.is_null() => {
                self.raw.strides = askew(self.raw.strides).cast_mut();
            }
            fault::DATA_NULL => {
                self.raw.data = null_mut();
                return;
            }
            _ => return,
        }
        self.is_spoilt = true;
    }

    /// Updates the model with what has become of the descriptor.
    pub fn agree(&mut self) {
        if let Some(model) = &mut self.model {
            model.data = self.raw.data as usize;
            model.data_bytes = self.raw.data_bytes;
            model.bit_offset = self.raw.bit_offset;
        }
    }

    pub fn has_spoilt_strides(&self) -> bool {
        self.is_spoilt && !self.raw.strides.is_null() && !self.raw.strides.is_aligned()
    }
}

/// Returns packed strides, as far as they can be represented.
fn packed_strides_or_any(shape: &[i64]) -> Vec<i64> {
    let fits = shape.iter().try_fold(1i64, |product, e| product.checked_mul((*e).max(1)));
    fits.map_or_else(|| vec![1; shape.len()], |_| packed_strides(shape))
}

/// Parameters, with zeros behind them for a larger `struct_size`.
#[repr(C)]
pub struct Params {
    pub params: libsplit_params,
    pub tail: [u8; 4096],
}

/// A call without its outputs.
pub struct Call {
    pub input: Described,
    pub split: Option<Box<Described>>,
    pub params: Box<Params>,
    /// Returns what is requested, if the numbers mean anything; without the outputs given.
    pub ask: Option<Ask>,
}

impl Call {
    pub fn new(script: &Script) -> Self {
        let (op, opset) = operator(script);
        let dtype = dtype(script, op, opset);
        let (rank, shape) = shape(script);
        let axis = if script.is_wild(wild::OPERATOR) {
            script.axis
        } else {
            let rank = shape.len().max(1) as i64;
            script.axis.rem_euclid(2 * rank) - rank
        };
        let input =
            Described::new(script, &script.input, dtype, rank, shape, (true, most_bytes(script)));
        let model = input.model.as_ref();
        let extent = model.and_then(|model| {
            let rank = model.shape.len() as i64;
            let axis = if axis < 0 { axis.checked_add(rank)? } else { axis };
            model.shape.get(usize::try_from(axis).ok()?).copied()
        });
        let split = split(script, op, extent.unwrap_or(6));
        let flags = if script.is_wild(wild::OPERATOR) { script.flags } else { script.flags & 1 };
        let num_outputs = match op {
            _ if script.is_wild(wild::OPERATOR) => script.num_outputs,
            ONNX_SPLIT if split.is_none() => script.num_outputs.rem_euclid(8),
            OPENVINO_SPLIT => 1 + script.num_outputs.rem_euclid(7),
            _ => 0,
        };
        let params = libsplit_params {
            axis,
            split: split.as_ref().map_or(null(), |split| &raw const split.raw),
            num_outputs,
            keepdims: script.keepdims as i32,
            flags: flags as u32,
            ..libsplit_params::init(libsplit_op(op as i32), opset)
        };
        let lengths = split.as_ref().map(|split| lengths_of(split).ok_or(()));
        let lengths = lengths.transpose().ok();
        let ask = lengths.zip(input.model.as_ref()).map(|(lengths, model)| Ask {
            op: i64::from(op as i32),
            opset: opset.into(),
            dtype: dtype.into(),
            shape: model.shape.clone(),
            axis,
            lengths,
            num_outputs,
            keepdims: params.keepdims != 0,
            flags: params.flags,
            given: None,
        });
        Self { input, split, params: Box::new(Params { params, tail: [0; 4096] }), ask }
    }
}

fn operator(script: &Script) -> (i64, i32) {
    if script.is_wild(wild::OPERATOR) {
        return (script.op, script.opset as i32);
    }
    let op = 1 + script.op.rem_euclid(4);
    let versions = VERSIONS.iter().filter(|(of, ..)| *of == op).map(|(_, since, _)| *since as i32);
    // Opsets between versions mean the older one, and 0 means 1 in OpenVINO.
    let is_onnx = op == ONNX_SPLIT || op == SPLIT_TO_SEQUENCE;
    let opsets: Vec<_> =
        versions.flat_map(|since| [since, if is_onnx { since + 1 } else { 0 }]).collect();
    (op, opsets[script.opset.rem_euclid(opsets.len() as i64) as usize])
}

fn dtype(script: &Script, op: i64, opset: i32) -> i32 {
    if script.is_wild(wild::OPERATOR) {
        return script.input.dtype as i32;
    }
    let number = script.input.dtype;
    match (op, opset) {
        (ONNX_SPLIT, 1) => [1, 10, 11][number.rem_euclid(3) as usize],
        (ONNX_SPLIT | SPLIT_TO_SEQUENCE, _) => 1 + number.rem_euclid(15) as i32,
        _ => 1 + number.rem_euclid(26) as i32,
    }
}

/// Returns the rank that is claimed, and as many extents as may be looked at.
fn shape(script: &Script) -> (i32, Vec<i64>) {
    if !script.is_wild(wild::SHAPE) {
        let rank = 1 + script.rank.rem_euclid(5) as i32;
        let extents = script.shape.iter().take(rank as usize).zip([224, 224, 20, 8, 4]);
        return (rank, extents.map(|(extent, most)| extent.rem_euclid(most)).collect());
    }
    let rank = script.rank as i32;
    let len = usize::try_from(rank).ok().filter(|rank| *rank <= 64).unwrap_or(8);
    (rank, (0..len).map(|axis| script.shape.get(axis).copied().unwrap_or(1)).collect())
}

/// Returns the descriptor of the lengths, if there are any.
fn split(script: &Script, op: i64, extent: i64) -> Option<Box<Described>> {
    const INTEGERS: [i32; 12] = [7, 6, 5, 4, 3, 2, 12, 13, 21, 22, 25, 26];
    let is_wild = script.is_wild(wild::LENGTHS);
    let way = match script.lengths.rem_euclid(4) {
        _ if is_wild => script.lengths.rem_euclid(4),
        _ if op == OPENVINO_SPLIT => 0,
        0 | 2 if op == VARIADIC_SPLIT => 1,
        2 if op != SPLIT_TO_SEQUENCE => 1,
        way => way,
    };
    if way == 0 {
        return None;
    }
    let number = script.list.dtype;
    let dtype = match op {
        _ if is_wild => number as i32,
        VARIADIC_SPLIT => INTEGERS[number.rem_euclid(12) as usize],
        SPLIT_TO_SEQUENCE => 6 + number.rem_euclid(2) as i32,
        _ => 7,
    };
    let rank = match way {
        _ if is_wild => script.list_rank as i32,
        2 => 0,
        _ => 1,
    };
    let values = if is_wild { script.values } else { tame_lengths(script, op, extent) };
    let len = if is_wild { script.list_len } else { 1 + script.list_len.rem_euclid(7) };
    let mut numbers = script.list.clone();
    numbers.steps[0] = script.list_step;
    let claimed = usize::try_from(rank).ok().filter(|rank| *rank <= 64).unwrap_or(1);
    let mut split = Box::new(Described::new(
        script,
        &numbers,
        dtype,
        rank,
        vec![len; claimed],
        (is_wild, MOST_LIST_BYTES),
    ));
    if way == 3 {
        split.raw.data = null_mut();
        split.agree();
    } else if split.is_placed && !split.raw.data.is_null() && claimed <= 1 {
        let model = split.model.clone().filter(|model| !model.is_empty());
        let positions = model.iter().flat_map(|model| model.first_positions(values.len()));
        for (value, position) in values.iter().zip(positions) {
            split.encode(*value, position);
        }
    }
    Some(split)
}

/// Returns lengths that add up to the extent of the axis.
fn tame_lengths(script: &Script, op: i64, extent: i64) -> [i64; 8] {
    let len = 1 + script.list_len.rem_euclid(7) as usize;
    let mut left = extent.clamp(0, 1 << 20);
    let mut values = script.values;
    for value in &mut values[..len - 1] {
        *value = value.rem_euclid(left + 1);
        left -= *value;
    }
    values[len - 1] = left;
    if op == VARIADIC_SPLIT && script.keepdims & 1 == 1 {
        values[script.seed.rem_euclid(len as i64) as usize] = -1;
    }
    if op == SPLIT_TO_SEQUENCE && script.lengths.rem_euclid(4) == 2 {
        values[0] = 1 + script.values[0].rem_euclid(40);
    }
    values
}

impl Described {
    /// Returns where in the buffer a bit lies.
    fn bit(&self, position: i128) -> (usize, u32) {
        let base = self.buffer.as_ptr() as i128 * 8;
        let bit = usize::try_from(position - base).unwrap();
        (bit / 8, (bit % 8) as u32)
    }

    fn encode(&mut self, value: i64, position: i128) {
        let word = match self.raw.dtype.0 {
            1 => i128::from((value as f32).to_bits()),
            11 => i128::from((value as f64).to_bits()),
            _ => i128::from(value),
        };
        for index in 0..self.model.as_ref().map_or(0, |model| model.bits) {
            let (byte, bit) = self.bit(position + index);
            let set = (word >> index & 1) as u8;
            self.buffer[byte] = self.buffer[byte] & !(1 << bit) | set << bit;
        }
    }

    /// Returns the element as a whole number, if it is one.
    fn decode(&self, position: i128) -> Option<i128> {
        let bits = self.model.as_ref()?.bits;
        let mut word = 0u128;
        for index in 0..bits {
            let (byte, bit) = self.bit(position + index);
            word |= u128::from(self.buffer[byte] >> bit & 1) << index;
        }
        match self.raw.dtype.0 {
            1 => whole(f32::from_bits(word as u32).into()),
            10 => whole(half(word as u16)),
            11 => whole(f64::from_bits(word as u64)),
            3 | 5 | 6 | 7 | 22 | 26 => Some(((word << (128 - bits)) as i128) >> (128 - bits)),
            13 if word > i64::MAX as u128 => None,
            _ => Some(word as i128),
        }
    }
}

/// Returns a binary16 number.
fn half(word: u16) -> f64 {
    let sign = if word >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from(word >> 10 & 31), f64::from(word & 1023));
    sign * match exponent {
        31 => f64::NAN, // or infinite: no whole number either way
        0 => mantissa * 2f64.powi(-24),
        _ => (1024.0 + mantissa) * 2f64.powi(exponent - 25),
    }
}

fn whole(value: f64) -> Option<i128> {
    let fits = value.is_finite() && value.fract() == 0.0;
    Some(value as i128).filter(|number| fits && i64::try_from(*number).is_ok())
}

/// Returns what the lengths' descriptor says; `None` if it must be refused.
fn lengths_of(split: &Described) -> Option<Lengths> {
    let model = split.model.as_ref().filter(|model| model.shape.len() <= 1 && !split.is_spoilt)?;
    let len = model.shape.first().copied();
    if len.is_some_and(|len| len < 0) {
        return None;
    }
    let is_known = model.data != 0 || len == Some(0);
    let values = if is_known {
        model.span().ok()?;
        let stride = model.strides.as_ref().and_then(|strides| strides.first());
        if model.is_empty() {
            Values::Each(vec![])
        } else if stride == Some(&0) {
            Values::Same(split.decode(Tensor { shape: vec![], ..model.clone() }.positions()[0]))
        } else {
            Values::Each(model.positions().into_iter().map(|at| split.decode(at)).collect())
        }
    } else {
        Values::Unknown
    };
    Some(Lengths { dtype: split.raw.dtype.0.into(), len, values })
}
