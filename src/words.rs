//! The names that messages use: a table with a column for each door through which calls come.

use core::fmt;

/// The words of all doors: what each word means, and then what it is at each door, in this order.
macro_rules! words {
    ($($(#[$doc:meta])* $word:ident:
        $c:expr, $cpp:expr, $rust:expr, $python:expr, $tool:expr, $model:expr;)*) => {
        /// What callers of one door call the arguments of a call, for [`Error::message`](crate::Error::message).
        #[derive(Debug, Clone, Copy)]
        pub struct Words {
            $($(#[$doc])* pub $word: &'static str,)*
        }

        impl Words {
            /// The C functions of `libsplit.h`.
            pub const C: Self = Self { $($word: $c,)* };
            /// The C++ classes of `libsplit.hpp`.
            pub const CPP: Self = Self { $($word: $cpp,)* };
            /// The Rust API.
            pub const RUST: Self = Self { $($word: $rust,)* };
            /// The Python package: its functions that are named for operators.
            pub const PYTHON: Self = Self { $($word: $python,)* };
            /// The command-line tool.
            pub const COMMAND_LINE: Self = Self { $($word: $tool,)* };
            /// A node of a model: inputs and attributes by their names in ONNX and OpenVINO.
            pub const MODEL: Self = Self { $($word: $model,)* };
        }
    };
}

const REST: &str = "only in VariadicSplit may one be -1, for the rest";

words! {
    /// The tensor to split.
    input: "input", "input", "input", "x", "the array", "input";
    /// All outputs; one of them is this with its index in brackets.
    outputs: "outputs", "outputs", "outputs", "out", "outputs", "outputs";
    /// The operator's lengths.
    lengths: "params.split", "lengths", "lengths", "split", "--lengths", "split";
    /// What an entry of the lengths may be below 0.
    rest: REST, REST, REST, REST, REST, REST;
    /// The number of parts that is asked for.
    parts: "params.num_outputs", "parts", "num_outputs", "num_outputs", "--parts", "num_outputs";
    /// The number of outputs that are handed over.
    given: "num_outputs", "the number of outputs", "the number of outputs",
        "the number of arrays in out", "the number of outputs", "the number of outputs of the node";
    /// What an output that is not wanted looks like.
    unwanted: "all-zero", "default-constructed", "ViewMut::unwanted()",
        "None", "left out", "left out";
    /// The axis to split.
    axis: "params.axis", "axis", "axis", "axis", "--axis", "axis";
    /// The operator.
    operator: "params.op", "op", "operator", "op", "--op", "the operator";
    /// The opset of the model.
    opset: "params.opset", "opset", "opset", "opset", "--opset", "the opset";
    /// What gives the shapes of outputs.
    infer: "libsplit_infer", "infer()", "Split::shapes",
        "libsplit.infer", "--dry-run", "the node's inferred shapes";
    /// Which functions take what is not known yet, with the verb.
    take_unknown: "libsplit_infer and libsplit_count take", "infer() and count() take", "Split::shapes and Split::count take",
        "libsplit.infer takes", "models take", "shape inference takes";
    /// How to ask for shorter pieces if the last would have a negative length, after a comma; empty if that cannot
    /// be asked for.
    clamp: ", LIBSPLIT_FLAG_CLAMP_UNEVEN", ", clamp_uneven()", ", Split::clamp_uneven",
        ", clamp_uneven=True", ", --clamp-uneven", "";
}

/// What an error is about: an argument of a call, a part of one, or one of several outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The executor's function.
    ParallelFor,
    /// The structure that errors are written to.
    Error,
    /// The plan.
    Plan,
}

/// The pointer that an error is about: to an argument, or in a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Argument::ParallelFor => "executor.parallel_for",
            Argument::Error => "error",
            Argument::Plan => "plan",
        })
    }
}
