//! Ways that take turns; tables, and what is found in them.

use crate::case::{Case, Memory, KIB, MIB};
use libsplit::{tune::force, Executor};
use std::time::{Duration, Instant};

/// A way of going about it: its name, and rules with other values.
pub type Way = (String, Vec<(&'static str, usize)>);

pub fn is_quick() -> bool {
    std::env::var_os("QUICK").is_some()
}

/// GB/s of each of so many ways to move so many bytes: they take turns, which begin with a call that is not timed.
pub fn speeds(
    bytes: usize,
    ways: usize,
    begin: &dyn Fn(usize),
    run: &mut dyn FnMut(usize),
) -> Vec<f64> {
    let (rounds, turn) = if is_quick() { (1, 20) } else { (31, 300) };
    let turn = Duration::from_micros(turn);
    let mut samples = vec![Vec::new(); ways];
    for _ in 0..rounds {
        for (way, samples) in samples.iter_mut().enumerate() {
            begin(way);
            run(way);
            let (start, mut calls) = (Instant::now(), 0);
            while calls == 0 || start.elapsed() < turn {
                run(way);
                calls += 1;
            }
            samples.push(start.elapsed().as_secs_f64() / f64::from(calls));
        }
    }
    let speed = |mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        bytes as f64 / samples[samples.len() / 2] / 1e9
    };
    samples.into_iter().map(speed).collect()
}

/// The same of a case by rules with other values.
pub fn by_rules(
    memory: &mut Memory,
    case: &Case,
    ways: &[Way],
    executor: Option<&dyn Executor>,
) -> Vec<f64> {
    let begin = |way: usize| force(&ways[way].1);
    case.with(memory.parts(), 0, |split| {
        speeds(case.bytes(), ways.len(), &begin, &mut |_| split(executor))
    })
}

pub fn title(title: &str) {
    println!("\n{title}");
}

pub fn row(name: &str, ways: &[&str], speeds: &[f64]) {
    let cells: Vec<String> =
        ways.iter().zip(speeds).map(|(way, speed)| format!("{way} {speed:6.1}")).collect();
    println!("  {name:>20}  {}", cells.join("   "));
}

/// The last two lines of each table.
pub fn verdict(rule: &str, found: &str) {
    println!("  {:>20}  {rule}\n  {:>20}  {found}", "rule", "found");
}

/// From which of ascending sizes on the second way is to be taken, so that all together are the quickest; it has
/// to be so many times as quick there.
pub fn from_where(sizes: &[(usize, f64, f64)], times: f64) -> Option<usize> {
    let gain = |(_, one, other): &(usize, f64, f64)| (other / one / times).ln();
    let gains = |from: usize| sizes[from..].iter().map(gain).sum::<f64>();
    let best = (0..=sizes.len()).max_by(|a, b| gains(*a).total_cmp(&gains(*b)));
    best.and_then(|from| sizes.get(from)).map(|(bytes, ..)| *bytes)
}

/// To a tenth.
pub fn size(bytes: usize) -> String {
    let (unit, name) = if bytes < MIB { (KIB, "KiB") } else { (MIB, "MiB") };
    let tenths = (10 * bytes + unit / 2) / unit;
    match tenths % 10 {
        0 => format!("{} {name}", tenths / 10),
        tenth => format!("{}.{tenth} {name}", tenths / 10),
    }
}
