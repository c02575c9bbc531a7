//! Single steps of an axis that lies backwards, as the channels of a picture with blue first do: counted
//! from its other end it lies forwards.

use super::old::MOST_AXES;
use crate::parts::{Part, Parts, Transfer};
use core::ptr::null_mut;

/// The most pieces.
const MOST: usize = 16;

/// A transfer whose split axis lies the other way round.
pub(super) struct Reversed {
    source: *const u8,
    strides: [i64; MOST_AXES],
    parts: [Part; MOST],
    count: usize,
}

impl Reversed {
    pub(super) const NONE: Self = Self {
        source: core::ptr::null(),
        strides: [0; MOST_AXES],
        parts: [Part { index: 0, offset: 0, len: 0, target: null_mut() }; MOST],
        count: 0,
    };

    /// The split axis' stride.
    fn stride(transfer: &Transfer<'_>) -> Option<i64> {
        transfer.strides?.get(transfer.geometry.axis).copied()
    }

    /// Whether that is worth a closer look: the axis lies backwards, and pieces are few.
    pub(super) fn is_backwards(transfer: &Transfer<'_>) -> bool {
        Self::stride(transfer).is_some_and(|stride| stride < 0)
            && transfer.geometry.extent > 1
            && transfer.parts.count() <= MOST
            && !transfer.geometry.dtype.is_sub_byte()
    }

    /// Makes it that of a checked transfer whose axis lies backwards, if its pieces have a step each: in place,
    /// for it takes some of the stack.
    pub(super) fn reverse(&mut self, transfer: &Transfer<'_>) -> Option<()> {
        let Transfer { geometry, strides, .. } = transfer;
        self.strides.get(..geometry.shape.len())?;
        let stride = Self::stride(transfer)?;
        let last = geometry.extent - 1;
        let ahead = stride.checked_mul(last)?.checked_mul(i64::from(geometry.dtype.bits() / 8))?;
        self.source = transfer.source.wrapping_offset(isize::try_from(ahead).ok()?);
        for (slot, stride) in self.strides.iter_mut().zip(strides.unwrap_or_default()) {
            *slot = *stride;
        }
        *self.strides.get_mut(geometry.axis)? = stride.wrapping_neg();
        // The last one comes first.
        for part in transfer.parts.iter() {
            if part.len != 1 {
                return None;
            }
            let at = MOST - 1 - self.count;
            *self.parts.get_mut(at)? = Part { offset: last - part.offset, ..part };
            self.count += 1;
        }
        Some(())
    }

    /// The same transfer.
    pub(super) fn transfer<'a>(&'a self, transfer: &Transfer<'a>) -> Transfer<'a> {
        let rank = transfer.geometry.shape.len();
        Transfer {
            source: self.source,
            strides: self.strides.get(..rank),
            parts: Parts::Listed(self.parts.get(MOST - self.count..).unwrap_or_default()),
            ..*transfer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reversed;
    use crate::copy::run;
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;
    use crate::parts::Transfer;

    /// Channels that lie backwards, all or some of them, of units of so many elements.
    #[test]
    fn channels_that_lie_backwards() {
        const PIXELS: usize = 1000;
        for channels in 2..=9usize {
            for inner in [1usize, 3] {
                let of = |at: usize| i64::try_from(at).unwrap();
                let pixel = channels * inner;
                let input: Vec<u16> =
                    (0..PIXELS * pixel).map(|at| u16::try_from(at % 65_521).unwrap()).collect();
                for unwanted in [None, Some(1)] {
                    let mut outputs = vec![vec![0u16; PIXELS * inner]; channels];
                    let targets = (outputs.iter_mut().enumerate()).map(|(at, output)| {
                        (Some(at) != unwanted).then(|| output.as_mut_ptr().cast())
                    });
                    let parts = parts(&vec![1; channels], targets);
                    let shape = [of(PIXELS), of(channels), of(inner)];
                    let strides = [of(pixel), -of(inner), 1];
                    let first = input.as_ptr().wrapping_add(pixel - inner).cast();
                    let all = transfer(DType::Uint16, &shape, 1, first, &parts);
                    let backwards = Transfer { strides: Some(&strides), ..all };
                    let mut reversed = Reversed::NONE;
                    assert!(reversed.reverse(&backwards).is_some());
                    // SAFETY: the input and the outputs are as large as their shapes.
                    unsafe { run(&backwards, None) }.unwrap();
                    for (at, output) in
                        outputs.iter().enumerate().filter(|(at, _)| Some(*at) != unwanted)
                    {
                        let first = (channels - 1 - at) * inner;
                        let expected =
                            input.chunks(pixel).flat_map(|pixel| &pixel[first..][..inner]);
                        assert!(output.iter().eq(expected), "{at} of {channels}");
                    }
                }
            }
        }
    }
}
