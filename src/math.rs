//! Arithmetic that cannot panic. Nobody here divides by 0 or takes steps of 0, but the compiler need
//! not be able to see that.

/// Returns `a / b`; 0 if `b` is 0.
pub(crate) fn div(a: usize, b: usize) -> usize {
    a.checked_div(b).unwrap_or(0)
}

/// Returns quotient and remainder; 0 for both if `b` is 0.
pub(crate) fn div_rem(a: usize, b: usize) -> (usize, usize) {
    (div(a, b), a.checked_rem(b).unwrap_or(0))
}

/// Returns quotient and remainder of signed numbers.
pub(crate) fn div_rem_signed(a: i64, b: i64) -> (i64, i64) {
    (a.checked_div(b).unwrap_or(0), a.checked_rem(b).unwrap_or(0))
}

/// Returns the quotient, rounded up.
pub(crate) fn div_ceil(a: usize, b: usize) -> usize {
    let (quotient, rest) = div_rem(a, b);
    quotient + usize::from(rest > 0)
}

/// Returns the number itself if it is a multiple, else the next multiple.
pub(crate) fn next_multiple(a: usize, of: usize) -> usize {
    div_ceil(a, of).saturating_mul(of)
}

/// Returns the greatest common divisor; that of 0 and another number is the other.
pub(crate) fn gcd(mut a: usize, mut b: usize) -> usize {
    while let Some(rest) = a.checked_rem(b) {
        (a, b) = (b, rest);
    }
    a
}

/// Returns a checked offset as `isize`: what lies in memory fits.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn isize_of(offset: i64) -> isize {
    offset as isize
}

#[cfg(test)]
mod tests {
    use super::{div_ceil, div_rem, div_rem_signed, next_multiple};

    #[test]
    fn numbers_are_right_and_zero_is_survived() {
        assert_eq!(div_rem(17, 5), (3, 2));
        assert_eq!((div_rem_signed(-17, 5), div_rem_signed(i64::MIN, -1)), ((-3, -2), (0, 0)));
        assert_eq!((div_ceil(17, 5), div_ceil(15, 5), div_ceil(3, 0)), (4, 3, 0));
        assert_eq!((next_multiple(17, 5), next_multiple(15, 5)), (20, 15));
    }
}
