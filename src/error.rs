//! Everything that can be wrong with a call: one variant a rule, one [`ErrorKind`] a status.

#![forbid(unsafe_code)]

use crate::dtype::DType;
use crate::operator::Operator;
use core::ffi::CStr;
use core::fmt;

/// Which tensor an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The tensor to split.
    Input,
    /// The lengths.
    Split,
    /// This output.
    Output(usize),
    /// The parameters.
    Params,
    /// The executor.
    Executor,
    /// The structure that errors are written to.
    Error,
    /// The plan.
    Plan,
}

/// A count as errors report it.
pub(crate) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Input => f.write_str("input"),
            Self::Split => f.write_str("params.split"),
            Self::Output(index) => write!(f, "outputs[{index}]"),
            Self::Params => f.write_str("params"),
            Self::Executor => f.write_str("executor"),
            Self::Error => f.write_str("error"),
            Self::Plan => f.write_str("plan"),
        }
    }
}

/// A name in a message.
type Text = &'static str;

/// A text as it stands: one that can be cut and filled up needs kilobytes of code.
struct Plain(Text);

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A field as messages show it.
macro_rules! shown {
    (Text $field:ident) => {
        Plain($field)
    };
    ($type:ident $field:ident) => {
        *$field
    };
}

/// The rules, under the kind that each is of: message, name, fields; behind a semicolon the two numbers that
/// disagree.
macro_rules! rules {
    ($($(#[$doc:meta])* $kind:ident = $number:literal $name:literal {$(
        $(#[$cfg:meta])*
        ($($message:tt)*)
        $rule:ident $({ $($field:ident: $type:ident),* $(; $expected:ident, $actual:ident)? })?,
    )*})*) => {
        /// The kinds of error; each has a status of its own in C, of the same number.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])* $kind = $number,)*
        }

        /// The name of a status in C, NUL-terminated, by its number.
        pub(crate) fn status_name(status: i32) -> &'static CStr {
            match status {
                0 => c"LIBSPLIT_STATUS_OK",
                $($number => $name,)*
                _ => c"LIBSPLIT_STATUS_UNKNOWN",
            }
        }

        #[cfg(test)]
        const NAMES: &[(&str, &CStr)] = &[$((stringify!($kind), $name)),*];

        /// What was wrong with a call, with the numbers that disagree and the remedy in its message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        #[allow(missing_docs)] // the message above a variant says what it means
        pub enum Error {$($(
            $(#[$cfg])*
            $rule $({ $($field: $type,)* $($expected: i64, $actual: i64)? })?,
        )*)*}

        impl fmt::Display for Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $($(
                        $(#[$cfg])*
                        Self::$rule $({ $($field,)* $($expected, $actual)? })? => {
                            Self::say(self, f, format_args!($($message)* $(, $($field = shown!($type $field),)* $($expected = *$expected, $actual = *$actual)?)?))
                        }
                    )*)*
                }
            }
        }

        impl Error {
            /// The kind, which in C is the status.
            #[must_use]
            pub fn kind(&self) -> ErrorKind {
                match self {
                    $($($(#[$cfg])* Self::$rule { .. } => ErrorKind::$kind,)*)*
                }
            }

            fn two_numbers(&self) -> Option<(i64, i64)> {
                match *self {
                    $($($($(
                        Self::$rule { $expected, $actual, .. } => Some(($expected, $actual)),
                    )?)?)*)*
                    _ => None,
                }
            }
        }
    };
}

rules! {
    /// A pointer that is needed is NULL.
    Null = 1 c"LIBSPLIT_STATUS_ERROR_NULL" {
        ("{argument} is NULL: pass a pointer")
        Null { argument: Text },
        ("{which}.{field} is NULL: point it to memory of your own")
        NullField { which: Which, field: Text },
        ("{which} is NULL: give the address of its element [0, ..., 0]")
        NullAddress { which: Which },
    }
    /// A descriptor, shape or strides pointer is not aligned for its type.
    Alignment = 2 c"LIBSPLIT_STATUS_ERROR_ALIGNMENT" {
        ("{argument} is not aligned to {expected} bytes (address ends in {actual}): use a properly declared variable")
        Alignment { argument: Text; expected, actual },
        ("{which}.{field} is not aligned to {expected} bytes (address ends in {actual}): use an int64_t array")
        AlignmentField { which: Which, field: Text; expected, actual },
    }
    /// A `struct_size` that no version of the library knows, or a tail that is not zero.
    StructSize = 3 c"LIBSPLIT_STATUS_ERROR_STRUCT_SIZE" {
        ("{argument}.struct_size is {actual}, at least {expected} is needed: start from its LIBSPLIT_..._INIT macro")
        StructSize { argument: Text; expected, actual },
        ("{argument}.struct_size is {actual}, at most {expected} is accepted: start from its LIBSPLIT_..._INIT macro")
        StructSizeHuge { argument: Text, expected: i64, actual: usize },
        ("{argument} of {actual} bytes has non-zero ones past the {expected} this library knows: zero them, or update libsplit")
        NonZeroTail { argument: Text; expected, actual },
    }
    /// No such operator.
    Operator = 4 c"LIBSPLIT_STATUS_ERROR_OPERATOR" {
        ("params.op {actual} is no operator: use one of LIBSPLIT_OP_* (1 to {expected})")
        OperatorUnknown { ; expected, actual },
    }
    /// No version of the operator at this opset.
    Opset = 5 c"LIBSPLIT_STATUS_ERROR_OPSET" {
        ("params.opset {actual}: {operator} begins at {expected}; pass the model's opset import")
        Opset { operator: Text; expected, actual },
        ("params.opset {actual}: {operator} has only version {expected}; pass 1 or 0")
        OpenVinoOpset { operator: Text; expected, actual },
    }
    /// A flag that this version does not know.
    Flags = 6 c"LIBSPLIT_STATUS_ERROR_FLAGS" {
        ("{argument}.flags {actual:#x} has unknown bits, known are {expected:#x}: clear the others")
        Flags { argument: Text; expected, actual },
    }
    /// No such element type, or one that the operator version does not allow.
    DType = 7 c"LIBSPLIT_STATUS_ERROR_DTYPE" {
        ("{which}.dtype {actual} is no element type: use one of LIBSPLIT_DTYPE_* (1 to {expected})")
        DTypeUnknown { which: Which; expected, actual },
        ("input.dtype {dtype} is not allowed by {operator}: {remedy} allows it")
        DTypeNotAllowed { dtype: DType, operator: Operator, remedy: Operator },
    }
    /// A rank below 1 or above 64.
    Rank = 8 c"LIBSPLIT_STATUS_ERROR_RANK" {
        ("input.rank is 0, at least 1 is needed: a tensor without axes cannot be split; give it an axis of extent 1")
        RankZero,
        ("{which}.rank {actual} is above {expected}: merge axes")
        Rank { which: Which; expected, actual },
        ("{which}.rank {actual} is below {expected}: set it to the number of axes")
        RankNegative { which: Which; expected, actual },
    }
    /// An axis outside [-rank, rank-1].
    Axis = 9 c"LIBSPLIT_STATUS_ERROR_AXIS" {
        ("params.axis {axis} is outside [-{rank}, {}] of rank {rank}: choose one inside", rank.saturating_sub(1))
        Axis { axis: i64, rank: usize },
    }
    /// An extent that is negative, or unknown where it must be known.
    Shape = 10 c"LIBSPLIT_STATUS_ERROR_SHAPE" {
        ("input.shape[{axis}] is {actual}, at least {expected} is needed: extents are not negative")
        ExtentNegative { axis: usize; expected, actual },
        ("input.shape[{axis}] is unknown (-1): only libsplit_infer and libsplit_count take unknown extents")
        ExtentUnknown { axis: usize },
        ("params.split->shape[0] is {actual}, at least {expected} is needed: give the number of lengths")
        LengthsExtent { ; expected, actual },
    }
    /// Lengths that are absent, refused, or of the wrong rank or type.
    Split = 11 c"LIBSPLIT_STATUS_ERROR_SPLIT" {
        ("params.split is NULL: {operator} needs lengths")
        LengthsAbsent { operator: Operator },
        ("params.split must be NULL: {operator} takes no lengths; use VariadicSplit")
        LengthsRefused { operator: Operator },
        ("params.split and num_outputs {actual} are both given: Split-18 takes one; set the other to NULL or {expected}")
        LengthsAndNumOutputs { ; expected, actual },
        ("neither params.split nor num_outputs is given: Split-18 needs one of them")
        NeitherLengthsNorNumOutputs,
        ("params.split has dtype {actual}: {operator} takes {expected}; convert the lengths")
        LengthsDType { operator: Operator, actual: DType, expected: Text },
        ("params.split is a scalar (rank {actual}): {operator} takes a list; use rank {expected}")
        LengthsScalar { operator: Operator; expected, actual },
        ("params.split has rank {actual}: lengths are a list, use rank {expected}")
        LengthsRank { ; expected, actual },
        ("params.split->data is NULL: lengths may be unknown only in libsplit_infer and libsplit_count")
        LengthsUnknown,
    }
    /// Lengths or a number of parts that do not fit the extent of the axis.
    SplitSizes = 12 c"LIBSPLIT_STATUS_ERROR_SPLIT_SIZES" {
        ("params.split[{output}] is {actual}, at least {expected} is needed: only in VariadicSplit may one be -1, for the rest")
        LengthNegative { output: i64; expected, actual },
        ("params.split[{output}] ({dtype}) is not a whole number within int64: lengths count elements")
        LengthNotInteger { output: i64, dtype: DType },
        ("params.split[{output}] is a second -1: {actual} stand for the rest, at most {expected} may; give the other lengths")
        SecondRest { output: i64; expected, actual },
        ("params.split adds up to {actual}, the axis has {expected}: make the lengths add up to it")
        LengthsSum { ; expected, actual },
        ("params.split adds up to {actual} without its -1, the axis has only {expected}: shorten the lengths")
        LengthsExceed { ; expected, actual },
        ("params.split adds up to more than {actual}, the axis has {expected}: make the lengths add up to it")
        LengthsSumOverflow { ; expected, actual },
        ("params.split is the scalar {actual}, at least {expected} is needed: it is the length of every piece")
        ScalarNotPositive { ; expected, actual },
        ("params.num_outputs: {operator} cannot make {expected} equal parts of extent {actual}: split by lengths, or by ONNX Split-18")
        Uneven { operator: Operator; expected, actual },
        ("params.num_outputs {count} of extent {extent}: sizes {} x {size}, then {last}; use fewer, lengths, or LIBSPLIT_FLAG_CLAMP_UNEVEN", count - 1)
        LastNegative { count: i64, size: i64, extent: i64, last: i64 },
    }
    /// A number of outputs that is not the operator's.
    NumOutputs = 13 c"LIBSPLIT_STATUS_ERROR_NUM_OUTPUTS" {
        ("params.num_outputs is {actual}, the operator gives {expected}: make them equal, or pass 0")
        NumOutputsParam { ; expected, actual },
        ("num_outputs is {actual}, {operator} gives {expected} here: pass as many outputs, all-zero where unwanted")
        NumOutputsGiven { operator: Operator, expected: i64, actual: usize },
        ("params.num_outputs is {actual}, at least {expected} is needed: it is the number of parts")
        NumOutputsNegative { ; expected, actual },
        ("{operator} without lengths makes as many parts as the node has outputs: set params.num_outputs")
        NumOutputsUnknown { operator: Operator },
        ("num_outputs is {actual}: ONNX Split gives at least {expected} output; pass the outputs of the node")
        NoOutputs { ; expected, actual },
        ("params.split has {actual} lengths: ONNX Split gives at least {expected} output; give a length for each")
        NoLengths { ; expected, actual },
        ("{argument} asks for {actual} outputs, at most {expected} are possible: use fewer")
        TooManyOutputs { argument: Text, expected: i64, actual: usize },
        ("num_outputs is {actual}, the plan has {expected}: pass as many addresses as it was made for")
        PlanOutputs { expected: usize, actual: usize },
    }
    /// Too little room in an output's shape or strides.
    Capacity = 14 c"LIBSPLIT_STATUS_ERROR_CAPACITY" {
        ("outputs[{output}].capacity is {actual}, the output has rank {expected}: give shape and strides that room")
        Capacity { output: usize; expected, actual },
    }
    /// Strides that collide, or that this call cannot serve.
    Strides = 15 c"LIBSPLIT_STATUS_ERROR_STRIDES" {
        ("{actual} strides for {expected} axes: give one for each axis")
        StridesLen { ; expected, actual },
        #[cfg(all(feature = "ndarray", not(feature = "capi")))]
        ("the array has gaps, in which others' elements may lie: pass the whole array, or its as_standard_layout()")
        ArrayGaps,
        ("outputs[{output}].strides is NULL (packed), but the view is not packed: give strides of capacity entries")
        ViewNotPacked { output: usize },
        ("outputs[{output}].strides let elements share an address: each must step over what the smaller ones reach")
        StridesCollide { output: usize },
        ("outputs[{output}].strides are not packed: 4-bit and 2-bit outputs must be; pass NULL strides")
        SubByteStrides { output: usize },
    }
    /// A bit offset that does not suit the element type.
    BitOffset = 16 c"LIBSPLIT_STATUS_ERROR_BIT_OFFSET" {
        ("{which}.bit_offset is {actual}, a multiple of {expected} is needed for the dtype: offset by whole elements")
        BitOffset { which: Which; expected, actual },
        ("{which}.bit_offset is {actual}, {expected} is needed here: start at a whole byte")
        BitOffsetNotZero { which: Which; expected, actual },
    }
    /// Fewer bytes than the tensor reaches over.
    DataBytes = 17 c"LIBSPLIT_STATUS_ERROR_DATA_BYTES" {
        ("{which}.data_bytes is {actual}, the tensor reaches over {expected} bytes: correct size, shape or strides, or set it to 0 (not stated)")
        DataBytes { which: Which; expected, actual },
        ("the slice has {actual} elements, the shape needs {expected}: pass that many")
        SliceLen { ; expected, actual },
        ("shape and strides reach element {actual} of a slice of {expected}: correct offset, shape or strides")
        SliceReach { ; expected, actual },
    }
    /// Numbers too large for 63 bits.
    Overflow = 18 c"LIBSPLIT_STATUS_ERROR_OVERFLOW" {
        ("{which}: more elements than 63 bits can number in bits: use smaller extents")
        TooManyElements { which: Which },
        ("{which}.strides reach further than 63 bits can number: correct the strides")
        StridesOverflow { which: Which },
        ("{which}.data: the tensor reaches past the end of the address space: correct data, shape or strides")
        AddressOverflow { which: Which },
    }
    /// Memory that is written overlaps memory that is read or written elsewhere.
    Overlap = 19 c"LIBSPLIT_STATUS_ERROR_OVERLAP" {
        ("outputs[{output}] overlaps {other} in memory: give every output a buffer of its own")
        Overlap { output: usize, other: Which },
        ("outputs[{output}] and {other} reach over the same memory and could not be shown apart: copy them by calls of their own, the other outputs all-zero")
        NotShownApart { output: usize, other: Which },
        ("outputs[{output}].data lies over the descriptors or arrays of {other}: give it a buffer of its own")
        DataOverDescriptor { output: usize, other: Which },
        ("outputs[{output}].{field} lies in memory of {other} that is in use too: give it an array of its own")
        DescriptorOverlap { output: usize, field: Text, other: Which },
        ("{argument} lies over {other} in memory: give it memory of its own")
        ArrayOverlap { argument: Text, other: Which },
    }
    /// An output's rank, type or shape is not what the operator gives.
    Output = 20 c"LIBSPLIT_STATUS_ERROR_OUTPUT" {
        ("outputs[{output}].dtype is {actual}, the input's is {expected}: splitting does not convert")
        OutputDType { output: usize; expected, actual },
        ("outputs[{output}].rank is {actual}, the operator gives {expected}: fill it by libsplit_infer")
        OutputRank { output: usize; expected, actual },
        ("outputs[{output}].shape[{axis}] is {actual}, the operator gives {expected}: fill it by libsplit_infer")
        OutputShape { output: usize, axis: usize; expected, actual },
    }
    /// The number of outputs depends on an extent or length that is not known yet.
    Unknown = 21 c"LIBSPLIT_STATUS_ERROR_UNKNOWN" {
        ("the number of pieces depends on {argument}, which is not known yet: infer when it is")
        CountUnknown { argument: Text },
    }
    /// The caller's `parallel_for` failed or did not run every task.
    Executor = 22 c"LIBSPLIT_STATUS_ERROR_EXECUTOR" {
        ("parallel_for returned {actual}, {expected} means success: the outputs' bytes are not all written")
        ExecutorFailed { ; expected, actual },
        ("parallel_for ran {actual} of {expected} tasks: it must run each once before it returns")
        ExecutorSkipped { ; expected, actual },
    }
    /// A bug in libsplit.
    Internal = 23 c"LIBSPLIT_STATUS_ERROR_INTERNAL" {
        ("libsplit failed inside: this is a bug, please report it")
        Internal,
    }
    /// Memory that is no plan of this library, or a plan for other numbers.
    Plan = 24 c"LIBSPLIT_STATUS_ERROR_PLAN" {
        ("plan holds no plan of this library (it begins with {actual:#x}): make one with libsplit_plan_init of this build")
        NoPlan { actual: u64 },
        ("plan_size is {actual}, {expected} bytes are needed: ask libsplit_plan_size")
        PlanSize { expected: usize, actual: usize },
    }
}

impl Error {
    /// Writes a message: a function for all, with the arguments where its caller has them, so that each message
    /// has little code.
    #[inline(never)]
    fn say(_: &Self, f: &mut fmt::Formatter<'_>, message: fmt::Arguments<'_>) -> fmt::Result {
        f.write_fmt(message)
    }

    /// The output that the error is about; `None` when it concerns the input, the parameters or
    /// the executor.
    #[must_use]
    pub fn output_index(&self) -> Option<usize> {
        match *self {
            Self::LengthNegative { output, .. }
            | Self::LengthNotInteger { output, .. }
            | Self::SecondRest { output, .. } => usize::try_from(output).ok(),
            Self::LastNegative { count, .. } => usize::try_from(count - 1).ok(),
            Self::Capacity { output, .. }
            | Self::OutputDType { output, .. }
            | Self::OutputRank { output, .. }
            | Self::OutputShape { output, .. }
            | Self::ViewNotPacked { output }
            | Self::StridesCollide { output }
            | Self::SubByteStrides { output }
            | Self::Overlap { output, .. }
            | Self::NotShownApart { output, .. }
            | Self::DataOverDescriptor { output, .. }
            | Self::DescriptorOverlap { output, .. } => Some(output),
            Self::NullField { which, .. }
            | Self::AlignmentField { which, .. }
            | Self::DTypeUnknown { which, .. }
            | Self::Rank { which, .. }
            | Self::RankNegative { which, .. }
            | Self::NullAddress { which }
            | Self::TooManyElements { which }
            | Self::StridesOverflow { which }
            | Self::AddressOverflow { which }
            | Self::DataBytes { which, .. }
            | Self::BitOffset { which, .. }
            | Self::BitOffsetNotZero { which, .. } => match which {
                Which::Output(output) => Some(output),
                _ => None,
            },
            _ => None,
        }
    }

    /// The two numbers that disagree, expected and actual, where two do.
    #[must_use]
    pub fn numbers(&self) -> Option<(i64, i64)> {
        match *self {
            Self::Axis { axis, rank } => {
                let rank = number(rank);
                Some((if axis < 0 { -rank } else { rank - 1 }, axis))
            }
            Self::LastNegative { last, .. } => Some((0, last)),
            Self::RankZero => Some((1, 0)),
            Self::PlanSize { expected, actual } | Self::PlanOutputs { expected, actual } => {
                Some((number(expected), number(actual)))
            }
            Self::StructSizeHuge { expected, actual, .. }
            | Self::TooManyOutputs { expected, actual, .. }
            | Self::NumOutputsGiven { expected, actual, .. } => Some((expected, number(actual))),
            _ => self.two_numbers(),
        }
    }
}

/// That a call is refused: one word in a `Result`, for the reason stands in the [`Report`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault(());

/// Why a call is refused.
#[derive(Debug, Default)]
pub(crate) struct Report(Option<Error>);

impl Report {
    /// Writes the reason down.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail(&mut self, error: Error) -> Fault {
        self.0 = Some(error);
        Fault(())
    }

    /// Refuses the call.
    #[inline(always)] // the reason is put together out of the way
    pub(crate) fn refuse<T>(&mut self, error: Error) -> Result<T, Fault> {
        Err(self.fail(error))
    }

    /// The reason, of a call that was refused.
    pub(crate) fn reason(self) -> Option<Error> {
        self.0
    }

    /// The same for Rust callers.
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn error(self, _: Fault) -> Error {
        self.0.unwrap_or(Error::Internal)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_kind_and_its_status_go_by_one_name() {
        for (kind, status) in super::NAMES {
            let name = status.to_str().unwrap().strip_prefix("LIBSPLIT_STATUS_ERROR_").unwrap();
            assert_eq!(kind.to_uppercase(), name.replace('_', ""));
        }
    }
}
