//! What is split, and where it lies.

use libsplit::{Executor, Operator, Split, View, ViewMut};

pub const KIB: usize = 1 << 10;
pub const MIB: usize = 1 << 20;
/// The most bytes of a case.
pub const LARGEST: usize = 64 * MIB;

const LINE: usize = 64;
const PAGE: usize = 4 * KIB;
/// Room for lines that outputs begin with, and for the pages before them.
const SPARE: usize = 256 * KIB;

/// An input, and room for outputs, in memory that has been touched.
pub struct Memory([Vec<u8>; 2]);

impl Memory {
    pub fn new() -> Self {
        Self([1, 2].map(|byte| vec![byte; 2 * LARGEST + SPARE]))
    }

    /// Both from a page's beginning on, with room for any case.
    pub fn parts(&mut self) -> [&mut [u8]; 2] {
        self.0.each_mut().map(|part| {
            let skip = part.as_ptr().align_offset(PAGE);
            &mut part[skip..]
        })
    }

    /// The same as two, for half as large cases.
    pub fn halves(&mut self) -> [[&mut [u8]; 2]; 2] {
        let [from, to] = self.parts().map(|part| part.split_at_mut(LARGEST));
        [[from.0, to.0], [from.1, to.1]]
    }
}

/// A split of bytes, of which the last axis is an element where the first ones are transposed.
pub struct Case {
    pub name: String,
    shape: Vec<usize>,
    strides: Vec<usize>,
    axis: usize,
    lengths: Vec<usize>,
}

impl Case {
    /// Packed rows of runs of so many bytes.
    pub fn runs(bytes: usize, runs: Vec<usize>) -> Self {
        let row = runs.iter().sum();
        let name = match runs.as_slice() {
            [first, others @ ..] if others.iter().all(|run| run == first) => {
                format!("{}x{first}", runs.len())
            }
            _ => format!("{} of 1 to {}", runs.len(), runs.iter().max().unwrap()),
        };
        Self { name, shape: vec![bytes / row, row], strides: vec![row, 1], axis: 1, lengths: runs }
    }

    pub fn equal(bytes: usize, pieces: usize, run: usize) -> Self {
        Self::runs(bytes, vec![run; pieces])
    }

    /// Runs that are four fifths of rows.
    pub fn part(bytes: usize, pieces: usize, run: usize) -> Self {
        let row = pieces * run;
        let packed = Self::equal(bytes, pieces, run);
        Self { name: format!("part {}", packed.name), strides: vec![row / 4 * 5, 1], ..packed }
    }

    /// A row that is repeated, into two.
    pub fn repeated(bytes: usize, row: usize) -> Self {
        let packed = Self::equal(bytes / 2, 2, row / 2);
        Self { name: format!("repeated {row}"), strides: vec![0, 1], ..packed }
    }

    /// A matrix of units of so many bytes by columns, about square, into four.
    pub fn transposed(bytes: usize, unit: usize) -> Self {
        // Not a power of two, whose lines meet in the caches.
        let side = ((bytes / unit) as f64).sqrt() as usize / 32 * 32 + 16;
        Self {
            name: format!("transposed {unit}"),
            shape: vec![side, bytes / unit / side, unit],
            strides: vec![unit, side * unit, 1],
            axis: 0,
            lengths: vec![side / 4; 4],
        }
    }

    pub fn bytes(&self) -> usize {
        self.shape.iter().product()
    }

    /// Gives what splits it once, to outputs so many bytes off their lines.
    pub fn with<R>(
        &self,
        [from, to]: [&mut [u8]; 2],
        off: usize,
        body: impl FnOnce(&mut (dyn FnMut(Option<&dyn Executor>) + Send)) -> R,
    ) -> R {
        let [shape, strides, lengths] = [&self.shape, &self.strides, &self.lengths]
            .map(|of| of.iter().map(|n| *n as i64).collect::<Vec<_>>());
        let input = View::strided(from, 0, &shape, &strides).unwrap();
        let mut outputs = Vec::new();
        let mut rest = &mut to[off..];
        for length in &lengths {
            let mut shape = shape.clone();
            shape[self.axis] = *length;
            let bytes = shape.iter().product::<i64>() as usize;
            let (piece, next) = rest.split_at_mut(bytes.next_multiple_of(LINE));
            outputs.push(ViewMut::packed(&mut piece[..bytes], &shape).unwrap());
            rest = next;
        }
        let split =
            Split::new(Operator::VariadicSplit1).axis(self.axis as i64).lengths(&lengths[..]);
        body(&mut |executor| match executor {
            None => split.copy(&input, &mut outputs).unwrap(),
            Some(executor) => split.copy_with(&input, &mut outputs, executor).unwrap(),
        })
    }
}
