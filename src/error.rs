//! Everything that can be wrong with a call: a variant for each rule, and an [`ErrorKind`] for each status.

use crate::dtype::DType;
use crate::ffi::libsplit_status;
use crate::operator::Operator;
use crate::words::{Argument, Field, Named, Words};
use core::fmt;

/// Returns a count as errors report it.
pub(crate) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The name of an operator or of element types.
type Name = &'static str;

/// A field in the form that messages show.
macro_rules! shown {
    ($words:ident Argument $field:ident) => {
        Named(*$field, $words)
    };
    ($words:ident $type:ident $field:ident) => {
        *$field
    };
}

/// The output that an error is about, by its first field.
macro_rules! output_index {
    (output $output:ident $($others:ident)*) => {
        usize::try_from(*$output).ok()
    };
    (argument $argument:ident $($others:ident)*) => {
        match *$argument {
            Argument::Output(index) => Some(index),
            _ => None,
        }
    };
    ($($others:ident)*) => {
        None
    };
}

/// The kinds of error: the status of each in C, and what it means.
macro_rules! kinds {
    ($($kind:ident = $status:ident, $doc:literal;)*) => {
        /// The kinds of error; each has a status of its own in C, of the same number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $(#[doc = $doc] $kind = libsplit_status::$status.0,)*
        }

        /// The name of a status in C, NUL-terminated.
        pub(crate) fn status_name(status: libsplit_status) -> &'static str {
            match status {
                libsplit_status::OK => "LIBSPLIT_STATUS_OK\0",
                $(libsplit_status::$status => concat!("LIBSPLIT_STATUS_", stringify!($status), "\0"),)*
                _ => "LIBSPLIT_STATUS_UNKNOWN\0",
            }
        }

        #[cfg(test)]
        const NAMES: &[(&str, &str)] = &[$((stringify!($kind), stringify!($status))),*];
    };
}

/// The rules. Each has a message, a name, its kind and fields, and after a semicolon the two numbers that disagree.
/// Messages take the names of arguments from the words of the caller's door.
macro_rules! rules {
    ($words:ident; $(
        $(#[$cfg:meta])*
        ($message:literal $(, $word:expr)*)
        $rule:ident: $kind:ident
        $({ $($field:ident: $type:ident),* $(; $expected:ident, $actual:ident)? })?,
    )*) => {
        /// What was wrong with a call, with the numbers that disagree and the remedy in its message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        #[allow(missing_docs)] // the message above a variant says what it means
        pub enum Error {$(
            $(#[$cfg])*
            $rule $({ $($field: $type,)* $($expected: i64, $actual: i64)? })?,
        )*}

        impl fmt::Display for Message<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $words = self.words;
                match self.error {$(
                    $(#[$cfg])*
                    Error::$rule $({ $($field,)* $($expected, $actual)? })? => {
                        write!(f, $message $(, $word)*
                            $(, $($field = shown!($words $type $field),)* $($expected = *$expected, $actual = *$actual)?)?)
                    }
                )*}
            }
        }

        impl Error {
            /// The kind, which in C is the status.
            #[must_use]
            pub fn kind(&self) -> ErrorKind {
                match self {
                    $($(#[$cfg])* Self::$rule { .. } => ErrorKind::$kind,)*
                }
            }

            /// The output that the error is about; `None` when it concerns the input, the parameters or the executor.
            #[must_use]
            #[allow(unused_variables)]
            pub fn output_index(&self) -> Option<usize> {
                match self {
                    $($(#[$cfg])* Self::$rule { $($($field,)*)? .. } => output_index!($($($field $field)*)?),)*
                }
            }

            /// The two numbers that disagree, expected and actual, where two do.
            #[must_use]
            pub fn numbers(&self) -> Option<(i64, i64)> {
                match *self {
                    $($($(
                        Self::$rule { $expected, $actual, .. } => Some(($expected, $actual)),
                    )?)?)*
                    Self::Axis { axis, rank } if axis < 0 => Some((-number(rank), axis)),
                    Self::Axis { axis, rank } => Some((number(rank) - 1, axis)),
                    Self::LastNegative { last, .. } => Some((0, last)),
                    Self::RankZero => Some((1, 0)),
                    Self::PlanSize { expected, actual } | Self::PlanOutputs { expected, actual } => {
                        Some((number(expected), number(actual)))
                    }
                    Self::StructSizeHuge { expected, actual, .. }
                    | Self::TooManyOutputs { expected, actual, .. }
                    | Self::NumOutputsGiven { expected, actual, .. } => Some((expected, number(actual))),
                    _ => None,
                }
            }
        }
    };
}

/// An error in the words of a door; [`Error::message`] makes it.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    error: &'a Error,
    words: &'a Words,
}

impl fmt::Display for Error {
    /// The message in the words of the Rust API.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message(&Words::RUST).fmt(f)
    }
}

kinds! {
    Null = ERROR_NULL, "A pointer that is needed is NULL.";
    Alignment = ERROR_ALIGNMENT, "A descriptor, shape or strides pointer is not aligned for its type.";
    StructSize = ERROR_STRUCT_SIZE, "A `struct_size` that no version of the library knows, or a tail that is not zero.";
    Operator = ERROR_OPERATOR, "No such operator.";
    Opset = ERROR_OPSET, "No version of the operator at this opset.";
    Flags = ERROR_FLAGS, "A flag that this version does not know.";
    DType = ERROR_DTYPE, "No such element type, or one that the operator version does not allow.";
    Rank = ERROR_RANK, "A rank below 1 or above 64.";
    Axis = ERROR_AXIS, "An axis outside [-rank, rank-1].";
    Shape = ERROR_SHAPE, "An extent that is negative, or unknown where it must be known.";
    Split = ERROR_SPLIT, "Lengths that are absent, refused, or of the wrong rank or type.";
    SplitSizes = ERROR_SPLIT_SIZES, "Lengths or a number of parts that do not fit the extent of the axis.";
    NumOutputs = ERROR_NUM_OUTPUTS, "A number of outputs that is not the operator's.";
    Capacity = ERROR_CAPACITY, "Too little room in an output's shape or strides.";
    Strides = ERROR_STRIDES, "Strides that collide, or that this call cannot serve.";
    BitOffset = ERROR_BIT_OFFSET, "A bit offset that does not suit the element type.";
    DataBytes = ERROR_DATA_BYTES, "Fewer bytes than the tensor reaches over.";
    Overflow = ERROR_OVERFLOW, "Numbers too large for 63 bits.";
    Overlap = ERROR_OVERLAP, "Memory that is written overlaps memory that is read or written elsewhere.";
    Output = ERROR_OUTPUT, "An output's rank, type or shape is not what the operator gives.";
    Unknown = ERROR_UNKNOWN, "The number of outputs depends on an extent or length that is not known yet.";
    Executor = ERROR_EXECUTOR, "The caller's `parallel_for` failed or did not run every task.";
    Internal = ERROR_INTERNAL, "A bug in libsplit.";
    Plan = ERROR_PLAN, "Memory that is no plan of this library, or a plan for other numbers.";
}

rules! { w;
    ("{argument}{field} is NULL: point it to memory of your own")
    Null: Null { argument: Argument, field: Field },
    ("{argument}{field} is not aligned to {expected} bytes (its address is {actual} past a multiple): use a properly declared variable")
    Alignment: Alignment { argument: Argument, field: Field; expected, actual },
    ("{argument}.struct_size is {actual}, at least {expected} is needed: start from its LIBSPLIT_..._INIT macro")
    StructSize: StructSize { argument: Argument; expected, actual },
    ("{argument}.struct_size is {actual}, at most {expected} is accepted: start from its LIBSPLIT_..._INIT macro")
    StructSizeHuge: StructSize { argument: Argument, expected: i64, actual: usize },
    ("{argument} of {actual} bytes has non-zero ones past the {expected} this library knows: zero them, or update libsplit")
    NonZeroTail: StructSize { argument: Argument; expected, actual },
    ("{} {actual} is not an operator: use one of LIBSPLIT_OP_* (1 to {expected})", w.operator)
    OperatorUnknown: Operator { ; expected, actual },
    ("{} {actual}: {operator} begins at {expected}; pass the model's opset import", w.opset)
    Opset: Opset { operator: Name; expected, actual },
    ("{} {actual}: the newest version of {operator} is {expected}; pass that, or 0 for version 1", w.opset)
    OpenVinoOpset: Opset { operator: Name; expected, actual },
    ("{argument}.flags {actual:#x} has unknown bits, known are {expected:#x}: clear the others")
    Flags: Flags { argument: Argument; expected, actual },
    ("{argument}.dtype {actual} is not an element type: use one of LIBSPLIT_DTYPE_* (1 to {expected})")
    DTypeUnknown: DType { argument: Argument; expected, actual },
    ("{}.dtype {dtype} is not allowed by {operator}: {remedy} allows it", w.input)
    DTypeNotAllowed: DType { dtype: DType, operator: Operator, remedy: Operator },
    ("{}.rank is 0, at least 1 is needed: a tensor without axes cannot be split; give it an axis of extent 1", w.input)
    RankZero: Rank,
    ("{argument}.rank {actual} is above {expected}: merge axes")
    Rank: Rank { argument: Argument; expected, actual },
    ("{argument}.rank {actual} is below {expected}: set it to the number of axes")
    RankNegative: Rank { argument: Argument; expected, actual },
    ("{} {axis} is outside [-{rank}, {}] of rank {rank}: choose one inside", w.axis, rank.saturating_sub(1))
    Axis: Axis { axis: i64, rank: usize },
    ("{}.shape[{axis}] is {actual}, at least {expected} is needed: extents are not negative", w.input)
    ExtentNegative: Shape { axis: usize; expected, actual },
    ("{}.shape[{axis}] is unknown (-1): only {} unknown extents", w.input, w.take_unknown)
    ExtentUnknown: Shape { axis: usize },
    ("the shape of {} is [{actual}], at least {expected} is needed: give the number of lengths", w.lengths)
    LengthsExtent: Shape { ; expected, actual },
    ("{} is absent: {operator} needs lengths", w.lengths)
    LengthsAbsent: Split { operator: Operator },
    ("{} must be absent: {operator} takes no lengths; use VariadicSplit", w.lengths)
    LengthsRefused: Split { operator: Operator },
    ("{} and {} {actual} are both given: {operator} takes one of them; leave the lengths out, or set the number to {expected}", w.lengths, w.parts)
    LengthsAndNumOutputs: Split { operator: Operator; expected, actual },
    ("neither {} nor {} is given: {operator} needs one of them", w.lengths, w.parts)
    NeitherLengthsNorNumOutputs: Split { operator: Operator },
    ("{} has dtype {actual}: {operator} takes {expected}; convert the lengths", w.lengths)
    LengthsDType: Split { operator: Operator, actual: DType, expected: Name },
    ("{} is a scalar (rank {actual}): {operator} takes a list; use rank {expected}", w.lengths)
    LengthsScalar: Split { operator: Operator; expected, actual },
    ("{} has rank {actual}: lengths are a list, use rank {expected}", w.lengths)
    LengthsRank: Split { ; expected, actual },
    ("the values of {} are not known yet: only {} unknown lengths", w.lengths, w.take_unknown)
    LengthsUnknown: Split,
    ("{}[{output}] is {actual}, at least {expected} is needed: {}", w.lengths, w.rest)
    LengthNegative: SplitSizes { output: i64; expected, actual },
    ("{}[{output}] ({dtype}) is not a whole number within int64: lengths count elements", w.lengths)
    LengthNotInteger: SplitSizes { output: i64, dtype: DType },
    ("{}[{output}] is a second -1: {actual} stand for the rest, at most {expected} may; give the other lengths", w.lengths)
    SecondRest: SplitSizes { output: i64; expected, actual },
    ("{} adds up to {actual}, the axis has {expected}: make the lengths add up to it", w.lengths)
    LengthsSum: SplitSizes { ; expected, actual },
    ("{} adds up to {actual} without its -1, the axis has only {expected}: shorten the lengths", w.lengths)
    LengthsExceed: SplitSizes { ; expected, actual },
    ("{} adds up to more than {actual}, the axis has {expected}: make the lengths add up to it", w.lengths)
    LengthsSumOverflow: SplitSizes { ; expected, actual },
    ("{} is the scalar {actual}, at least {expected} is needed: it is the length of every piece", w.lengths)
    ScalarNotPositive: SplitSizes { ; expected, actual },
    ("{}: {operator} cannot make {expected} equal parts of extent {actual}: split by lengths, or by ONNX Split-18", w.parts)
    Uneven: SplitSizes { operator: Operator; expected, actual },
    ("{} {} of extent {extent}: sizes {output} x {size}, then {last}; use fewer{}, or lengths", w.parts, output + 1, w.clamp)
    LastNegative: SplitSizes { output: i64, size: i64, extent: i64, last: i64 },
    ("{} is {actual}, the operator gives {expected}: make them equal, or leave it out", w.parts)
    NumOutputsParam: NumOutputs { ; expected, actual },
    ("{} is {actual}, {operator} gives {expected} here: pass as many outputs, {} where unwanted", w.given, w.unwanted)
    NumOutputsGiven: NumOutputs { operator: Operator, expected: i64, actual: usize },
    ("{} is {actual}, at least {expected} is needed: it is the number of parts", w.parts)
    NumOutputsNegative: NumOutputs { ; expected, actual },
    ("{operator} without lengths makes as many parts as the node has outputs: set {}", w.parts)
    NumOutputsUnknown: NumOutputs { operator: Operator },
    ("{} is {actual}: ONNX Split gives at least {expected} output; pass the outputs of the node", w.given)
    NoOutputs: NumOutputs { ; expected, actual },
    ("{} has {actual} lengths: ONNX Split gives at least {expected} output; give a length for each", w.lengths)
    NoLengths: NumOutputs { ; expected, actual },
    ("{argument} asks for {actual} outputs, at most {expected} are possible: use fewer")
    TooManyOutputs: NumOutputs { argument: Argument, expected: i64, actual: usize },
    ("{} is {actual}, the plan has {expected}: pass as many addresses as it was made for", w.given)
    PlanOutputs: NumOutputs { expected: usize, actual: usize },
    ("{}[{output}].capacity is {actual}, the output has rank {expected}: give shape and strides that room", w.outputs)
    Capacity: Capacity { output: usize; expected, actual },
    ("{actual} strides for {expected} axes: give one for each axis")
    StridesLen: Strides { ; expected, actual },
    #[cfg(all(feature = "ndarray", not(feature = "capi")))]
    ("the array has gaps, in which others' elements may lie: pass the whole array, or its as_standard_layout()")
    ArrayGaps: Strides,
    ("{}[{output}].strides is NULL (packed), but the view is not packed: give strides of capacity entries", w.outputs)
    ViewNotPacked: Strides { output: usize },
    ("{}[{output}].strides[{axis}] is {actual}, but the axes of smaller strides reach over {expected} elements: elements would share an address; step over all of them", w.outputs)
    StridesCollide: Strides { output: usize, axis: usize; expected, actual },
    ("{}[{output}].strides are not packed: 4-bit and 2-bit outputs must be; pass NULL strides", w.outputs)
    SubByteStrides: Strides { output: usize },
    ("{argument}.bit_offset is {actual}, a multiple of {expected} is needed for the dtype: offset by whole elements")
    BitOffset: BitOffset { argument: Argument; expected, actual },
    ("{argument}.bit_offset is {actual}, {expected} is needed here: start at a whole byte")
    BitOffsetNotZero: BitOffset { argument: Argument; expected, actual },
    ("{argument}.data_bytes is {actual}, the tensor reaches over {expected} bytes: correct size, shape or strides, or set it to 0 (not stated)")
    DataBytes: DataBytes { argument: Argument; expected, actual },
    ("the slice has {actual} elements, the shape needs {expected}: pass that many")
    SliceLen: DataBytes { ; expected, actual },
    ("shape and strides reach element {actual} of a slice of {expected}: correct offset, shape or strides")
    SliceReach: DataBytes { ; expected, actual },
    ("{argument}: more elements than can be numbered in bits, or addressed as bytes: use smaller extents")
    TooManyElements: Overflow { argument: Argument },
    ("{argument}.strides reach further than 63 bits can number: correct the strides")
    StridesOverflow: Overflow { argument: Argument },
    ("{argument}.data: the tensor reaches past the end of the address space: correct data, shape or strides")
    AddressOverflow: Overflow { argument: Argument },
    ("{}[{output}] overlaps {other} in memory: give every output a buffer of its own", w.outputs)
    Overlap: Overlap { output: usize, other: Argument },
    ("{}[{output}] and {other} reach over the same memory and could not be shown apart: copy them in calls of their own, the other outputs {}", w.outputs, w.unwanted)
    NotShownApart: Overlap { output: usize, other: Argument },
    ("{}[{output}].data lies over the descriptors or arrays of {other}: give it a buffer of its own", w.outputs)
    DataOverDescriptor: Overlap { output: usize, other: Argument },
    ("{}[{output}]{field} lies in memory of {other} that is in use too: give it an array of its own", w.outputs)
    DescriptorOverlap: Overlap { output: usize, field: Field, other: Argument },
    ("{argument} lies over {other} in memory: give it memory of its own")
    ArrayOverlap: Overlap { argument: Argument, other: Argument },
    ("{}[{output}].dtype is {actual}, the input's is {expected}: splitting does not convert", w.outputs)
    OutputDType: Output { output: usize; expected, actual },
    ("{}[{output}].rank is {actual}, the operator gives {expected}: the split axis stays, as long as the piece; see {}", w.outputs, w.infer)
    OutputRank: Output { output: usize; expected, actual },
    ("{}[{output}].rank is {actual}, the operator gives {expected}: the split axis is dropped; see {}", w.outputs, w.infer)
    OutputRankDropped: Output { output: usize; expected, actual },
    ("{}[{output}].shape[{axis}] is {actual}, the operator gives {expected}: see {}", w.outputs, w.infer)
    OutputShape: Output { output: usize, axis: usize; expected, actual },
    ("the number of pieces depends on {argument}, which is not known yet: infer when it is")
    CountUnknown: Unknown { argument: Argument },
    ("parallel_for returned {actual}, {expected} means success: the outputs' bytes are not all written")
    ExecutorFailed: Executor { ; expected, actual },
    ("parallel_for ran {actual} of {expected} tasks: it must run each once before it returns")
    ExecutorSkipped: Executor { ; expected, actual },
    ("libsplit failed inside: this is a bug, please report it")
    Internal: Internal,
    ("plan holds no plan of this library (it begins with {actual:#x}): make one with libsplit_plan_init of this build")
    NoPlan: Plan { actual: u64 },
    ("plan_size is {actual}, {expected} bytes are needed: ask libsplit_plan_size")
    PlanSize: Plan { expected: usize, actual: usize },
}

impl Error {
    /// The message in the words of the door that the call came through.
    ///
    /// ```
    /// use libsplit::{Operator, Split, Words};
    ///
    /// let split = Split::new(Operator::VariadicSplit1).lengths(&[2, 2]);
    /// let error = split.shapes::<f32>(&[5]).unwrap_err();
    /// let say = |words| error.message(words).to_string();
    /// assert!(say(&Words::RUST).starts_with("lengths adds up to 4, the axis has 5"));
    /// assert!(say(&Words::C).starts_with("params.split adds up to 4, the axis has 5"));
    /// ```
    #[must_use]
    pub fn message<'a>(&'a self, words: &'a Words) -> Message<'a> {
        Message { error: self, words }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_kind_and_its_status_go_by_one_name() {
        for (kind, status) in super::NAMES {
            let name = status.strip_prefix("ERROR_").unwrap();
            assert_eq!(kind.to_uppercase(), name.replace('_', ""));
        }
    }
}
