//! Joining: each piece is copied to where a split of the whole would look for it.

use crate::arguments::in_order;
use crate::call::{self, Copy, Numbers};
use crate::copy::target;
use crate::pool;
use crate::rule::{extent, Lengths, Rule};
use crate::source::Source;
use core::ops::Range;
use libsplit::ffi::{libsplit_executor, libsplit_op};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Joins the pieces along an axis, into `out` or into new memory of the first piece's kind.
pub fn join<'py>(
    pieces: &Bound<'py, PyAny>,
    axis: i64,
    out: Option<&Bound<'py, PyAny>>,
    threads: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    Whole::of(pieces, axis, false)?.make(pieces.py(), out, threads)
}

/// Stacks the pieces along a new axis, likewise.
pub fn stack<'py>(
    pieces: &Bound<'py, PyAny>,
    axis: i64,
    out: Option<&Bound<'py, PyAny>>,
    threads: Option<i64>,
) -> PyResult<Bound<'py, PyAny>> {
    Whole::of(pieces, axis, true)?.make(pieces.py(), out, threads)
}

/// What pieces make together.
struct Whole<'py> {
    pieces: Vec<Source<'py>>,
    axis: usize,
    /// Whether the pieces do not have that axis.
    is_new: bool,
    shape: Numbers,
}

impl<'py> Whole<'py> {
    fn of(pieces: &Bound<'py, PyAny>, axis: i64, is_new: bool) -> PyResult<Self> {
        let pieces = in_order(pieces, "pieces")?.enumerate();
        let pieces = pieces.map(|(index, piece)| Source::of(&piece?, &format!("pieces[{index}]")));
        let pieces = pieces.collect::<PyResult<Vec<_>>>()?;
        let Some(first) = pieces.first() else {
            return Err(PyValueError::new_err("pieces is empty: give at least one"));
        };
        let rank = first.shape().len() + usize::from(is_new);
        if rank == 0 {
            let message = "pieces[0] has no axes to join along: use libsplit.stack";
            return Err(PyValueError::new_err(message));
        }
        let Some(axis) = call::axis(rank, axis) else {
            return Err(PyValueError::new_err(format!(
                "axis {axis} is outside [-{rank}, {}] of rank {rank}: choose one in this range",
                extent(rank) - 1
            )));
        };
        let mut shape = Numbers::from_slice(first.shape());
        if is_new {
            shape.insert(axis, extent(pieces.len()));
        } else {
            shape[axis] = 0;
        }
        let mut whole = Self { pieces, axis, is_new, shape };
        for index in 0..whole.pieces.len() {
            whole.add(index)?;
        }
        Ok(whole)
    }

    /// Checks one of the pieces, and adds its extent.
    fn add(&mut self, index: usize) -> PyResult<()> {
        let (piece, first, axis) = (&self.pieces[index], &self.pieces[0], self.axis);
        piece.check_copies()?;
        if !piece.same_elements(first)? {
            return Err(PyTypeError::new_err(format!(
                "pieces[{index}] has dtype {}, but pieces[0] has {}: joining does not convert",
                piece.dtype_name()?,
                first.dtype_name()?
            )));
        }
        let (shape, wanted) = (piece.shape(), first.shape());
        let is_free = |other: usize| !self.is_new && other == axis;
        let same = |other: usize| is_free(other) || shape[other] == wanted[other];
        if shape.len() != wanted.len() || !(0..shape.len()).all(same) {
            let rule = if self.is_new {
                "pieces that are stacked have one shape; libsplit.join allows other extents of its \
                 axis"
                    .into()
            } else {
                format!("all extents except that of axis {axis} must be the same")
            };
            return Err(PyValueError::new_err(format!(
                "pieces[{index}] has shape {shape:?}, but pieces[0] has {wanted:?}: {rule}"
            )));
        }
        if !self.is_new {
            let sum = self.shape[axis].checked_add(shape[axis]);
            self.shape[axis] = sum.ok_or_else(call::no_memory)?;
        }
        Ok(())
    }

    /// The extent of a piece on the axis.
    fn length(&self, piece: &Source<'_>) -> i64 {
        if self.is_new {
            1
        } else {
            piece.shape()[self.axis]
        }
    }

    fn make(
        &self,
        py: Python<'py>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (first, shape) = (&self.pieces[0], &self.shape);
        let executor = pool::executor(threads)?;
        if let Some(object) = out {
            let out = target(first, object, "out")?;
            if out.shape() != &shape[..] {
                return Err(PyValueError::new_err(format!(
                    "out has shape {:?}, but the joined pieces have {:?}: pass an array of that shape",
                    out.shape(),
                    &shape[..]
                )));
            }
            check_apart(&self.pieces, &out)?;
            self.copy(py, &out, executor)?;
            return Ok(object.clone());
        }
        let elements = shape.iter().try_fold(1usize, |product, &extent| {
            usize::try_from(extent).ok().and_then(|extent| product.checked_mul(extent))
        });
        let bits = elements.and_then(|elements| elements.checked_mul(first.bits()));
        let out = first.empty(shape, bits.ok_or_else(call::no_memory)?.div_ceil(8))?;
        self.copy(py, &out, executor)?;
        out.give()
    }

    fn copy(
        &self,
        py: Python<'_>,
        out: &Source<'_>,
        executor: Option<libsplit_executor>,
    ) -> PyResult<()> {
        if out.bits() < 8 {
            return join_packed(py, &self.pieces, self.axis, out);
        }
        let in_bytes = out.in_bytes() || self.pieces.iter().any(Source::in_bytes);
        let lengths = self.pieces.iter().map(|piece| self.length(piece)).collect();
        let split = Rule {
            lengths: Lengths::List(lengths),
            ..Rule::new(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1, extent(self.axis))
        };
        let whole = out.describe(in_bytes);
        let places = call::view(&whole.tensor(), &split)?;
        let one =
            Rule { num_outputs: 1, ..Rule::new(libsplit_op::OPENVINO_SPLIT, 1, extent(self.axis)) };
        for (piece, place) in self.pieces.iter().zip(places.tensors()) {
            let mut input = piece.describe(in_bytes);
            if self.is_new {
                input.shape.insert(self.axis, 1);
                input.strides.insert(self.axis, 0);
            }
            let copying = Copy {
                input: input.tensor(),
                rule: &one,
                outputs: core::slice::from_ref(place),
                executor,
                bytes: piece.bytes(),
            };
            // SAFETY: the pieces and `out` hold the memory; that nobody else writes `out` is the
            // caller's part.
            unsafe { copying.run(py) }?;
        }
        Ok(())
    }
}

/// A piece that lies in `out` would be overwritten before it is read.
fn check_apart(pieces: &[Source<'_>], out: &Source<'_>) -> PyResult<()> {
    let written = span(out);
    for (index, piece) in pieces.iter().enumerate() {
        let read = span(piece);
        if read.start < written.end && written.start < read.end {
            return Err(PyValueError::new_err(format!(
                "pieces[{index}] overlaps out in memory: pass another array, or a copy of the piece"
            )));
        }
    }
    Ok(())
}

/// The addresses from the lowest to the highest byte of a tensor; empty if it has none.
fn span(source: &Source<'_>) -> Range<i128> {
    let tensor = source.describe(source.in_bytes());
    let start = tensor.data.addr() as i128;
    if source.elements() == 0 {
        return start..start;
    }
    let bits = i128::try_from(if source.in_bytes() { 8 } else { source.bits() }).unwrap_or(8);
    let (mut lowest, mut highest) = (i128::from(tensor.bit_offset), i128::from(tensor.bit_offset));
    for (&extent, &stride) in tensor.shape.iter().zip(&tensor.strides) {
        let reach = i128::from(extent - 1) * i128::from(stride) * bits;
        *(if reach < 0 { &mut lowest } else { &mut highest }) += reach;
    }
    start + lowest.div_euclid(8)..start + (highest + bits + 7).div_euclid(8)
}

/// Packed elements have no strides in the whole that libsplit could write to: rows of bits are put
/// one after the other.
fn join_packed(
    py: Python<'_>,
    pieces: &[Source<'_>],
    axis: usize,
    out: &Source<'_>,
) -> PyResult<()> {
    let run = |source: &Source<'_>| {
        let extents = source.shape()[axis..].iter().map(|&extent| usize::try_from(extent));
        extents.flatten().product::<usize>() * source.bits()
    };
    let Some(whole) = out.tensor().filter(|tensor| tensor.is_packed()) else {
        let message = "out is not packed: 4-bit and 2-bit elements are joined into packed memory";
        return Err(PyBufferError::new_err(message));
    };
    let packed = pieces.iter().filter_map(Source::tensor).map(|tensor| tensor.copied(py));
    let packed = packed.collect::<PyResult<Vec<_>>>()?;
    // SAFETY: both are packed and on the CPU, `out` may be written, and no piece overlaps it.
    let (read, written) =
        unsafe { (packed.iter().map(|piece| piece.memory()), whole.memory_mut()) };
    let rows: Vec<_> = pieces.iter().map(run).zip(read).collect();
    let length: usize = rows.iter().map(|(bits, _)| bits).sum();
    written.fill(0);
    let count = (out.elements() * out.bits()).checked_div(length).unwrap_or(0);
    let mut position = 0;
    for row in 0..count {
        for (bits, from) in &rows {
            copy_bits(from, row * bits, written, position, *bits);
            position += bits;
        }
    }
    Ok(())
}

/// Copies so many bits to where there are zeros.
fn copy_bits(from: &[u8], start: usize, to: &mut [u8], position: usize, count: usize) {
    if start.is_multiple_of(8) && position.is_multiple_of(8) && count.is_multiple_of(8) {
        let (start, position, count) = (start / 8, position / 8, count / 8);
        to[position..position + count].copy_from_slice(&from[start..start + count]);
        return;
    }
    for bit in 0..count {
        let value = from[(start + bit) / 8] >> ((start + bit) % 8) & 1;
        to[(position + bit) / 8] |= value << ((position + bit) % 8);
    }
}
