//! Equal parts: ONNX Split without lengths, and OpenVINO Split. [`EqualParts`] says how many they are.

use super::{div_ceil, too_many_outputs, Request, MAX_OUTPUTS};
use crate::error::{number, Error};
use crate::operator::EqualParts;
use crate::pieces::Pieces;
use crate::shape::DIM_UNKNOWN;
use crate::words::Argument;

/// Makes as many equal parts as the request asks for.
pub(super) fn pieces<'a>(
    request: &Request<'_>,
    equal: EqualParts,
    extent: i64,
) -> Result<Pieces<'a>, Error> {
    let operator = request.operator;
    let count = match (request.num_outputs, equal, request.outputs) {
        (1.., _, _) => request.num_outputs,
        (0, EqualParts::LastSmaller, _) => {
            return Err(Error::NeitherLengthsNorNumOutputs { operator });
        }
        (0, EqualParts::AsManyAsOutputs, Some(0)) => {
            return Err(Error::NoOutputs { expected: 1, actual: 0 });
        }
        (0, EqualParts::AsManyAsOutputs, Some(outputs)) => number(outputs),
        (0, EqualParts::AsManyAsOutputs, None) => {
            return Err(Error::NumOutputsUnknown { operator })
        }
        (actual @ 0, EqualParts::Exact, _) | (actual @ ..0, _, _) => {
            return Err(Error::NumOutputsNegative { expected: 1, actual });
        }
    };
    let argument = if request.num_outputs == 0 { Argument::Given } else { Argument::Parts };
    if count > MAX_OUTPUTS {
        return Err(too_many_outputs(argument, count));
    }
    request.check_count(count)?;
    if extent == DIM_UNKNOWN {
        return request.unknown(count);
    }
    let size = div_ceil(extent, count);
    // At most (count - 1) * (extent / count + 1), which is below extent + count.
    let last = extent - (count - 1) * size;
    match equal {
        EqualParts::LastSmaller if last < 0 && !request.clamp_uneven => {
            Err(Error::LastNegative { output: count - 1, size, extent, last })
        }
        EqualParts::AsManyAsOutputs | EqualParts::Exact if last != size => {
            Err(Error::Uneven { argument, operator, expected: count, actual: extent })
        }
        EqualParts::AsManyAsOutputs | EqualParts::Exact | EqualParts::LastSmaller => {
            Ok(Pieces::Equal { count, size, extent })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{pieces, Argument, EqualParts, Error, Request};
    use crate::operator::Operator;

    /// The number of parts is the caller's `num_outputs`, or else how many outputs there are.
    #[test]
    fn an_error_names_where_the_number_of_parts_is_from() {
        let uneven = |num_outputs| {
            let request = Request {
                operator: Operator::onnx_split(13).unwrap(),
                axis: 0,
                lengths: None,
                num_outputs,
                keepdims: true,
                clamp_uneven: false,
                may_be_unknown: false,
                outputs: Some(4),
            };
            match pieces(&request, EqualParts::AsManyAsOutputs, 6) {
                Err(Error::Uneven { argument, expected: 4, actual: 6, .. }) => argument,
                _ => panic!("6 into 4 equal parts"),
            }
        };
        assert_eq!(uneven(4), Argument::Parts);
        assert_eq!(uneven(0), Argument::Given);
    }
}
