//! `make tune`: measures what is left to be measured of a machine, and prints it as a row for the table `MODELS` of
//! `src/copy/machine.rs`: up to how many bytes of input and outputs together a copy is quicker through the caches than
//! past them. Run it a few times on an idle machine, with the whole cache to itself.
//!
//! Each split is timed in a pipeline, by one thread: its input is written just before, and its outputs are read right
//! after. Stores past the caches are quick by themselves, and may cost more than they save when the outputs are read.

#![allow(clippy::pedantic)] // a measurement is no library

use libsplit::tune::{describe_cpu, force_past};
use libsplit::{Operator, Split, View, ViewMut};
use std::hint::black_box;
use std::time::Instant;

const MIB: usize = 1 << 20;
/// Outputs of less always stay in the caches.
const LEAST_BYTES: usize = MIB + MIB / 8;
const MOST_BYTES: usize = 64 * MIB;
/// Each split is timed at least so often, and until it has made so many bytes.
const LEAST_ROUNDS: usize = 15;
const LEAST_TOTAL_BYTES: usize = 128 * MIB;

/// A split of 32-bit elements.
struct Case {
    name: &'static str,
    shape: Vec<i64>,
    strides: Vec<i64>,
    axis: usize,
    lengths: Vec<i64>,
}

impl Case {
    fn packed(name: &'static str, bytes: usize, row: &[i64], lengths: &[i64]) -> Self {
        let columns = row.iter().product::<i64>();
        let shape = [&[(bytes / 4) as i64 / columns], row].concat();
        let strides = [columns, columns / row[0], 1];
        Self {
            name,
            strides: strides[..shape.len()].to_vec(),
            shape,
            axis: 1,
            lengths: lengths.to_vec(),
        }
    }

    fn all(bytes: usize) -> [Self; 3] {
        // Not a power of two, of which all rows begin in the same sets of a cache.
        let side = ((bytes / 4) as f64).sqrt() as i64 / 32 * 32 + 16;
        let transposed = Self {
            name: "transposed",
            shape: vec![side, side],
            strides: vec![1, side],
            axis: 0,
            lengths: vec![side / 4; 4],
        };
        let long = Self::packed("runs of 64 KiB", bytes, &[2, 16 << 10], &[1, 1]);
        [long, Self::packed("runs of 16 bytes", bytes, &[12, 1], &[4, 4, 4]), transposed]
    }

    fn elements(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    /// Returns the seconds that it takes to write the input, to split it, and to read the outputs.
    fn seconds(&self, memory: &mut [Vec<u32>; 2], value: u32) -> f64 {
        let [input, outputs] = memory;
        let (input, outputs) = (&mut input[..self.elements()], &mut outputs[..self.elements()]);
        let start = Instant::now();
        black_box(&mut *input).fill(value);
        let mut rest = &mut *outputs;
        let mut views = Vec::new();
        for length in &self.lengths {
            let mut shape = self.shape.clone();
            shape[self.axis] = *length;
            let (piece, next) = rest.split_at_mut(shape.iter().product::<i64>() as usize);
            views.push(ViewMut::packed(piece, &shape).unwrap());
            rest = next;
        }
        let view = View::strided(input, 0, &self.shape, &self.strides).unwrap();
        let split = Split::new(Operator::VariadicSplit1).axis(self.axis as i64);
        split.lengths(&self.lengths[..]).copy(&view, &mut views).unwrap();
        drop(views);
        let sum = black_box(&*outputs).iter().fold(0u32, |sum, element| sum.wrapping_add(*element));
        assert_eq!(black_box(sum), value.wrapping_mul(outputs.len() as u32));
        start.elapsed().as_secs_f64()
    }

    /// Returns the lower quartiles of the seconds through the caches and past them, which take turns.
    fn quartiles(&self, memory: &mut [Vec<u32>; 2], is_quick: bool) -> [f64; 2] {
        let rounds = LEAST_ROUNDS.max(LEAST_TOTAL_BYTES / (4 * self.elements()));
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..if is_quick { 1 } else { rounds } {
            for (past, samples) in samples.iter_mut().enumerate() {
                force_past(Some(past == 1));
                samples.push(self.seconds(memory, round as u32));
            }
        }
        samples.map(|mut samples| {
            samples.sort_by(f64::total_cmp);
            samples[samples.len() / 4]
        })
    }
}

fn main() {
    let is_quick = std::env::var_os("QUICK").is_some();
    let mut memory = [1, 2].map(|value| vec![value; MOST_BYTES / 4 + MIB]);
    let mut sizes = Vec::new();
    println!("GB/s of input through the caches, and past them:");
    let mut bytes = LEAST_BYTES;
    while bytes <= if is_quick { LEAST_BYTES } else { MOST_BYTES } {
        print!("{:6.2} MiB", bytes as f64 / MIB as f64);
        let mut gain = 0.0;
        for case in Case::all(bytes) {
            let [through, past] = case.quartiles(&mut memory, is_quick);
            let speed = |seconds: f64| 4e-9 * case.elements() as f64 / seconds;
            print!("   {} {:5.2} {:5.2}", case.name, speed(through), speed(past));
            gain += (through / past).ln();
        }
        println!();
        sizes.push((bytes, gain));
        bytes += bytes / 4;
    }
    force_past(None);
    print_row(&sizes);
}

/// Prints the row, from what is gained past the caches at each size.
fn print_row(sizes: &[(usize, f64)]) {
    let gains = |from: usize| sizes[from..].iter().map(|(_, gain)| gain).sum::<f64>();
    let first = (0..=sizes.len()).max_by(|a, b| gains(*a).total_cmp(&gains(*b))).unwrap_or(0);
    // Input and outputs of the largest size that stays in the caches.
    let held = 2 * first.checked_sub(1).map_or(MIB, |last| sizes[last].0);
    match sizes.get(first) {
        Some((bytes, _)) => {
            println!("\npast from {:.2} MiB on; the row:", *bytes as f64 / MIB as f64)
        }
        None => println!("\npast nowhere, so the row says less than there may be:"),
    }
    let (vendor, family, level, caches) = describe_cpu();
    let vendor = String::from_utf8_lossy(&vendor);
    let [second, third] = caches.map(|bytes| ((8 * held + bytes / 2) / bytes).max(1));
    println!(
        "    Model::new(\"…\", *b{vendor:?}, {family:#X}, Level::{level:?}, {third}, {second}),"
    );
    println!(
        "The smaller of the two limits decides: if other models of this family have larger shared caches, and use \
         them, write 1024 for the last number."
    );
}
