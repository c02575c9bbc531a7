//! The operator versions: which version governs a model, which element types it allows, and which rules it follows.

// A new version is not built until each `match` says what is true of it. Nor can `Rules` be compared with `==`.
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]

use crate::dtype::DType;
use crate::error::{number, Error};
use crate::types::libsplit_op;
use core::fmt;

/// The operators, each with its number in C, its name, what its opset means, and its versions, oldest first: the opset
/// that introduced the version, its rules, and the element types of its type constraint T.
macro_rules! operators {
    ($($op:ident = $name:literal, $governing:ident {
        $($variant:ident = $since:literal, $rules:expr, $types:expr;)*
    })*) => {
        /// An operator version: the document whose rules decide.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Operator {
            $($(#[doc = concat!($name, "-", $since, ".")] $variant,)*)*
        }

        impl Operator {
            /// Every version.
            pub const ALL: &'static [Self] = &[$($(Self::$variant),*),*];

            /// Returns the version of an operator that governs.
            pub(crate) fn governing(op: libsplit_op, opset: i32) -> Result<Self, Error> {
                match op {
                    $(libsplit_op::$op => $governing($name, &[$(($since, Self::$variant)),*], opset),)*
                    libsplit_op(actual) => {
                        let (expected, actual) = (number([$($name),*].len()), actual.into());
                        Err(Error::OperatorUnknown { expected, actual })
                    }
                }
            }

            /// Returns the number of the version: the opset that introduced it.
            pub(crate) const fn version(self) -> i32 {
                match self { $($(Self::$variant => $since,)*)* }
            }

            /// Returns all versions of the same operator, oldest first.
            const fn versions(self) -> &'static [Self] {
                match self { $($(Self::$variant)|* => &[$(Self::$variant),*],)* }
            }

            /// Returns the rules that this version follows.
            pub(crate) const fn rules(self) -> Rules {
                match self { $($(Self::$variant => $rules,)*)* }
            }

            /// Returns whether the version's type constraint T has `dtype` in it.
            #[must_use]
            pub fn allows(self, dtype: DType) -> bool {
                let types = match self { $($(Self::$variant => $types,)*)* };
                types >> dtype as u32 & 1 == 1
            }
        }

        impl fmt::Display for Operator {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($(Self::$variant => concat!($name, "-", $since),)*)* })
            }
        }
    };
}

operators! {
    ONNX_SPLIT = "ONNX Split", at_opset {
        Split1 = 1, Rules::Split(EqualParts::AsManyAsOutputs), FLOATS;
        Split2 = 2, Rules::Split(EqualParts::AsManyAsOutputs), CLASSIC;
        Split11 = 11, Rules::Split(EqualParts::AsManyAsOutputs), CLASSIC;
        Split13 = 13, Rules::Split(EqualParts::AsManyAsOutputs), CLASSIC | of(DType::Bfloat16);
        Split18 = 18, Rules::Split(EqualParts::LastSmaller), CLASSIC | of(DType::Bfloat16);
    }
    ONNX_SPLIT_TO_SEQUENCE = "ONNX SplitToSequence", at_opset {
        SplitToSequence11 = 11, Rules::Sequence, CLASSIC;
        SplitToSequence24 = 24, Rules::Sequence, CLASSIC | of(DType::Bfloat16);
    }
    OPENVINO_VARIADIC_SPLIT = "OpenVINO VariadicSplit", numbered {
        VariadicSplit1 = 1, Rules::Variadic, !0;
    }
    OPENVINO_SPLIT = "OpenVINO Split", numbered {
        OpenVinoSplit1 = 1, Rules::Split(EqualParts::Exact), !0;
    }
}

/// Returns a set of one element type: a bit for each, by its number.
const fn of(dtype: DType) -> u32 {
    1 << dtype as u32
}

const FLOATS: u32 = of(DType::Float) | of(DType::Float16) | of(DType::Double);
/// The types before BFLOAT16.
const CLASSIC: u32 = of(DType::Bfloat16) - 2;

/// The rules that a version follows, as `rules/` has them.
#[derive(Clone, Copy)]
pub(crate) enum Rules {
    /// Split: equal parts, or in ONNX a list of lengths.
    Split(EqualParts),
    /// ONNX SplitToSequence.
    Sequence,
    /// OpenVINO VariadicSplit.
    Variadic,
}

/// How many equal parts there are.
#[derive(Clone, Copy)]
pub(crate) enum EqualParts {
    /// As many as the node has outputs, which must divide the extent.
    AsManyAsOutputs,
    /// As many as `num_outputs` says, which must divide the extent, as OpenVINO has it: lengths are refused.
    Exact,
    /// As many as `num_outputs` says, of which the last may be smaller.
    LastSmaller,
}

/// Returns the version that a model with this opset import means, as ONNX has it: the newest one not above it.
fn at_opset(name: &'static str, since: &[(i32, Operator)], opset: i32) -> Result<Operator, Error> {
    if let Some((_, version)) = since.iter().rev().find(|(first, _)| *first <= opset) {
        return Ok(*version);
    }
    let expected = since.first().map_or(1, |(first, _)| (*first).into());
    Err(Error::Opset { operator: name, expected, actual: opset.into() })
}

/// Returns the version with this number, as OpenVINO names it; 0 means 1.
fn numbered(name: &'static str, since: &[(i32, Operator)], opset: i32) -> Result<Operator, Error> {
    let wanted = if opset == 0 { 1 } else { opset };
    if let Some((_, version)) = since.iter().find(|(first, _)| *first == wanted) {
        return Ok(*version);
    }
    let expected = since.last().map_or(1, |(first, _)| (*first).into());
    Err(Error::OpenVinoOpset { operator: name, expected, actual: opset.into() })
}

impl Operator {
    /// ONNX Split as a model with this opset import means it: the newest version not above `opset`.
    ///
    /// # Errors
    /// [`Error::Opset`] below 1.
    pub fn onnx_split(opset: i32) -> Result<Self, Error> {
        Self::governing(libsplit_op::ONNX_SPLIT, opset)
    }

    /// ONNX SplitToSequence as a model with this opset import means it.
    ///
    /// # Errors
    /// [`Error::Opset`] below 11.
    pub fn onnx_split_to_sequence(opset: i32) -> Result<Self, Error> {
        Self::governing(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, opset)
    }

    /// Returns whether lengths may be of this type for an input of that type, and which may, in words.
    pub(crate) fn takes_lengths(self, lengths: DType, input: DType) -> (bool, &'static str) {
        let (is_int64, is_integer) = (lengths == DType::Int64, lengths.is_integer());
        match self {
            // The attribute is int64; the second input is of the input's own type: floats.
            Self::Split1 => (is_int64 || lengths == input, "INT64 or the input's type"),
            Self::Split2 | Self::Split11 | Self::Split13 | Self::Split18 => (is_int64, "INT64"),
            Self::SplitToSequence11 | Self::SplitToSequence24 => {
                (is_int64 || lengths == DType::Int32, "INT32 or INT64")
            }
            Self::VariadicSplit1 | Self::OpenVinoSplit1 => (is_integer, "an integer type"),
        }
    }

    /// Returns the version to turn to for a `dtype` that this one does not allow: the oldest of its operator
    /// that does, else VariadicSplit, which allows all.
    #[cold]
    pub(crate) fn that_allows(self, dtype: DType) -> Self {
        let oldest = self.versions().iter().find(|version| version.allows(dtype));
        oldest.copied().unwrap_or(Self::VariadicSplit1)
    }
}

#[cfg(test)]
mod tests {
    use super::{libsplit_op, DType, Error, Operator};

    #[test]
    fn versions_allow_as_many_types_as_their_documents_list() {
        let allowed = |version: &Operator| {
            (*version, DType::ALL.iter().filter(|dtype| version.allows(**dtype)).count())
        };
        let documented = [
            (Operator::Split1, 3),
            (Operator::Split2, 15),
            (Operator::Split11, 15),
            (Operator::Split13, 16),
            (Operator::Split18, 16),
            (Operator::SplitToSequence11, 15),
            (Operator::SplitToSequence24, 16),
            (Operator::VariadicSplit1, 26),
            (Operator::OpenVinoSplit1, 26),
        ];
        assert_eq!(Operator::ALL.iter().map(allowed).collect::<Vec<_>>(), documented);
    }

    #[test]
    fn the_version_named_in_a_refusal_does_allow_the_type() {
        for operator in Operator::ALL {
            for dtype in DType::ALL {
                assert!(operator.that_allows(*dtype).allows(*dtype));
            }
        }
        assert_eq!(Operator::Split11.that_allows(DType::Bfloat16), Operator::Split13);
        assert_eq!(Operator::Split1.that_allows(DType::Int64), Operator::Split2);
    }

    /// The rows of the table are in order.
    #[test]
    fn every_version_governs_from_the_opset_that_it_is_named_for() {
        for operator in Operator::ALL {
            let name = operator.to_string();
            let since = name.split_once('-').unwrap().1.parse().unwrap();
            let mut governing = (1..5).map(|op| Operator::governing(libsplit_op(op), since));
            assert!(governing.any(|version| version == Ok(*operator)), "{name}");
        }
    }

    #[test]
    fn numbers_that_no_operator_or_version_has_are_refused() {
        for (op, version) in [(3, Operator::VariadicSplit1), (4, Operator::OpenVinoSplit1)] {
            let governing = |opset| Operator::governing(libsplit_op(op), opset);
            assert_eq!([0, 1].map(governing), [Ok(version), Ok(version)]);
            for opset in [i32::MIN, -1, 2, i32::MAX] {
                assert!(matches!(governing(opset), Err(Error::OpenVinoOpset { expected: 1, .. })));
            }
        }
        for op in [i32::MIN, -1, 0, 5, i32::MAX] {
            let governing = Operator::governing(libsplit_op(op), 1);
            let refused = Error::OperatorUnknown { expected: 4, actual: op.into() };
            assert_eq!(governing, Err(refused));
        }
    }

    #[test]
    fn the_newest_version_not_above_the_opset_governs() {
        let split = |opset| Operator::onnx_split(opset).ok();
        assert_eq!(split(0), None);
        assert_eq!(split(1), Some(Operator::Split1));
        assert_eq!(split(9), Some(Operator::Split2));
        assert_eq!(split(12), Some(Operator::Split11));
        assert_eq!(split(17), Some(Operator::Split13));
        assert_eq!(split(20), Some(Operator::Split18));
        assert_eq!(split(i32::MAX), Some(Operator::Split18));
        let sequence = |opset| Operator::onnx_split_to_sequence(opset).ok();
        assert_eq!(sequence(10), None);
        assert_eq!(sequence(23), Some(Operator::SplitToSequence11));
        assert_eq!(sequence(24), Some(Operator::SplitToSequence24));
    }
}
