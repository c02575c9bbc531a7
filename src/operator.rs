//! The operator versions: which governs in a model, which element types each allows, and by whose rules it goes.

// A new version is not built until somebody has said, at each `match`, what is true of it.
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]

use crate::dtype::DType;
use crate::error::Error;
use core::fmt;

/// The versions: name, rules, and the element types of the type constraint T.
macro_rules! operators {
    ($($variant:ident = $name:literal, $rules:expr, $types:expr;)*) => {
        /// An operator version: the document whose rules decide.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Operator {
            $(#[doc = concat!($name, ".")] $variant,)*
        }

        impl Operator {
            /// Every version.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the rules that this version goes by.
            pub(crate) const fn rules(self) -> Rules {
                match self { $(Self::$variant => $rules,)* }
            }

            /// Whether the version's type constraint T has `dtype` in it.
            #[must_use]
            pub fn allows(self, dtype: DType) -> bool {
                let types = match self { $(Self::$variant => $types,)* };
                types >> dtype as u32 & 1 == 1
            }
        }

        impl fmt::Display for Operator {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $name,)* })
            }
        }
    };
}

operators! {
    Split1 = "ONNX Split-1", AS_MANY_AS_OUTPUTS, FLOATS;
    Split2 = "ONNX Split-2", AS_MANY_AS_OUTPUTS, CLASSIC;
    Split11 = "ONNX Split-11", AS_MANY_AS_OUTPUTS, CLASSIC;
    Split13 = "ONNX Split-13", AS_MANY_AS_OUTPUTS, CLASSIC | of(DType::Bfloat16);
    Split18 = "ONNX Split-18", Rules::Split(EqualParts::LastSmaller), CLASSIC | of(DType::Bfloat16);
    SplitToSequence11 = "ONNX SplitToSequence-11", Rules::Sequence, CLASSIC;
    SplitToSequence24 = "ONNX SplitToSequence-24", Rules::Sequence, CLASSIC | of(DType::Bfloat16);
    VariadicSplit1 = "OpenVINO VariadicSplit-1", Rules::Variadic, !0;
    OpenVinoSplit1 = "OpenVINO Split-1", Rules::Parts, !0;
}

const AS_MANY_AS_OUTPUTS: Rules = Rules::Split(EqualParts::AsManyAsOutputs);

/// Returns a set of one element type: a bit for each, by its number.
const fn of(dtype: DType) -> u32 {
    1 << dtype as u32
}

const FLOATS: u32 = of(DType::Float) | of(DType::Float16) | of(DType::Double);
/// The types before BFLOAT16.
const CLASSIC: u32 = of(DType::Bfloat16) - 2;

/// The rules that a version goes by, as `rules/` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// ONNX Split: a list of lengths, or equal parts.
    Split(EqualParts),
    /// ONNX SplitToSequence.
    Sequence,
    /// OpenVINO VariadicSplit.
    Variadic,
    /// OpenVINO Split.
    Parts,
}

/// How many equal parts there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EqualParts {
    /// As many as the node has outputs, which must divide the extent.
    AsManyAsOutputs,
    /// As many as `num_outputs` says, which must divide the extent.
    Exact,
    /// As many as `num_outputs` says, of which the last may be smaller.
    LastSmaller,
}

/// The versions of an ONNX operator, newest first, each with the opset that it came with.
type Versions = &'static [(i32, Operator)];

const SPLIT: Versions = &[
    (18, Operator::Split18),
    (13, Operator::Split13),
    (11, Operator::Split11),
    (2, Operator::Split2),
    (1, Operator::Split1),
];
const SEQUENCE: Versions = &[(24, Operator::SplitToSequence24), (11, Operator::SplitToSequence11)];

/// Returns the newest version not above an opset.
fn governing(versions: Versions, name: &'static str, opset: i32) -> Result<Operator, Error> {
    if let Some((_, operator)) = versions.iter().find(|(since, _)| *since <= opset) {
        return Ok(*operator);
    }
    let expected = versions.last().map_or(1, |(since, _)| (*since).into());
    Err(Error::Opset { operator: name, expected, actual: opset.into() })
}

impl Operator {
    /// ONNX Split as a model with this opset import means it: the newest version not above `opset`.
    ///
    /// # Errors
    /// [`Error::Opset`] below 1.
    pub fn onnx_split(opset: i32) -> Result<Self, Error> {
        governing(SPLIT, "ONNX Split", opset)
    }

    /// ONNX SplitToSequence as a model with this opset import means it.
    ///
    /// # Errors
    /// [`Error::Opset`] below 11.
    pub fn onnx_split_to_sequence(opset: i32) -> Result<Self, Error> {
        governing(SEQUENCE, "ONNX SplitToSequence", opset)
    }

    /// Returns whether lengths may be of this type for an input of that type, and which may, in words.
    pub(crate) fn takes_lengths(self, lengths: DType, input: DType) -> (bool, &'static str) {
        let is_int64 = lengths == DType::Int64;
        match self {
            // The attribute is int64; the second input is of the input's own type: floats.
            Self::Split1 => (is_int64 || lengths == input, "INT64 or the input's type"),
            Self::Split2 | Self::Split11 | Self::Split13 | Self::Split18 => (is_int64, "INT64"),
            Self::SplitToSequence11 | Self::SplitToSequence24 => {
                (is_int64 || lengths == DType::Int32, "INT32 or INT64")
            }
            Self::VariadicSplit1 | Self::OpenVinoSplit1 => {
                (lengths.is_integer(), "an integer type")
            }
        }
    }

    /// Returns the version to turn to for a `dtype` that this one does not allow: the oldest of its operator
    /// that does, else VariadicSplit, which allows all.
    #[cold]
    pub(crate) fn that_allows(self, dtype: DType) -> Self {
        let versions = match self.rules() {
            Rules::Split(_) => SPLIT,
            Rules::Sequence => SEQUENCE,
            Rules::Variadic | Rules::Parts => &[],
        };
        let oldest = versions.iter().rev().find(|(_, version)| version.allows(dtype));
        oldest.map_or(Self::VariadicSplit1, |(_, version)| *version)
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, Operator};

    fn allowed(operator: Operator) -> usize {
        DType::ALL.iter().filter(|dtype| operator.allows(**dtype)).count()
    }

    #[test]
    fn versions_allow_as_many_types_as_their_documents_list() {
        assert_eq!(allowed(Operator::Split1), 3);
        assert_eq!(allowed(Operator::Split2), 15);
        assert_eq!(allowed(Operator::Split11), 15);
        assert_eq!(allowed(Operator::Split13), 16);
        assert_eq!(allowed(Operator::Split18), 16);
        assert_eq!(allowed(Operator::SplitToSequence11), 15);
        assert_eq!(allowed(Operator::SplitToSequence24), 16);
        assert_eq!(allowed(Operator::VariadicSplit1), 26);
        assert_eq!(allowed(Operator::OpenVinoSplit1), 26);
    }

    #[test]
    fn the_version_named_in_a_refusal_does_allow_the_type() {
        for operator in [Operator::Split1, Operator::Split11, Operator::SplitToSequence11] {
            for dtype in DType::ALL {
                assert!(operator.that_allows(*dtype).allows(*dtype));
            }
        }
        assert_eq!(Operator::Split11.that_allows(DType::Bfloat16), Operator::Split13);
        assert_eq!(Operator::Split1.that_allows(DType::Int64), Operator::Split2);
    }

    /// A new version is not forgotten in the lists of versions.
    #[test]
    fn every_onnx_version_governs_from_the_opset_that_it_is_named_for() {
        for operator in Operator::ALL {
            let name = operator.to_string();
            let (family, version) = name.split_once('-').unwrap();
            let governing: fn(i32) -> _ = match family {
                "ONNX Split" => Operator::onnx_split,
                "ONNX SplitToSequence" => Operator::onnx_split_to_sequence,
                _ => continue,
            };
            assert_eq!(governing(version.parse().unwrap()), Ok(*operator));
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
