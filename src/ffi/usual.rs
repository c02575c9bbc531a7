//! The call that is made all day, at its least cost: a packed tensor of whole bytes, cut by a
//! packed list of INT64 or into equal parts, in the way that all operators agree on; nothing empty,
//! unknown or unwanted. Here it is done, or not begun: whatever is otherwise, mistakes above all,
//! is for the functions in `exports.rs` that look closely.

// Results of many words would be handed back through memory.
#![allow(clippy::inline_always)]

use super::describe::array_span;
use super::parse;
use super::types::{libsplit_dtype, libsplit_executor, libsplit_params, libsplit_tensor};
use crate::copy::contiguous;
use crate::dtype::DType;
use crate::error::number;
use crate::memory::Span;
use crate::operator::Operator;
use crate::shape::{usize_of, MAX_RANK};

/// Copies of more bytes may be for threads, or go past the caches.
const FEW_BYTES: usize = 128 << 10;
/// So many rows have loops of their own.
const MANY_ROWS: usize = 64;
/// More outputs than this are no usual number.
const MOST_OUTPUTS: usize = 1 << 16;

/// Does a usual copy; `false` = nothing has been done.
///
/// # Safety
/// As [`super::libsplit_copy`].
#[inline(never)]
pub(super) unsafe fn copy(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    executor: *const libsplit_executor,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let call = Usual::parse(input, params, num_outputs);
        let call = call.filter(|call| call.bytes <= FEW_BYTES && call.rows < MANY_ROWS);
        call.is_some_and(|call| parse::executor(executor).is_ok() && call.copy(outputs).is_some())
    }
}

/// Makes usual views; `false` = nothing has been done.
///
/// # Safety
/// As [`super::libsplit_view`].
#[inline(never)]
pub(super) unsafe fn view(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *mut libsplit_tensor,
    num_outputs: usize,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let call = Usual::parse(input, params, num_outputs);
        call.is_some_and(|call| call.view(outputs).is_some())
    }
}

/// An input of which everything is in order, and how it is cut.
struct Usual<'a> {
    dtype: DType,
    source: *const u8,
    bytes: usize,
    shape: &'a [i64],
    axis: usize,
    /// Bytes of one step on the axis, and of a row: all of them.
    step: usize,
    row: usize,
    rows: usize,
    num_outputs: usize,
    lengths: Lengths<'a>,
}

/// The lengths of the pieces, which add up to the extent.
enum Lengths<'a> {
    Equal(i64),
    Listed(&'a [i64]),
}

impl Lengths<'_> {
    fn get(&self, index: usize) -> i64 {
        match self {
            Self::Equal(length) => *length,
            Self::Listed(lengths) => lengths.get(index).copied().unwrap_or(0),
        }
    }
}

impl Usual<'_> {
    /// # Safety
    /// The pointers must be NULL or valid for what their structures say, for as long as the result
    /// lives.
    #[inline(always)]
    unsafe fn parse(
        input: *const libsplit_tensor,
        params: *const libsplit_params,
        num_outputs: usize,
    ) -> Option<Self> {
        // SAFETY: the caller's promise.
        let (input, params) = unsafe { (reference(input)?, reference(params)?) };
        let is_plain = params.struct_size == size_of::<libsplit_params>() && params.flags == 0;
        if !is_plain || num_outputs > MOST_OUTPUTS {
            return None;
        }
        let operator = parse::operator(params).ok()?;
        let dtype = DType::from_number(input.dtype.0)?;
        let is_plain = !input.data.is_null() && input.strides.is_null() && input.bit_offset == 0;
        if !is_plain || dtype.is_sub_byte() || !operator.allows(dtype) {
            return None;
        }
        let rank = usize::try_from(input.rank).ok().filter(|rank| *rank <= MAX_RANK)?;
        // SAFETY: the caller's promise.
        let shape: &[i64] = unsafe { array(input.shape, rank) }?;
        let back = if params.axis < 0 { i64::from(input.rank) } else { 0 };
        let axis = usize::try_from(params.axis + back).ok()?;
        let extent = *shape.get(axis)?;
        let (mut bytes, mut step, mut row, mut rows) = (i64::from(dtype.bits() / 8), 0, 0, 1);
        for (d, extent) in shape.iter().enumerate().rev() {
            let inner = bytes;
            bytes = bytes.checked_mul(*extent).filter(|bytes| *bytes > 0)?;
            if d == axis {
                (step, row) = (inner, bytes);
            } else if d < axis {
                rows *= extent;
            }
        }
        // All bits can be numbered, and the last byte has an address.
        bytes.checked_mul(8)?;
        let bytes = usize::try_from(bytes).ok()?;
        (input.data as usize).checked_add(bytes)?;
        if input.data_bytes != 0 && input.data_bytes < bytes {
            return None;
        }
        let lengths = if params.split.is_null() {
            Lengths::Equal(equal(operator, params.num_outputs, num_outputs, extent)?)
        } else if params.num_outputs == 0 && operator != Operator::OpenVinoSplit1 {
            // SAFETY: the caller's promise.
            Lengths::Listed(unsafe { listed(params.split, num_outputs, extent) }?)
        } else {
            return None;
        };
        Some(Self {
            dtype,
            source: input.data.cast_const().cast(),
            bytes,
            shape,
            axis,
            step: usize_of(step),
            row: usize_of(row),
            rows: usize_of(rows),
            num_outputs,
            lengths,
        })
    }

    /// Bytes of a run of `length` steps.
    fn run(&self, length: i64) -> usize {
        self.step.wrapping_mul(usize_of(length))
    }

    /// Where the lengths lie, if they are read again.
    fn lengths(&self) -> Span {
        match self.lengths {
            Lengths::Equal(_) => Span::default(),
            Lengths::Listed(lengths) => Span::of_slice(lengths),
        }
    }

    /// Checks all outputs, then copies.
    ///
    /// # Safety
    /// As [`copy`].
    #[inline(always)]
    unsafe fn copy(&self, outputs: *const libsplit_tensor) -> Option<()> {
        // SAFETY: the caller's promise.
        let outputs: &[libsplit_tensor] = unsafe { array(outputs, self.num_outputs) }?;
        let start = self.source as usize;
        let input = Span { start, end: start + self.bytes };
        let reads = [input, Span::of_slice(self.shape), Span::of_slice(outputs), self.lengths()];
        let mut hull = Span { start: usize::MAX, end: 0 };
        for (index, output) in outputs.iter().enumerate() {
            // SAFETY: the caller's promise.
            let span = unsafe { self.target(output, self.lengths.get(index)) };
            // Each lies above or below all before it.
            let is_apart = span.is_apart(hull) && reads.iter().all(|read| span.is_apart(*read));
            if span.is_empty() || !is_apart {
                return None;
            }
            hull = hull.hull(span);
        }
        let copy = contiguous();
        let mut source = self.source;
        for (index, output) in outputs.iter().enumerate() {
            let run = self.run(self.lengths.get(index));
            let (mut from, mut to) = (source, output.data.cast::<u8>());
            for _ in 0..self.rows {
                // SAFETY: rows are made up of the runs, and the output has room for its piece.
                unsafe { copy(from, to, run) };
                from = from.wrapping_add(self.row);
                to = to.wrapping_add(run);
            }
            source = source.wrapping_add(run);
        }
        Some(())
    }

    /// Where a packed output for a piece of `length` lies; an empty span = look closely.
    ///
    /// # Safety
    /// As [`copy`].
    #[inline(never)] // with all registers to itself
    unsafe fn target(&self, output: &libsplit_tensor, length: i64) -> Span {
        let (nothing, rank) = (Span::default(), self.shape.len());
        let start = output.data as usize;
        let bytes = self.run(length) * self.rows;
        let Some(end) = start.checked_add(bytes) else { return nothing };
        if output.dtype.0 != self.dtype as i32
            || i64::from(output.rank) != number(rank)
            || !output.strides.is_null()
            || output.bit_offset != 0
            || start == 0
            || (output.data_bytes != 0 && output.data_bytes < bytes)
        {
            return nothing;
        }
        // SAFETY: the caller's promise.
        let Some(shape) = (unsafe { array(output.shape.cast_const(), rank) }) else {
            return nothing;
        };
        let expected = |d| if d == self.axis { &length } else { self.shape.get(d).unwrap_or(&0) };
        let is_right = shape.iter().enumerate().all(|(d, extent)| extent == expected(d));
        let span = Span { start, end };
        if is_right && span.is_apart(Span::of_slice(shape)) {
            span
        } else {
            nothing
        }
    }

    /// Checks all outputs, then fills them.
    ///
    /// # Safety
    /// As [`view`].
    #[inline(always)]
    unsafe fn view(&self, outputs: *mut libsplit_tensor) -> Option<()> {
        let rank = self.shape.len();
        // SAFETY: the caller's promise.
        let given: &[libsplit_tensor] = unsafe { array(outputs, self.num_outputs) }?;
        let reads = [Span::of_slice(self.shape), Span::of_slice(given), self.lengths()];
        let mut last = [Span::default(); 2];
        for output in given {
            let has_room = i64::from(output.capacity) >= number(rank);
            // A piece that has no strides must be packed.
            let has_strides = !output.strides.is_null() || self.rows == 1;
            if !has_room || !has_strides || output.shape.is_null() {
                return None;
            }
            let arrays = [output.shape, output.strides];
            let [shape, strides] = arrays.map(|array| array_span(array, rank));
            let is_free = |span: Span| {
                span.start.is_multiple_of(align_of::<i64>())
                    && reads.iter().chain(&last).all(|other| span.is_apart(*other))
            };
            if !is_free(shape) || !is_free(strides) || !shape.is_apart(strides) {
                return None;
            }
            last = [shape, strides];
        }
        let mut data = self.source.cast_mut();
        for index in 0..self.num_outputs {
            let length = self.lengths.get(index);
            // SAFETY: so many descriptors there are, with room for the rank in their arrays, which
            // lie over nothing else.
            unsafe {
                let output = &mut *outputs.add(index);
                output.data = data.cast();
                output.data_bytes = (self.rows - 1) * self.row + self.run(length);
                output.rank = i32::try_from(rank).unwrap_or(0);
                output.dtype = libsplit_dtype(self.dtype as i32);
                output.bit_offset = 0;
                self.write_axes(output, length);
            }
            data = data.wrapping_add(self.run(length));
        }
        Some(())
    }

    /// Writes a view's extents, and its strides, which are the input's.
    ///
    /// # Safety
    /// The output's arrays must have room for the rank.
    #[inline(always)]
    unsafe fn write_axes(&self, output: &mut libsplit_tensor, length: i64) {
        let mut stride = 1;
        for (d, extent) in self.shape.iter().enumerate().rev() {
            // SAFETY: the caller's promise.
            unsafe {
                output.shape.add(d).write(if d == self.axis { length } else { *extent });
                if !output.strides.is_null() {
                    output.strides.add(d).write(stride);
                }
            }
            stride *= extent;
        }
    }
}

/// The length of each of equal parts. Operators differ in what they do with extents that these do
/// not divide; SplitToSequence and VariadicSplit do not make any.
fn equal(operator: Operator, parts: i64, num_outputs: usize, extent: i64) -> Option<i64> {
    use Operator::{OpenVinoSplit1, Split1, Split11, Split13, Split18, Split2};
    if !matches!(operator, Split1 | Split2 | Split11 | Split13 | Split18 | OpenVinoSplit1) {
        return None;
    }
    let is_right = parts > 0 && parts == number(num_outputs);
    (is_right && extent % parts == 0).then(|| extent / parts)
}

/// The lengths of a list, if they add up.
///
/// # Safety
/// As [`copy`].
unsafe fn listed<'a>(
    split: *const libsplit_tensor,
    num_outputs: usize,
    extent: i64,
) -> Option<&'a [i64]> {
    let count = number(num_outputs);
    // SAFETY: the caller's promise.
    let split = unsafe { reference(split) }?;
    let is_plain = split.rank == 1 && split.strides.is_null() && split.bit_offset == 0;
    if !is_plain || split.dtype.0 != DType::Int64 as i32 {
        return None;
    }
    // SAFETY: as above.
    let shape: &[i64] = unsafe { array(split.shape, 1) }?;
    let bytes = size_of::<i64>() * num_outputs;
    (split.data as usize).checked_add(bytes)?;
    if shape != [count] || (split.data_bytes != 0 && split.data_bytes < bytes) {
        return None;
    }
    // SAFETY: as above.
    let lengths: &[i64] = unsafe { array(split.data.cast::<i64>(), num_outputs) }?;
    let mut left = extent;
    for length in lengths {
        if *length <= 0 || *length > left {
            return None;
        }
        left -= length;
    }
    (left == 0).then_some(lengths)
}

/// # Safety
/// `pointer` must be NULL or valid for `'a`.
#[inline(always)]
unsafe fn reference<'a, T>(pointer: *const T) -> Option<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { array(pointer, 1) }?.first()
}

/// An array, unless it is NULL or misaligned.
///
/// # Safety
/// `pointer` must be NULL or valid for `len` entries for `'a`.
#[inline(always)]
unsafe fn array<'a, T>(pointer: *const T, len: usize) -> Option<&'a [T]> {
    if pointer.is_null() || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: checked, and by the caller's promise.
    Some(unsafe { core::slice::from_raw_parts(pointer, len) })
}

#[cfg(test)]
mod tests {
    use super::super::exports::{copy_closely, view_closely};
    use super::super::types::libsplit_op;
    use super::{copy, libsplit_dtype, libsplit_params, libsplit_tensor, view};
    use core::ptr::{null, null_mut};
    use proptest::prelude::*;

    /// A call in numbers, from which the same memory is made as often as needed.
    #[derive(Debug, Clone)]
    struct Call {
        op: (i32, i32),
        dtype: i32,
        shape: Vec<i64>,
        axis: i64,
        lengths: Vec<i64>,
        has_list: bool,
        has_strides: bool,
        /// What is wrong or unusual, if anything, and where.
        twist: usize,
        at: usize,
    }

    const TWISTS: usize = 43;
    /// Elements of 16 bytes that all memory of a call has room for.
    const ROOM: usize = 1 << 11;

    /// All memory of a call.
    struct Scene {
        params: libsplit_params,
        input: libsplit_tensor,
        split: Vec<libsplit_tensor>,
        outputs: Vec<libsplit_tensor>,
        count: usize,
        /// Shapes, strides and lengths, then the elements of the input and of every output.
        memory: Vec<u128>,
    }

    impl Scene {
        fn new(call: &Call) -> Self {
            let rank = call.shape.len();
            let axis = usize::try_from(call.axis.rem_euclid(i64::try_from(rank).unwrap())).unwrap();
            let count = call.lengths.len();
            let mut scene = Self {
                params: libsplit_params {
                    struct_size: size_of::<libsplit_params>(),
                    op: libsplit_op(call.op.0),
                    opset: call.op.1,
                    axis: call.axis,
                    split: null(),
                    num_outputs: if call.has_list { 0 } else { i64::try_from(count).unwrap() },
                    keepdims: 1,
                    flags: 0,
                },
                input: tensor(call.dtype, rank),
                split: vec![tensor(7, 1)],
                outputs: vec![tensor(call.dtype, rank); count],
                count,
                memory: (0..ROOM as u128).map(|at| at * 0x1234_5678_9ABC_DEF1_2345).collect(),
            };
            let mut numbers = scene.memory.as_mut_ptr().cast::<i64>();
            let mut array = |values: &[i64]| {
                let array = numbers;
                for value in values {
                    // SAFETY: there is room for all arrays.
                    unsafe { numbers.write(*value) };
                    numbers = numbers.wrapping_add(1);
                }
                array
            };
            let mut data = scene.memory.as_mut_ptr().wrapping_add(ROOM / 2);
            let mut place = |shape: &[i64]| {
                let here = data;
                // No element has more than 16 bytes.
                data = data
                    .wrapping_add(usize::try_from(shape.iter().product::<i64>().max(0)).unwrap());
                here.cast()
            };
            scene.input.shape = array(&call.shape);
            scene.input.data = place(&call.shape);
            for (output, length) in scene.outputs.iter_mut().zip(&call.lengths) {
                let mut shape = call.shape.clone();
                shape[axis] = *length;
                output.shape = array(&shape);
                if call.has_strides {
                    output.strides = array(&vec![-7; rank]);
                }
                output.data = place(&shape);
            }
            scene.split[0].shape = array(&[i64::try_from(count).unwrap()]);
            scene.split[0].data = array(&call.lengths).cast();
            if call.has_list {
                scene.params.split = scene.split.as_ptr();
            }
            scene.twist(call);
            scene
        }

        /// Spoils, or merely changes, one thing.
        fn twist(&mut self, call: &Call) {
            let at = call.at % self.count.max(1);
            let axis = call.at % call.shape.len();
            let Self { params, input, split, outputs, count, .. } = self;
            let lengths = split[0].data.cast::<i64>();
            let whole = call.shape.iter().product::<i64>();
            let mut none = tensor(0, 0);
            let before = outputs.get(at.wrapping_sub(1)).unwrap_or(&none).shape;
            let output = outputs.get_mut(at).unwrap_or(&mut none);
            // SAFETY: every array has the entries that are written.
            unsafe {
                match call.twist {
                    0 => params.struct_size += 8,
                    1 => params.flags = 2,
                    2 => params.num_outputs += 1,
                    3 => params.axis = i64::MIN,
                    4 => params.axis = i64::try_from(call.shape.len()).unwrap(),
                    5 => input.dtype.0 = 27,
                    6 => input.rank = -1,
                    7 => input.data = null_mut(),
                    8 => input.bit_offset = 4,
                    9 => input.data_bytes = usize::try_from(whole - 1).unwrap_or(1),
                    10 => input.data = input.data.wrapping_sub(input.data as usize + 1),
                    11 => *input.shape.add(axis) = -1,
                    12 => *input.shape.add(axis) = 0,
                    13 => *input.shape.add(axis) = 1 << 61,
                    14 => input.shape = null_mut(),
                    15 => *count = at,
                    16 => split[0].rank = 0,
                    17 => split[0].dtype.0 = 13,
                    18 => split[0].data_bytes = (8 * *count).saturating_sub(1),
                    19 => split[0].data = null_mut(),
                    20 => *split[0].shape += 1,
                    21 => split[0].data = split[0].data.wrapping_sub(split[0].data as usize + 1),
                    22 if *count > 0 => *lengths.add(at) = -1,
                    23 if *count > 0 => *lengths.add(at) += 1,
                    24 if *count > 0 => *lengths.add(at) = i64::MAX,
                    25 => *output = tensor(0, 0),
                    26 => output.dtype.0 = 2,
                    27 => output.rank += 1,
                    28 => output.data = null_mut(),
                    29 => output.data = input.data,
                    30 => output.data = output.data.wrapping_byte_sub(1),
                    31 => output.data_bytes = 1,
                    32 => output.bit_offset = 8,
                    33 => output.capacity -= 1,
                    34 => output.shape = input.shape,
                    35 => output.strides = output.shape,
                    36 => output.shape = lengths,
                    37 => output.data = split[0].data,
                    38 => output.data = output.shape.cast(),
                    39 => split[0].bit_offset = 8,
                    40 => output.shape = before,
                    41 => output.strides = before,
                    42 => split[0].strides = lengths,
                    _ => {}
                }
            }
        }

        /// All that a call may write, wherever it lies.
        fn contents(&self) -> (&[u128], Vec<[usize; 2]>, Vec<[i64; 3]>) {
            let base = self.memory.as_ptr() as usize;
            let data = |output: &libsplit_tensor| {
                [(output.data as usize).saturating_sub(base), output.data_bytes]
            };
            let numbers = |output: &libsplit_tensor| {
                [output.rank.into(), output.dtype.0.into(), output.bit_offset.into()]
            };
            let outputs = self.outputs.iter();
            (&self.memory, outputs.clone().map(data).collect(), outputs.map(numbers).collect())
        }
    }

    fn tensor(dtype: i32, rank: usize) -> libsplit_tensor {
        let rank = i32::try_from(rank).unwrap();
        libsplit_tensor {
            data: null_mut(),
            data_bytes: 0,
            shape: null_mut(),
            strides: null_mut(),
            rank,
            capacity: rank,
            dtype: libsplit_dtype(dtype),
            bit_offset: 0,
        }
    }

    fn call() -> impl Strategy<Value = Call> {
        let op = prop::sample::select(vec![
            (1, 1),
            (1, 2),
            (1, 12),
            (1, 13),
            (1, 18),
            (2, 11),
            (2, 24),
            (3, 1),
            (4, 0),
        ]);
        let shape = prop::collection::vec(prop_oneof![3 => 1i64..4, 1 => 4i64..9], 1..=4);
        let lengths = prop_oneof![
            prop::collection::vec(1i64..5, 1..=5),
            (1i64..4, 1usize..6).prop_map(|(length, count)| vec![length; count]),
            prop::collection::vec(0i64..3, 0..=5),
        ];
        (
            op,
            1i32..=26,
            shape,
            any::<prop::sample::Index>(),
            any::<bool>(),
            lengths,
            any::<[bool; 2]>(),
            0..TWISTS + 2,
            0usize..100,
        )
            .prop_map(
                |(
                    op,
                    dtype,
                    mut shape,
                    axis,
                    is_negative,
                    lengths,
                    [has_list, has_strides],
                    twist,
                    at,
                )| {
                    let (axis, rank) = (axis.index(shape.len()), shape.len());
                    shape[axis] = lengths.iter().sum();
                    let signed = |n: usize| i64::try_from(n).unwrap();
                    let axis = signed(axis) - if is_negative { signed(rank) } else { 0 };
                    Call { op, dtype, shape, axis, lengths, has_list, has_strides, twist, at }
                },
            )
            .prop_filter("not too many", |call| call.shape.iter().product::<i64>() <= 1 << 9)
    }

    #[test]
    fn what_all_operators_agree_on_is_usual() {
        let equal = |op| (op, false, vec![2; 3]);
        let listed = |op| (op, true, vec![1, 4, 1]);
        let calls = [
            equal((1, 2)),
            equal((1, 13)),
            equal((1, 18)),
            equal((4, 1)),
            listed((1, 1)),
            listed((1, 11)),
            listed((1, 18)),
            listed((2, 11)),
            listed((2, 24)),
            listed((3, 1)),
        ];
        for (op, has_list, lengths) in calls {
            for has_strides in [false, true] {
                let (shape, at) = (vec![2, 6, 3], 0);
                let lengths = lengths.clone();
                let call = Call {
                    op,
                    dtype: 1,
                    shape,
                    axis: -2,
                    lengths,
                    has_list,
                    has_strides,
                    twist: TWISTS,
                    at,
                };
                let Scene { input, params, outputs, count, .. } = &mut Scene::new(&call);
                // SAFETY: all memory is there.
                let is_done = unsafe {
                    if has_strides {
                        view(input, params, outputs.as_mut_ptr(), *count)
                    } else {
                        copy(input, params, outputs.as_ptr(), *count, null())
                    }
                };
                assert!(is_done, "{call:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

        /// What is done here is what a close look would have done, and nothing else is begun.
        #[test]
        fn usual_calls_end_as_closely_looked_at_ones(call in call(), is_copy in any::<bool>()) {
            let [mut quick, mut close, before] = [(); 3].map(|()| Scene::new(&call));
            // SAFETY: all memory is there, but for what no function may touch.
            let (is_done, result) = unsafe {
                let Scene { input, params, outputs, count, .. } = &mut quick;
                let is_done = if is_copy {
                    copy(input, params, outputs.as_ptr(), *count, null())
                } else {
                    view(input, params, outputs.as_mut_ptr(), *count)
                };
                let Scene { input, params, outputs, count, .. } = &mut close;
                (is_done, if is_copy {
                    copy_closely(input, params, outputs.as_ptr(), *count, null())
                } else {
                    view_closely(input, params, outputs.as_mut_ptr(), *count)
                })
            };
            if is_done {
                prop_assert!(result.is_ok(), "{:?}", result);
                prop_assert!(quick.contents() == close.contents());
            } else {
                prop_assert!(quick.contents() == before.contents());
            }
        }
    }
}
