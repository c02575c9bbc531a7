//! What messages call things: a table of names for each door that calls come through.

#![forbid(unsafe_code)]

use core::fmt;

/// What callers of one door call the arguments of a call, for [`Error::message`](crate::Error::message).
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The tensor to split.
    pub input: &'static str,
    /// All outputs; one of them is this with its index in brackets.
    pub outputs: &'static str,
    /// The operator's lengths.
    pub lengths: &'static str,
    /// What an entry of the lengths may be below 0.
    pub rest: &'static str,
    /// The number of parts that is asked for.
    pub parts: &'static str,
    /// The number of outputs that are handed over.
    pub given: &'static str,
    /// What an output that is not wanted looks like.
    pub unwanted: &'static str,
    /// The axis to split.
    pub axis: &'static str,
    /// The operator.
    pub operator: &'static str,
    /// The opset of the model.
    pub opset: &'static str,
    /// What gives the shapes of outputs.
    pub infer: &'static str,
    /// Which functions take what is not known yet, with the verb.
    pub take_unknown: &'static str,
    /// How to ask for shorter pieces where the last would have a negative length, after a comma; empty
    /// where one cannot.
    pub clamp: &'static str,
}

impl Words {
    /// The C functions of `libsplit.h`.
    pub const C: Self = Self {
        input: "input",
        outputs: "outputs",
        lengths: "params.split",
        rest: "only in VariadicSplit may one be -1, for the rest",
        parts: "params.num_outputs",
        given: "num_outputs",
        unwanted: "all-zero",
        axis: "params.axis",
        operator: "params.op",
        opset: "params.opset",
        infer: "libsplit_infer",
        take_unknown: "libsplit_infer and libsplit_count take",
        clamp: ", LIBSPLIT_FLAG_CLAMP_UNEVEN",
    };

    /// The C++ classes of `libsplit.hpp`.
    pub const CPP: Self = Self {
        lengths: "lengths",
        parts: "parts",
        given: "the number of outputs",
        unwanted: "default-constructed",
        axis: "axis",
        operator: "op",
        opset: "opset",
        infer: "infer()",
        take_unknown: "infer() and count() take",
        clamp: ", clamp_uneven()",
        ..Self::C
    };

    /// The Rust API.
    pub const RUST: Self = Self {
        lengths: "lengths",
        parts: "num_outputs",
        given: "the number of outputs",
        unwanted: "ViewMut::unwanted()",
        axis: "axis",
        operator: "operator",
        opset: "opset",
        infer: "Split::shapes",
        take_unknown: "Split::shapes and Split::count take",
        clamp: ", Split::clamp_uneven",
        ..Self::C
    };

    /// The Python package: its functions that are named for operators.
    pub const PYTHON: Self = Self {
        input: "x",
        outputs: "out",
        lengths: "split",
        parts: "num_outputs",
        given: "the number of arrays in out",
        unwanted: "None",
        axis: "axis",
        operator: "op",
        opset: "opset",
        infer: "libsplit.infer",
        take_unknown: "libsplit.infer takes",
        clamp: ", clamp_uneven=True",
        ..Self::C
    };

    /// The command-line tool.
    pub const COMMAND_LINE: Self = Self {
        input: "the array",
        lengths: "--lengths",
        parts: "--parts",
        given: "the number of outputs",
        unwanted: "left out",
        axis: "--axis",
        operator: "--op",
        opset: "--opset",
        infer: "--dry-run",
        take_unknown: "models take",
        clamp: ", --clamp-uneven",
        ..Self::C
    };

    /// A node of a model: inputs and attributes by their names in ONNX and OpenVINO.
    pub const MODEL: Self = Self {
        lengths: "split",
        parts: "num_outputs",
        given: "the number of outputs of the node",
        unwanted: "left out",
        axis: "axis",
        operator: "the operator",
        opset: "the opset",
        infer: "the node's inferred shapes",
        take_unknown: "shape inference takes",
        clamp: "",
        ..Self::C
    };
}

/// Which tensor an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The tensor to split.
    Input,
    /// The lengths.
    Split,
    /// This output.
    Output(usize),
    /// All outputs: their descriptors, or the array of their addresses.
    Outputs,
    /// The parameters.
    Params,
    /// The executor.
    Executor,
    /// The structure that errors are written to.
    Error,
    /// The plan.
    Plan,
}

impl Which {
    pub(crate) fn output(self) -> Option<usize> {
        match self {
            Self::Output(index) => Some(index),
            _ => None,
        }
    }
}

/// An argument of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// The tensor to split.
    Input,
    /// The shape of the tensor to split.
    InputShape,
    /// The parameters.
    Params,
    /// The lengths.
    Lengths,
    /// The number of parts.
    Parts,
    /// The outputs.
    Outputs,
    /// The number of outputs handed over.
    Given,
    /// Where a count is written to.
    Count,
    /// The executor.
    Executor,
    /// The executor's function.
    ParallelFor,
    /// The plan.
    Plan,
}

/// A pointer in a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
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
            Self::Data => "data",
            Self::Shape => "shape",
            Self::Strides => "strides",
        })
    }
}

/// Something by its name at a door.
pub(crate) struct Named<'a, T>(pub T, pub &'a Words);

impl fmt::Display for Named<'_, Which> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(which, words) = self;
        f.write_str(match which {
            Which::Input => words.input,
            Which::Split => words.lengths,
            Which::Output(index) => return write!(f, "{}[{index}]", words.outputs),
            Which::Outputs => words.outputs,
            Which::Params => "params",
            Which::Executor => "executor",
            Which::Error => "error",
            Which::Plan => "plan",
        })
    }
}

impl fmt::Display for Named<'_, Argument> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(argument, words) = self;
        f.write_str(match argument {
            Argument::Input => words.input,
            Argument::InputShape => return write!(f, "{}.shape", words.input),
            Argument::Params => "params",
            Argument::Lengths => words.lengths,
            Argument::Parts => words.parts,
            Argument::Outputs => words.outputs,
            Argument::Given => words.given,
            Argument::Count => "count",
            Argument::Executor => "executor",
            Argument::ParallelFor => "executor.parallel_for",
            Argument::Plan => "plan",
        })
    }
}
