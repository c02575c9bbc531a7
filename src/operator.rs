//! The operator versions, and which element types each allows.

#![forbid(unsafe_code)]

use crate::dtype::DType;
use core::fmt;

/// An operator version: the document whose rules decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// ONNX Split-1.
    Split1,
    /// ONNX Split-2.
    Split2,
    /// ONNX Split-11.
    Split11,
    /// ONNX Split-13.
    Split13,
    /// ONNX Split-18.
    Split18,
    /// ONNX SplitToSequence-11.
    SplitToSequence11,
    /// ONNX SplitToSequence-24.
    SplitToSequence24,
    /// OpenVINO VariadicSplit-1.
    VariadicSplit1,
    /// OpenVINO Split-1.
    OpenVinoSplit1,
}

impl Operator {
    /// Whether the version's type constraint T has `dtype` in it.
    #[must_use]
    pub fn allows(self, dtype: DType) -> bool {
        // A bit a type, by its number.
        const CLASSIC: u32 = (1 << DType::Bfloat16 as u32) - 2;
        const FLOATS: u32 =
            1 << DType::Float as u32 | 1 << DType::Float16 as u32 | 1 << DType::Double as u32;
        let allowed = match self {
            Self::Split1 => FLOATS,
            Self::Split2 | Self::Split11 | Self::SplitToSequence11 => CLASSIC,
            Self::Split13 | Self::Split18 | Self::SplitToSequence24 => {
                CLASSIC | 1 << DType::Bfloat16 as u32
            }
            Self::VariadicSplit1 | Self::OpenVinoSplit1 => !0,
        };
        allowed >> dtype as u32 & 1 == 1
    }

    /// The version to turn to for a `dtype` that this one does not allow.
    #[cold]
    #[inline(never)]
    pub(crate) fn that_allows(self, dtype: DType) -> Self {
        use Operator::{Split13, Split2, SplitToSequence24, VariadicSplit1};
        let newer = if self >= Self::SplitToSequence11 {
            [SplitToSequence24, VariadicSplit1]
        } else {
            [if dtype == DType::Bfloat16 { Split13 } else { Split2 }, VariadicSplit1]
        };
        newer.into_iter().find(|version| version.allows(dtype)).unwrap_or(VariadicSplit1)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Split1 => "ONNX Split-1",
            Self::Split2 => "ONNX Split-2",
            Self::Split11 => "ONNX Split-11",
            Self::Split13 => "ONNX Split-13",
            Self::Split18 => "ONNX Split-18",
            Self::SplitToSequence11 => "ONNX SplitToSequence-11",
            Self::SplitToSequence24 => "ONNX SplitToSequence-24",
            Self::VariadicSplit1 => "OpenVINO VariadicSplit-1",
            Self::OpenVinoSplit1 => "OpenVINO Split-1",
        })
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
}
