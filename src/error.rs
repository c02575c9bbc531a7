//! Everything that can be wrong with a call: a variant for each rule, and an [`ErrorKind`] for each status.

use crate::dtype::DType;
use crate::operator::Operator;
use crate::types::libsplit_status;
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

        /// Returns the name of a status in C, NUL-terminated.
        pub(crate) fn status_name(status: libsplit_status) -> &'static str {
            match status {
                libsplit_status::OK => "LIBSPLIT_STATUS_OK\0",
                $(libsplit_status::$status => concat!("LIBSPLIT_STATUS_", stringify!($status), "\0"),)*
                _ => "unknown status\0",
            }
        }
    };
}

/// The rules. Each has a message, a name, its kind and fields, and after a semicolon the two numbers that disagree.
/// Messages take the names of arguments from the words of the caller's door.
macro_rules! rules {
    ($words:ident; $(
        ($message:literal $(, $word:expr)*)
        $rule:ident: $kind:ident
        $({ $($field:ident: $type:ident),* $(; $expected:ident, $actual:ident: $number:ident)? })?,
    )*) => {
        /// What was wrong with a call, with the numbers that disagree and the remedy in its message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        #[allow(missing_docs)] // the message above a variant says what it means
        pub enum Error {$(
            $rule $({ $($field: $type,)* $($expected: i64, $actual: $number)? })?,
        )*}

        impl fmt::Display for Message<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $words = self.words;
                match self.error {$(
                    Error::$rule $({ $($field,)* $($expected, $actual)? })? => {
                        write!(f, $message $(, $word)*
                            $(, $($field = shown!($words $type $field),)* $($expected = *$expected, $actual = *$actual)?)?)
                    }
                )*}
            }
        }

        #[cfg(test)]
        /// One error of each rule.
        fn samples() -> Vec<Error> {
            vec![$(
                Error::$rule $({ $($field: tests::Sample::SAMPLE,)* $($expected: 4, $actual: 3)? })?,
            )*]
        }

        impl Error {
            /// Returns the kind, which in C is the status.
            #[must_use]
            pub fn kind(&self) -> ErrorKind {
                match self {
                    $(Self::$rule { .. } => ErrorKind::$kind,)*
                }
            }

            /// Returns the output that the error is about; `None` when it concerns the input, the parameters or the executor.
            #[must_use]
            #[allow(unused_variables)]
            pub fn output_index(&self) -> Option<usize> {
                match self {
                    $(Self::$rule { $($($field,)*)? .. } => output_index!($($($field $field)*)?),)*
                }
            }

            /// Returns the two numbers that disagree, expected and actual, where two do.
            #[must_use]
            pub fn numbers(&self) -> Option<(i64, i64)> {
                match *self {
                    $($($(
                        Self::$rule { $expected, $actual, .. } => {
                            Some(($expected, i64::try_from($actual).unwrap_or(i64::MAX)))
                        }
                    )?)?)*
                    Self::Axis { axis, rank } if axis < 0 => Some((-number(rank), axis)),
                    Self::Axis { axis, rank } => Some((number(rank) - 1, axis)),
                    Self::LastNegative { last, .. } => Some((0, last)),
                    Self::RankZero => Some((1, 0)),
                    Self::LengthsAndNumOutputs { given, .. } => Some((0, given)),
                    Self::OutputDType { expected, actual, .. } => Some((expected as i64, actual as i64)),
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
    CountUnknown = ERROR_COUNT_UNKNOWN, "The number of outputs depends on an extent or length that is not known yet.";
    Executor = ERROR_EXECUTOR, "The caller's `parallel_for` failed or did not run every task.";
    Internal = ERROR_INTERNAL, "A bug in libsplit.";
    Plan = ERROR_PLAN, "Memory that is not a plan of this library, or is too small for one.";
    NotShownApart = ERROR_NOT_SHOWN_APART, "Memory that could not be shown to overlap nowhere.";
}

rules! { w;
    ("{argument}{field} is {}", w.null)
    Null: Null { argument: Argument, field: Field },
    ("{actual} of {count} outputs are wanted, but at least {expected} has to be: {}", w.want)
    NoneWanted: Null { count: usize; expected, actual: i64 },
    ("{argument}{field} is not aligned to {expected} bytes (its address is {actual} past a multiple): use a properly declared variable")
    Alignment: Alignment { argument: Argument, field: Field; expected, actual: i64 },
    ("{argument}.struct_size is {actual}, but at least {expected} is needed: start from its LIBSPLIT_..._INIT macro")
    StructSize: StructSize { argument: Argument; expected, actual: i64 },
    ("{argument}.struct_size is {actual}, but at most {expected} is accepted: start from its LIBSPLIT_..._INIT macro")
    StructSizeHuge: StructSize { argument: Argument; expected, actual: usize },
    ("{argument} has {actual} bytes, and those after the {expected} that this library knows are not all 0: zero them, or update libsplit")
    NonZeroTail: StructSize { argument: Argument; expected, actual: i64 },
    ("params.op {actual} is not an operator: use one of LIBSPLIT_OP_* (1 to {expected})")
    OperatorUnknown: Operator { ; expected, actual: i64 },
    ("{} is {actual}, but {operator} begins at {expected}: pass the model's opset import", w.opset)
    Opset: Opset { operator: Name; expected, actual: i64 },
    ("{} is {actual}, but the newest version of {operator} is {expected}: pass that, or 0 for version 1", w.opset)
    OpenVinoOpset: Opset { operator: Name; expected, actual: i64 },
    ("{argument}.flags {actual:#x} has unknown bits: only {expected:#x} are known, clear the others")
    Flags: Flags { argument: Argument; expected, actual: i64 },
    ("{argument}.dtype {actual} is not an element type: use a number of ONNX TensorProto.DataType (1 to {expected})")
    DTypeUnknown: DType { argument: Argument; expected, actual: i64 },
    ("outputs[{output}].dtype is 0: call libsplit_infer first, or fill in dtype, rank and shape")
    NotDescribed: DType { output: usize },
    ("{}.dtype {dtype} is not allowed by {operator}: {remedy} allows it", w.input)
    DTypeNotAllowed: DType { dtype: DType, operator: Operator, remedy: Operator },
    ("{}.rank is 0, but a tensor without axes cannot be split: give it an axis of extent 1", w.input)
    RankZero: Rank,
    ("{argument}.rank {actual} is above {expected}: merge axes")
    Rank: Rank { argument: Argument; expected, actual: i64 },
    ("{argument}.rank {actual} is below {expected}: set it to the number of axes")
    RankNegative: Rank { argument: Argument; expected, actual: i64 },
    ("{} {axis} is outside [-{rank}, {}] of rank {rank}: choose one inside", w.axis, rank.saturating_sub(1))
    Axis: Axis { axis: i64, rank: usize },
    ("{}.shape[{axis}] is {actual}, but an extent is at least {expected}: correct the shape", w.input)
    ExtentNegative: Shape { axis: usize; expected, actual: i64 },
    ("{}.shape[{axis}] is unknown (-1): give the extent; unknown extents are for {}", w.input, w.infer)
    ExtentUnknown: Shape { axis: usize },
    ("the shape of {} is [{actual}], but an extent is at least {expected}: give the number of lengths", w.lengths)
    LengthsExtent: Shape { ; expected, actual: i64 },
    ("{operator} needs lengths: give {}", w.lengths)
    LengthsAbsent: Split { operator: Operator },
    ("{operator} takes no lengths: leave out {}, or use VariadicSplit", w.lengths)
    LengthsRefused: Split { operator: Operator },
    ("{} and {} {given} are both given: {operator} takes only one of them; leave out the lengths, or {}", w.lengths, w.parts, w.no_parts)
    LengthsAndNumOutputs: Split { operator: Operator, given: i64 },
    ("neither {} nor {} is given: {operator} needs one of them", w.lengths, w.parts)
    NeitherLengthsNorNumOutputs: Split { operator: Operator },
    ("the dtype of {} is {actual}, but {operator} takes {expected}: convert the lengths", w.lengths)
    LengthsDType: Split { operator: Operator, actual: DType, expected: Name },
    ("the rank of {} is {actual} (a scalar), but {operator} takes a list: use rank {expected}", w.lengths)
    LengthsScalar: Split { operator: Operator; expected, actual: i64 },
    ("the rank of {} is {actual}, but lengths are a list: use rank {expected}", w.lengths)
    LengthsRank: Split { ; expected, actual: i64 },
    ("the values of {} are not known yet: give them; unknown lengths are for {}", w.lengths, w.infer)
    LengthsUnknown: Split,
    ("{}[{output}] is {actual}, but a length is at least {expected}: {}", w.lengths, w.rest)
    LengthNegative: SplitSizes { output: i64; expected, actual: i64 },
    ("{}[{output}] ({dtype}) is not a whole number within int64: lengths count elements", w.lengths)
    LengthNotInteger: SplitSizes { output: i64, dtype: DType },
    ("{}[{output}] is a second -1: at most {expected} length may be -1, but {actual} are; give the others", w.lengths)
    SecondRest: SplitSizes { output: i64; expected, actual: i64 },
    ("the sum of {} is {actual}, but the extent of the axis is {expected}: make the lengths add up to it", w.lengths)
    LengthsSum: SplitSizes { ; expected, actual: i64 },
    ("the sum of {} without the -1 is {actual}, but the extent of the axis is only {expected}: make the lengths smaller", w.lengths)
    LengthsExceed: SplitSizes { ; expected, actual: i64 },
    ("the sum of {} is above {actual}, but the extent of the axis is {expected}: make the lengths add up to it", w.lengths)
    LengthsSumOverflow: SplitSizes { ; expected, actual: i64 },
    ("{} is the scalar {actual}, but the length of every piece is at least {expected}: give a larger one", w.lengths)
    ScalarNotPositive: SplitSizes { ; expected, actual: i64 },
    ("{argument} is {expected}, but {operator} cannot divide an extent of {actual} into {expected} equal parts: split by lengths, or by ONNX Split-18")
    Uneven: SplitSizes { argument: Argument, operator: Operator; expected, actual: i64 },
    ("{} is {}: an extent of {extent} would give {output} parts of {size} and a last one of {last}; use fewer{}, or lengths", w.parts, output + 1, w.clamp)
    LastNegative: SplitSizes { output: i64, size: i64, extent: i64, last: i64 },
    ("{} is {actual}, but the operator gives {expected}: make them equal, or leave it out", w.parts)
    NumOutputsParam: NumOutputs { ; expected, actual: i64 },
    ("{} is {actual}, but {operator} gives {expected} here: pass as many outputs, {} where unwanted", w.given, w.unwanted)
    NumOutputsGiven: NumOutputs { operator: Operator; expected, actual: usize },
    ("{} is {actual}, but at least {expected} is needed: it is the number of parts", w.parts)
    NumOutputsNegative: NumOutputs { ; expected, actual: i64 },
    ("{operator} without lengths makes as many parts as the node has outputs: set {}", w.parts)
    NumOutputsUnknown: NumOutputs { operator: Operator },
    ("{} is {actual}, but ONNX Split gives at least {expected} output: pass the outputs of the node", w.given)
    NoOutputs: NumOutputs { ; expected, actual: i64 },
    ("there are {actual} lengths in {}, but ONNX Split gives at least {expected} output: give a length for each", w.lengths)
    NoLengths: NumOutputs { ; expected, actual: i64 },
    ("{argument} asks for {actual} outputs, but at most {expected} are possible: use fewer")
    TooManyOutputs: NumOutputs { argument: Argument; expected, actual: usize },
    ("{} is {actual}, but the plan has {expected}: pass as many addresses as it was made for", w.given)
    PlanOutputs: NumOutputs { ; expected, actual: usize },
    ("{}[{output}].capacity is {actual}, but the output has rank {expected}: give shape and strides that much room", w.outputs)
    Capacity: Capacity { output: usize; expected, actual: i64 },
    ("there are {actual} strides for {expected} axes: give one for each axis")
    StridesLen: Strides { ; expected, actual: i64 },
    ("the array has gaps, in which others' elements may lie: pass the whole array, or its as_standard_layout()")
    ArrayGaps: Strides,
    ("{}[{output}].strides is absent (packed), but the view is not packed: give an array for the strides", w.outputs)
    ViewNotPacked: Strides { output: usize },
    ("{}[{output}].strides[{axis}] is {actual}, but the axes of smaller strides reach over {expected} elements: elements would share an address; step over all of them", w.outputs)
    StridesCollide: Strides { output: usize, axis: usize; expected, actual: i64 },
    ("{}[{output}].strides are not packed: 4-bit and 2-bit outputs must be; give packed memory", w.outputs)
    SubByteStrides: Strides { output: usize },
    ("{argument}.bit_offset is {actual}, but the dtype needs a multiple of {expected}: offset by whole elements")
    BitOffset: BitOffset { argument: Argument; expected, actual: i64 },
    ("{argument}.bit_offset is {actual}, but {expected} is needed here: start at a whole byte")
    BitOffsetNotZero: BitOffset { argument: Argument; expected, actual: i64 },
    ("{argument}.{} is {actual}, but the tensor reaches over {expected} bytes: correct the size, the shape or the strides", w.data_bytes)
    DataBytes: DataBytes { argument: Argument; expected, actual: i64 },
    ("the slice has {actual} elements, but the shape needs {expected}: pass that many")
    SliceLen: DataBytes { ; expected, actual: i64 },
    ("shape and strides reach element {actual} of a slice of only {expected}: correct offset, shape or strides")
    SliceReach: DataBytes { ; expected, actual: i64 },
    ("{argument} has more elements than can be numbered in bits, or addressed as bytes: use smaller extents")
    TooManyElements: Overflow { argument: Argument },
    ("{argument}.strides reach further than can be numbered: correct the strides")
    StridesOverflow: Overflow { argument: Argument },
    ("{argument} reaches past the end of the address space: correct its address, shape or strides")
    AddressOverflow: Overflow { argument: Argument },
    ("{}[{output}] overlaps {other} in memory: give every output a buffer of its own", w.outputs)
    Overlap: Overlap { output: usize, other: Argument },
    ("{}[{output}] and {other} reach over the same memory and could not be shown apart: give the first other memory, or copy it in a call of its own with the other outputs {}", w.outputs, w.unwanted)
    NotShownApart: NotShownApart { output: usize, other: Argument },
    ("{}[{output}] and {} reach over the same memory and could not be shown apart: give the output other memory", w.outputs, w.input)
    NotShownApartFromInput: NotShownApart { output: usize },
    ("{}[{output}]{field} overlaps memory of {other} that the call uses too: give it memory of its own", w.outputs)
    UsedElsewhere: Overlap { output: usize, field: Field, other: Argument },
    ("{argument} overlaps {other} in memory: give it memory of its own")
    ArrayOverlap: Overlap { argument: Argument, other: Argument },
    ("{}[{output}].dtype is {actual}, but that of {} is {expected}: splitting does not convert", w.outputs, w.input)
    OutputDType: Output { output: usize, expected: DType, actual: DType },
    ("{}[{output}].rank is {actual}, but the operator gives {expected}: the split axis stays unless keepdims is 0; see {}", w.outputs, w.infer)
    OutputRank: Output { output: usize; expected, actual: i64 },
    ("{}[{output}].shape[{axis}] is {actual}, but the operator gives {expected}: see {}", w.outputs, w.infer)
    OutputShape: Output { output: usize, axis: usize; expected, actual: i64 },
    ("the number of pieces depends on {argument}, which is not known yet: call again when it is")
    CountUnknown: CountUnknown { argument: Argument },
    ("{} returned {actual}, but {expected} means success: the outputs are incomplete, copy again", w.parallel_for)
    ExecutorFailed: Executor { ; expected, actual: i64 },
    ("{} ran only {actual} of {expected} tasks: run each of them once before it returns", w.parallel_for)
    ExecutorSkipped: Executor { ; expected, actual: i64 },
    ("plan is not a plan of this library (it begins with {actual:#x}): make one with libsplit_plan_init of this build")
    NoPlan: Plan { actual: u64 },
    ("plan_size is {actual}, but {expected} bytes are needed: see libsplit_plan_size")
    PlanSize: Plan { ; expected, actual: usize },
}

impl Error {
    /// Returns the message in the words of the door that the call came through.
    ///
    /// ```
    /// let split = libsplit::Split::new(libsplit::Operator::VariadicSplit1).lengths(&[2, 2]);
    /// let error = split.shapes::<f32>(&[5]).unwrap_err();
    /// assert!(error.message(&libsplit::Words::C).to_string().starts_with("the sum of params.split is 4"));
    /// ```
    #[must_use]
    pub fn message<'a>(&'a self, words: &'a Words) -> Message<'a> {
        Message { error: self, words }
    }
}

#[cfg(test)]
mod tests {
    use super::{libsplit_status, samples, status_name};
    use super::{Argument, DType, Error, Field, Name, Named, Operator, Words};
    use std::fmt::Write as _;

    /// A value that shows in messages as what it is.
    pub(super) trait Sample {
        const SAMPLE: Self;
    }

    macro_rules! samples_of {
        ($($type:ty = $sample:expr;)*) => {
            $(impl Sample for $type { const SAMPLE: Self = $sample; })*
        };
    }

    samples_of! {
        Argument = Argument::Output(1);
        Field = Field::Strides;
        DType = DType::Bfloat16;
        Operator = Operator::Split11;
        Name = "ONNX Split";
        i64 = 1;
        u64 = 1;
        usize = 1;
    }

    const DOORS: [(&str, Words); 7] = [
        ("C", Words::C),
        ("C++", Words::CPP),
        ("Rust", Words::RUST),
        ("Python", Words::PYTHON),
        ("command line", Words::COMMAND_LINE),
        ("ONNX", Words::ONNX),
        ("OpenVINO", Words::OPENVINO),
    ];
    const ARGUMENTS: [Argument; 12] = [
        Argument::Input,
        Argument::InputShape,
        Argument::Lengths,
        Argument::Parts,
        Argument::Output(1),
        Argument::Outputs,
        Argument::Given,
        Argument::Params,
        Argument::Count,
        Argument::Executor,
        Argument::Error,
        Argument::Plan,
    ];
    /// The errors that only callers of `libsplit.h` can make.
    const ONLY_IN_C: [&str; 8] = [
        "StructSize",
        "StructSizeHuge",
        "NonZeroTail",
        "OperatorUnknown",
        "Flags",
        "NotDescribed",
        "NoPlan",
        "PlanSize",
    ];
    /// The errors that only callers of the Rust API can make.
    const ONLY_IN_RUST: [&str; 4] = ["StridesLen", "ArrayGaps", "SliceLen", "SliceReach"];

    fn name(error: &Error) -> String {
        let debug = format!("{error:?}");
        debug.split([' ', '{']).next().unwrap().into()
    }

    fn doors_of(error: &Error) -> &[(&str, Words)] {
        let name = name(error);
        match () {
            () if ONLY_IN_C.contains(&&*name) => &DOORS[..1],
            () if ONLY_IN_RUST.contains(&&*name) => &DOORS[2..3],
            () => &DOORS,
        }
    }

    /// Returns a text at each of these doors; doors with the same text share a line.
    fn at_each(doors: &[(&str, Words)], say: impl Fn(&Words) -> String) -> String {
        let mut lines: Vec<(String, String)> = Vec::new();
        for (door, words) in doors {
            let text = say(words);
            match lines.iter_mut().find(|(_, other)| *other == text) {
                Some((doors, _)) => write!(doors, ", {door}").unwrap(),
                None => lines.push(((*door).into(), text)),
            }
        }
        let mut text = String::new();
        for (doors, said) in lines {
            writeln!(text, "    {doors}: {said}").unwrap();
        }
        text
    }

    /// `tests/messages.txt` holds everything that messages say, at every door, so that each change of them is read.
    /// `LIBSPLIT_UPDATE_MESSAGES=1 cargo test --lib messages` writes it.
    #[test]
    fn messages_at_every_door_are_those_that_were_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/messages.txt");
        let mut messages = String::new();
        for argument in ARGUMENTS {
            let text = at_each(&DOORS, |words| Named(argument, words).to_string());
            write!(messages, "Argument::{argument:?}\n{text}").unwrap();
        }
        for error in samples() {
            let text = at_each(doors_of(&error), |words| error.message(words).to_string());
            write!(messages, "Error::{}\n{text}", name(&error)).unwrap();
        }
        if std::env::var_os("LIBSPLIT_UPDATE_MESSAGES").is_some() {
            std::fs::write(path, &messages).unwrap();
        }
        let read = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            read == messages,
            "{path} differs: rerun with LIBSPLIT_UPDATE_MESSAGES=1, read it, and commit it"
        );
    }

    #[test]
    fn no_other_door_has_names_that_only_the_c_header_has() {
        const NAMES_IN_C: [&str; 6] =
            ["params", "NULL", "LIBSPLIT_", "libsplit_", "data_bytes", "all-zero"];
        for error in samples() {
            for (door, words) in doors_of(&error).iter().filter(|(door, _)| *door != "C") {
                let text = error.message(words).to_string();
                assert!(!NAMES_IN_C.iter().any(|name| text.contains(name)), "{door}: {text}");
            }
        }
    }

    #[test]
    fn a_kind_and_its_status_go_by_one_name() {
        for kind in samples().iter().map(Error::kind) {
            let status = status_name(libsplit_status(kind as i32)).trim_end_matches('\0');
            let name = status.strip_prefix("LIBSPLIT_STATUS_ERROR_").unwrap();
            assert_eq!(format!("{kind:?}").to_uppercase(), name.replace('_', ""));
        }
    }
}
