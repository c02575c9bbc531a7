//! The loops that move bytes, each by a shape that selects it: `cargo bench`, or
//! `cargo bench --bench kernels -- deinterleave` for some.
//!
//! Elements are bytes throughout: a copy sees rows and runs of bytes, whatever their type.

use divan::counter::BytesCount;
use divan::Bencher;
use libsplit::{DType, Operator, Split, View, ViewMut};
use std::fmt;

const MIB: usize = 1 << 20;

fn main() {
    divan::main();
}

/// Rows of bytes and the runs of each that the pieces take.
#[derive(Clone)]
struct Case {
    kernel: &'static str,
    runs: Vec<usize>,
}

impl fmt::Display for Case {
    /// As `deinterleave 3×4`: three runs of four bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.runs[0];
        if self.runs.iter().all(|run| *run == first) {
            write!(f, "{} {}×{first}", self.kernel, self.runs.len())
        } else {
            let runs: Vec<String> = self.runs.iter().map(ToString::to_string).collect();
            write!(f, "{} {}", self.kernel, runs.join(","))
        }
    }
}

fn cases() -> Vec<Case> {
    let equal = |kernel, pieces: &[usize], runs: &[usize]| -> Vec<Case> {
        let case = |run: usize| move |pieces: &usize| Case { kernel, runs: vec![run; *pieces] };
        runs.iter().flat_map(|run| pieces.iter().map(case(*run))).collect()
    };
    let uneven = [vec![16, 4, 320], vec![7, 35, 1, 21], (1..=13).collect()];
    [
        equal("deinterleave", &[2, 3, 4, 8, 16], &[1, 2, 4, 8, 16]),
        equal("short", &[3, 5, 8], &[3, 7, 12, 24, 48, 96]),
        equal("lines", &[3, 4], &[64, 128, 256]),
        equal("rows", &[3], &[1000, 2048, 4096, 44032]),
        equal("columns", &[1024], &[4]),
        uneven.map(|runs| Case { kernel: "uneven", runs }).to_vec(),
    ]
    .concat()
}

#[divan::bench(args = cases())]
fn in_cache(bencher: Bencher, case: &Case) {
    packed(bencher, case, MIB);
}

#[divan::bench(args = cases(), sample_count = 20)]
fn in_memory(bencher: Bencher, case: &Case) {
    packed(bencher, case, 64 * MIB);
}

/// Bytes [rows, row] along axis 1.
fn packed(bencher: Bencher, case: &Case, bytes: usize) {
    let row = case.runs.iter().sum();
    let rows = bytes / row;
    let source = vec![1u8; rows * row];
    let lengths: Vec<i64> = case.runs.iter().copied().map(extent).collect();
    let mut targets: Vec<Vec<u8>> = case.runs.iter().map(|run| vec![0; rows * run]).collect();
    let mut outputs: Vec<ViewMut<'_, u8>> = (targets.iter_mut().zip(&lengths))
        .map(|(target, length)| ViewMut::packed(target, &[extent(rows), *length]).unwrap())
        .collect();
    let input = View::packed(&source, &[extent(rows), extent(row)]).unwrap();
    let split = Split::new(Operator::onnx_split(18).unwrap()).axis(1).lengths(&lengths[..]);
    bencher
        .counter(BytesCount::new(source.len()))
        .bench_local(|| split.copy(&input, &mut outputs).unwrap());
}

/// A transposed square matrix of elements of so many bytes, into four.
#[divan::bench(args = [1, 2, 4, 8])]
fn transpose(bencher: Bencher, width: usize) {
    match width {
        1 => transposed::<u8>(bencher),
        2 => transposed::<u16>(bencher),
        4 => transposed::<u32>(bencher),
        _ => transposed::<u64>(bencher),
    }
}

fn transposed<T: libsplit::Element + Copy + Default>(bencher: Bencher) {
    const SIDE: usize = 2048;
    let side = extent(SIDE);
    let source = vec![T::default(); SIDE * SIDE];
    let input = View::strided(&source, 0, &[side, side], &[1, side]).unwrap();
    let mut targets = vec![vec![T::default(); SIDE * SIDE / 4]; 4];
    let mut outputs: Vec<ViewMut<'_, T>> = (targets.iter_mut())
        .map(|target| ViewMut::packed(target, &[side / 4, side]).unwrap())
        .collect();
    let split = Split::new(Operator::onnx_split(18).unwrap()).num_outputs(4);
    bencher
        .counter(BytesCount::of_slice(&source))
        .bench_local(|| split.copy(&input, &mut outputs).unwrap());
}

/// Rows of 4-bit elements, an odd number of them first: every other run begins within a byte.
#[divan::bench(args = [3, 33, 333])]
fn sub_byte(bencher: Bencher, length: i64) {
    let rows = extent(MIB) / length;
    let source = vec![0; usize::try_from(rows * length).unwrap()];
    let mut targets = [source.clone(), source.clone()];
    let mut outputs = targets.each_mut().map(Vec::as_mut_slice);
    let split = Split::new(Operator::OpenVinoSplit1).axis(1).num_outputs(2);
    bencher.counter(BytesCount::new(source.len())).bench_local(|| {
        split.copy_bytes(DType::Int4, &[rows, 2 * length], &source, &mut outputs).unwrap();
    });
}

/// What a call costs beside its copies: four bytes for each of three pieces.
#[divan::bench(sample_size = 1000)]
fn call(bencher: Bencher) {
    packed(bencher, &Case { kernel: "call", runs: vec![4; 3] }, 12);
}

fn extent(count: usize) -> i64 {
    i64::try_from(count).unwrap()
}
