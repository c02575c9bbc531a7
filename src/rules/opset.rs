//! Which version of an ONNX operator governs in a model: the newest not above the model's opset.

use crate::error::Error;
use crate::operator::Operator;

impl Operator {
    /// ONNX Split as a model with this opset import means it: the newest version not above `opset`.
    ///
    /// # Errors
    /// [`Error::Opset`] below 1.
    pub fn onnx_split(opset: i32) -> Result<Self, Error> {
        // The newest first.
        match opset {
            18.. => Ok(Self::Split18),
            13.. => Ok(Self::Split13),
            11.. => Ok(Self::Split11),
            2.. => Ok(Self::Split2),
            1 => Ok(Self::Split1),
            _ => Err(Error::Opset { operator: "ONNX Split", expected: 1, actual: opset.into() }),
        }
    }

    /// ONNX SplitToSequence as a model with this opset import means it.
    ///
    /// # Errors
    /// [`Error::Opset`] below 11.
    pub fn onnx_split_to_sequence(opset: i32) -> Result<Self, Error> {
        match opset {
            11..=23 => Ok(Self::SplitToSequence11),
            24.. => Ok(Self::SplitToSequence24),
            _ => Err(Error::Opset {
                operator: "ONNX SplitToSequence",
                expected: 11,
                actual: opset.into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Operator;

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
