//! The memory of a copy, and how outputs lie in it.

use super::bytes_of;
use crate::call::{Call, Described};
use crate::tensor::Tensor;
use libsplit::ffi::libsplit_tensor;
use std::collections::HashMap;

/// How outputs lie relative to each other, to the input, and to the lengths.
#[derive(PartialEq)]
pub(super) enum Meeting {
    Apart,
    /// Their spans meet, but their bytes do not.
    Interleaved,
    Overlap,
}

pub(super) fn meeting(call: &Call, targets: &[Option<Described>], pieces: &[Tensor]) -> Meeting {
    let model = |described: &Described| {
        described.model.clone().filter(|model| matches!(model.span(), Ok(Some(_))))
    };
    let written: Vec<Tensor> = targets.iter().flatten().filter_map(model).collect();
    let mut read: Vec<Tensor> = model(&call.input).into_iter().collect();
    read.extend(call.split.as_deref().and_then(model));
    let all: Vec<_> = written.iter().chain(&read).collect();
    let meet = |a: &Tensor, b: &Tensor| {
        let (Ok(Some(a)), Ok(Some(b))) = (a.span(), b.span()) else { return false };
        a.start.max(b.start) < a.end.min(b.end)
    };
    let meets = |index: usize| all[index + 1..].iter().any(|other| meet(all[index], other));
    if !(0..written.len()).any(meets) {
        return Meeting::Apart;
    }
    // Byte by byte. What is read of the input is what the pieces have of it; an output over another
    // part of it must be refused as well, which is not tested here.
    let mut owners: HashMap<i128, usize> = HashMap::new();
    for (index, tensor) in written.iter().enumerate() {
        for byte in bytes_touched(tensor) {
            if owners.insert(byte, index).is_some_and(|other| other != index) {
                return Meeting::Overlap;
            }
        }
    }
    let wanted = targets.iter().zip(pieces).filter(|(target, _)| target.is_some());
    let list = call.split.as_deref().and_then(model).filter(|list| list.elements() < 5000);
    let mut read = wanted.map(|(_, piece)| piece).chain(&list);
    if read.any(|tensor| bytes_touched(tensor).any(|byte| owners.contains_key(&byte))) {
        return Meeting::Overlap;
    }
    Meeting::Interleaved
}

fn bytes_touched(tensor: &Tensor) -> impl Iterator<Item = i128> {
    let bits = tensor.bits;
    let touched = move |bit: i128| bit.div_euclid(8)..=(bit + bits - 1).div_euclid(8);
    tensor.positions().into_iter().flat_map(touched)
}

/// All the memory of a copy.
#[derive(Clone, PartialEq)]
pub(super) struct Snapshot {
    /// By address: the input's buffer, then those of the outputs.
    buffers: Vec<(usize, Vec<u8>)>,
    arrays: Vec<Vec<i64>>,
    descriptors: Vec<u8>,
}

impl Snapshot {
    pub(super) fn new(call: &Call, targets: &[Option<Described>], raw: &[libsplit_tensor]) -> Self {
        let split = call.split.as_deref();
        let all = || [&call.input].into_iter().chain(split).chain(targets.iter().flatten());
        let mut descriptors = bytes_of(raw);
        descriptors.extend(bytes_of(&[call.input.raw]));
        Self {
            buffers: all().map(|one| (one.buffer.as_ptr() as usize, one.buffer.clone())).collect(),
            arrays: all().flat_map(|one| [one.shape.clone(), one.strides.clone()]).collect(),
            descriptors,
        }
    }

    /// Restores the contents of the buffers.
    pub(super) fn restore(&self) {
        for (base, bytes) in &self.buffers {
            let buffer = std::ptr::with_exposed_provenance_mut(*base);
            // SAFETY: the buffers are there, and nobody looks at them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
        }
    }

    fn find(&self, byte: i128) -> (usize, usize) {
        let holds = |(base, bytes): &(usize, Vec<u8>)| {
            usize::try_from(byte - *base as i128).ok().filter(|at| *at < bytes.len())
        };
        let mut places = self.buffers.iter().enumerate();
        places.find_map(|(index, buffer)| Some((index, holds(buffer)?))).expect("a byte of ours")
    }

    /// Copies a piece, element by element and bit by bit; bits past the last become 0.
    pub(super) fn copy(&mut self, target: &Tensor, piece: &Tensor) {
        if target.is_empty() {
            return;
        }
        let span = target.span().unwrap().unwrap();
        let last = span.end - 1;
        if target.bits < 8 {
            let (buffer, at) = self.find(last);
            let used = (target.elements() * target.bits).rem_euclid(8);
            if used != 0 {
                self.buffers[buffer].1[at] &= (1 << used) - 1;
            }
        }
        // Each lies in a single buffer.
        let (to_buffer, _) = self.find(span.start);
        let Some(first) = piece.positions().first().copied() else { return };
        let (from_buffer, _) = self.find(first.div_euclid(8));
        let base = |buffer: usize| self.buffers[buffer].0 as i128 * 8;
        let (from_base, to_base) = (base(from_buffer), base(to_buffer));
        for (to, from) in target.positions().into_iter().zip(piece.positions()) {
            let (to, from) = ((to - to_base) as usize, (from - from_base) as usize);
            let bits = target.bits as usize;
            if bits >= 8 {
                for byte in 0..bits / 8 {
                    let value = self.buffers[from_buffer].1[from / 8 + byte];
                    self.buffers[to_buffer].1[to / 8 + byte] = value;
                }
                continue;
            }
            for bit in 0..bits {
                let (from, to) = (from + bit, to + bit);
                let value = self.buffers[from_buffer].1[from / 8] >> (from % 8) & 1;
                let slot = &mut self.buffers[to_buffer].1[to / 8];
                *slot = *slot & !(1 << (to % 8)) | value << (to % 8);
            }
        }
    }
}
