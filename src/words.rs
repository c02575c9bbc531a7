//! The names that messages use: a table with a column for each door through which calls come.

use core::fmt;

/// The words: what each means, and what it is at each door, in the order of the constants below.
macro_rules! words {
    ($($(#[$doc:meta])* $word:ident: [$c:expr, $cpp:expr, $onnx:expr, $openvino:expr, $rust:expr, $python:expr,
        $tool:expr];)*) => {
        /// What callers of one door call the arguments of a call, for [`Error::message`](crate::Error::message).
        #[derive(Debug, Clone, Copy)]
        #[non_exhaustive]
        pub struct Words {
            $($(#[$doc])* pub $word: &'static str,)*
        }

        impl Words {
            /// Returns the words of a door by its number, which for the first four is that of `LIBSPLIT_WORDS_...`.
            #[inline(always)]
            pub(crate) const fn of(door: u32) -> Self {
                Self { $($word: match door {
                    1 => $cpp,
                    2 => $onnx,
                    3 => $openvino,
                    4 => $rust,
                    5 => $python,
                    6 => $tool,
                    _ => $c,
                },)* }
            }
        }
    };
}

impl Words {
    /// The C functions of `libsplit.h`.
    pub const C: Self = Self::of(0);
    /// The C++ classes of `libsplit.hpp`.
    pub const CPP: Self = Self::of(1);
    /// A node of an ONNX model.
    pub const ONNX: Self = Self::of(2);
    /// An operation of an OpenVINO model.
    pub const OPENVINO: Self = Self::of(3);
    /// The Rust API.
    pub const RUST: Self = Self::of(4);
    /// The Python package: its functions that are named for operators.
    pub const PYTHON: Self = Self::of(5);
    /// The command-line tool.
    pub const COMMAND_LINE: Self = Self::of(6);
}

const REST: &str = "only in VariadicSplit may one be -1, for the rest";
const POOL: &str = "the thread pool";
const COUNT: &str = "the number of outputs";

words! {
    /// The tensor to split.
    input: ["input", "input", "input", "data", "input", "x", "input"];
    /// All outputs; one of them is this with its index in brackets.
    outputs: ["outputs", "outputs", "outputs", "outputs", "outputs", "out", "outputs"];
    /// The operator's lengths.
    lengths: ["params.split", "lengths()", "split", "split_lengths", "lengths", "split", "--lengths"];
    /// What an entry of the lengths may be below 0.
    rest: [REST, REST, REST, REST, REST, REST, REST];
    /// The number of parts that is asked for.
    parts: ["params.num_outputs", "parts()", "num_outputs", "num_splits", "num_outputs", "num_outputs", "--parts"];
    /// How to ask for no number of parts.
    no_parts: ["set params.num_outputs to 0", "leave out parts()", "remove the attribute num_outputs",
        "remove the attribute num_splits", "leave out num_outputs", "leave out num_outputs", "leave out --parts"];
    /// The number of outputs that are handed over.
    given: ["num_outputs", COUNT, COUNT, COUNT, COUNT, "the number of arrays in out", COUNT];
    /// What an output that is not wanted looks like.
    unwanted: ["all-zero", "{}", "without a name", "without a name", "ViewMut::unwanted()", "None", "left out"];
    /// How to want an output.
    want: ["make their descriptors with libsplit_outputs_init", "give one of them memory", "name one of them",
        "name one of them", "give one of them memory", "give an array for one of them", "leave one of them in"];
    /// The axis to split.
    axis: ["params.axis", "axis()", "axis", "axis", "axis", "axis", "--axis"];
    /// The opset of the model.
    opset: ["params.opset", "opset", "the opset", "the opset", "opset", "opset", "--opset"];
    /// What gives the shapes of outputs, also if extents or lengths are not known yet.
    infer: ["libsplit_infer", "infer()", "shape inference", "shape inference", "Split::shapes", "libsplit.infer",
        "--dry-run"];
    /// How to ask for shorter pieces where the last would have a negative length, after a comma; empty if one cannot.
    clamp: [", LIBSPLIT_FLAG_CLAMP_UNEVEN", ", clamp_uneven()", "", "", ", Split::clamp_uneven", ", clamp_uneven=True",
        ", --clamp-uneven"];
    /// What there is in place of an address, and the remedy.
    null: ["NULL: give a valid pointer", "nullptr: give a valid pointer", "missing: give it", "missing: give it",
        "empty: give all elements", "missing: give an array with data", "empty: give all elements"];
    /// What states the bytes of a tensor.
    data_bytes: ["data_bytes", "bytes()", "size", "get_byte_size()", "len()", "nbytes", "size"];
    /// What runs the tasks of a copy.
    parallel_for: ["executor.parallel_for", "the executor", POOL, POOL, "Executor::parallel_for", POOL, POOL];
}

/// What an error is about: an argument of a call, a part of one, or one of several outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Argument {
    /// The tensor to split.
    Input,
    /// The shape of the tensor to split.
    InputShape,
    /// The lengths.
    Lengths,
    /// The number of parts.
    Parts,
    /// This output.
    Output(usize),
    /// All outputs: their descriptors, or the array of their addresses.
    Outputs,
    /// The number of outputs handed over.
    Given,
    /// The parameters.
    Params,
    /// Where a count is written to.
    Count,
    /// The executor.
    Executor,
    /// The structure that errors are written to.
    Error,
    /// The plan.
    Plan,
}

/// The pointer that an error is about: to an argument, or in a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The pointer to the argument itself.
    Itself,
    /// The address of element [0, …, 0].
    Data,
    /// The extents.
    Shape,
    /// The strides.
    Strides,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Itself => "",
            Self::Data => ".data",
            Self::Shape => ".shape",
            Self::Strides => ".strides",
        })
    }
}

/// An argument, shown by its name at a door.
pub(crate) struct Named<'a>(pub Argument, pub &'a Words);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(argument, words) = self;
        f.write_str(match argument {
            Argument::Input => words.input,
            Argument::InputShape => return write!(f, "{}.shape", words.input),
            Argument::Lengths => words.lengths,
            Argument::Parts => words.parts,
            Argument::Output(index) => return write!(f, "{}[{index}]", words.outputs),
            Argument::Outputs => words.outputs,
            Argument::Given => words.given,
            Argument::Params => "params",
            Argument::Count => "count",
            Argument::Executor => "executor",
            Argument::Error => "error",
            Argument::Plan => "plan",
        })
    }
}
