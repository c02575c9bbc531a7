//! Plans: splits in memory of the caller, in which everything is decided that does not depend on addresses. A plan is
//! plain bytes: a head, and then these arrays.
//!
//! | array | entries | what |
//! |---|---|---|
//! | shape, strides | rank each | the input's |
//! | lengths | one an output | of pieces, as [`Pieces::Int64`] has them |
//! | records | one an output | where the piece lies in the input, and what its output reaches over |
//! | output strides | rank an output | of outputs that are not packed |
//!
//! # Safety
//! For everything unsafe in these files: promises 1 to 3 of [`crate::ffi`].

// Entries of a plan are aligned, and numbers have been checked to fit.
#![allow(clippy::cast_ptr_alignment, clippy::cast_possible_truncation)]

mod make;
mod planned;

pub(crate) use make::make;
pub(crate) use planned::{describe, Planned};

use crate::geometry::Geometry;
#[cfg(doc)]
use crate::pieces::Pieces;
use crate::shape::MAX_RANK;
use crate::tensor::Reach;
use crate::types::{LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR, LIBSPLIT_VERSION_PATCH};

/// The version of the library: major << 24 | minor << 16 | patch.
pub(crate) const LIBRARY_VERSION: u32 =
    LIBSPLIT_VERSION_MAJOR << 24 | LIBSPLIT_VERSION_MINOR << 16 | LIBSPLIT_VERSION_PATCH;

/// The first 8 bytes of a plan: its name, and a hash of everything that must be the same in the build that reads it.
/// Another order of bytes shows in the name.
pub(crate) const MAGIC: u64 = {
    // FNV-1a, of words.
    const fn and(hash: u32, fact: u32) -> u32 {
        (hash ^ fact).wrapping_mul(0x0100_0193)
    }
    let layout = (size_of::<Head>() << 16 | size_of::<Record>()) as u32;
    let kind = usize::BITS | cfg!(feature = "avx512") as u32;
    let hash = and(and(and(0x811C_9DC5, LIBRARY_VERSION), layout), kind);
    (u32::from_be_bytes(*b"splt") as u64) << 32 | hash as u64
};

/// An output of a plan.
#[derive(Clone, Copy)]
#[repr(C)]
struct Record {
    /// Bytes from the input's data to the piece, for views; [`UNWANTED`] if the output is not wanted.
    ahead: i64,
    /// What the output reaches over; nothing if nothing is copied to it.
    reach: Reach,
}

/// In [`Record::ahead`]: the output is not wanted.
const UNWANTED: i64 = i64::MIN;

#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    magic: u64,
    num_outputs: usize,
    /// Bytes of all outputs that are wanted, as if they were packed.
    bytes: usize,
    /// Without its shape, which follows.
    geometry: Geometry<'static>,
    bit_offset: u32,
    /// Whether the input, or an output, has strides that are not packed.
    is_strided: bool,
    has_strided_outputs: bool,
    /// Of the input; nothing if it has no elements.
    reach: Reach,
    rank: usize,
    sections: Sections,
}

/// Where the arrays of a plan begin, in bytes, for a number of axes and outputs.
#[derive(Clone, Copy)]
#[repr(C)]
struct Sections {
    shape: usize,
    strides: usize,
    lengths: usize,
    records: usize,
    output_strides: usize,
    end: usize,
}

impl Sections {
    /// Returns `None` if rank or number of outputs is out of range.
    fn new(rank: usize, outputs: usize) -> Option<Self> {
        // Without outputs, nobody needs the input.
        let axes = if outputs == 0 { 0 } else { rank * size_of::<i64>() };
        let shape = size_of::<Head>();
        let strides = shape + axes;
        let lengths = strides + axes;
        let records = lengths.checked_add(outputs.checked_mul(size_of::<i64>())?)?;
        let output_strides = records.checked_add(outputs.checked_mul(size_of::<Record>())?)?;
        let end = output_strides.checked_add(outputs.checked_mul(axes)?)?;
        let fits = (1..=MAX_RANK).contains(&rank) && end <= isize::MAX.unsigned_abs();
        fits.then_some(Self { shape, strides, lengths, records, output_strides, end })
    }
}

/// Returns the bytes that a plan needs; 0 if rank or number of outputs is out of range.
pub(crate) fn size(rank: i32, num_outputs: usize) -> usize {
    let rank = usize::try_from(rank).ok();
    rank.and_then(|rank| Sections::new(rank, num_outputs)).map_or(0, |sections| sections.end)
}
