//! The measurements, beside the kernels: these are compiled in as they are, at the place in the crate
//! that they have in the library.

#[path = "../../src/copy/kernel/mod.rs"]
mod kernel;

use kernel::combine::LINE;
use kernel::cpu::{Cpu, Level};
use kernel::rules::Rules;
use kernel::strided::Axis;
use kernel::{of_level, Deinterleave, Gather, Kernels, MAX_DEINTERLEAVED};
use std::hint::black_box;
use std::time::{Duration, Instant};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const LARGEST: usize = 64 * MIB;

/// A way of doing something, and what it does.
type Way<'a> = (String, Box<dyn FnMut() + 'a>);

/// GB/s of each way to move so many bytes: they take turns for as long as `QUICK` says.
fn measure(bytes: usize, ways: &mut [Way<'_>]) -> Vec<f64> {
    let quick = std::env::var_os("QUICK").is_some();
    let rounds = if quick { 3 } else { 31 };
    let turn = Duration::from_micros(if quick { 50 } else { 300 });
    let mut calls = vec![1; ways.len()];
    let mut samples = vec![Vec::new(); ways.len()];
    for ((_, way), calls) in ways.iter_mut().zip(&mut calls) {
        way();
        let start = Instant::now();
        way();
        let once = start.elapsed().max(Duration::from_nanos(20));
        *calls = (turn.as_nanos() / once.as_nanos()).max(1) as u32;
    }
    for _ in 0..rounds {
        for (((_, way), calls), samples) in ways.iter_mut().zip(&calls).zip(&mut samples) {
            way();
            let start = Instant::now();
            for _ in 0..*calls {
                way();
            }
            samples.push(start.elapsed().as_secs_f64() / f64::from(*calls));
        }
    }
    let speed = |mut samples: Vec<f64>| {
        samples.sort_by(f64::total_cmp);
        bytes as f64 / samples[samples.len() / 2] / 1e9
    };
    samples.into_iter().map(speed).collect()
}

fn table(title: &str, rows: &[(String, Vec<String>, Vec<f64>)]) {
    println!("\n{title}");
    for (name, ways, speeds) in rows {
        let cells: Vec<String> =
            ways.iter().zip(speeds).map(|(way, speed)| format!("{way} {speed:6.1}")).collect();
        println!("  {name:>10}  {}", cells.join("   "));
    }
}

fn size(bytes: usize) -> String {
    if bytes < MIB {
        format!("{} KiB", bytes / KIB)
    } else {
        format!("{} MiB", bytes / MIB)
    }
}

pub fn tune() {
    let cpu = Cpu::this();
    let rules = Rules::here();
    println!("{cpu:?}\n{rules:?}");
    let source = vec![1u8; LARGEST + 4 * KIB];
    let mut target = vec![2u8; LARGEST + 4 * KIB];
    let skip = target.as_ptr().align_offset(64);
    let (from, to) = (source.as_ptr(), target.as_mut_ptr().wrapping_add(skip));
    level(from, to, cpu.level, rules.level);
    string_copies(from, to, rules);
    past_the_caches(from, to, rules);
    prefetch(from, to, rules);
    black_box(&target);
}

/// Which level.
fn level(from: *const u8, to: *mut u8, highest: Level, chosen: Level) {
    let mut rows = Vec::new();
    let mut best = Vec::new();
    for (what, width, len, bytes) in
        [("copy", 0, 1, 12 * KIB), ("3 × u8", 1, 3, 384 * KIB), ("4 × f32", 4, 4, 384 * KIB)]
    {
        let mut ways: Vec<Way<'_>> = Vec::new();
        for level in levels(highest) {
            let run = move || match width {
                0 => copy(level, from, to, bytes),
                width => deinterleave(level, from, to, width, len, bytes, None),
            };
            ways.push((format!("{level:?}"), Box::new(run)));
        }
        let speeds = measure(bytes, &mut ways);
        let names: Vec<String> = ways.into_iter().map(|(name, _)| name).collect();
        let fastest = (0..speeds.len()).max_by(|a, b| speeds[*a].total_cmp(&speeds[*b]));
        best.push(fastest.map_or_else(String::new, |at| names[at].clone()));
        rows.push((what.to_owned(), names, speeds));
    }
    table("Levels, in the caches", &rows);
    println!("  rule: {chosen:?}; found: {}", best.join(", "));
}

/// From which size on string instructions win.
fn string_copies(from: *const u8, to: *mut u8, rules: Rules) {
    if rules.level < Level::Avx2 {
        return;
    }
    let mut rows = Vec::new();
    let mut wins = Vec::new();
    for bytes in (12..24).map(|power| 1 << power) {
        for off in [0, 16] {
            let to = to.wrapping_add(off);
            let mut ways: [Way<'_>; 2] = [
                ("loop".into(), Box::new(move || copy(rules.level, from, to, bytes))),
                ("rep movsb".into(), Box::new(move || strings(from, to, bytes))),
            ];
            let speeds = measure(bytes, &mut ways);
            if off == 0 && speeds[1] > 1.03 * speeds[0] {
                wins.push(size(bytes));
            }
            let names = ways.map(|(name, _)| name).to_vec();
            rows.push((format!("{} +{off}", size(bytes)), names, speeds));
        }
    }
    table("String instructions, target so many bytes off its line", &rows);
    println!("  rule: from {} (0: never); found: at {}", size(rules.strings), wins.join(", "));
}

/// From which size on it is faster past the caches.
fn past_the_caches(from: *const u8, to: *mut u8, rules: Rules) {
    let mut rows = Vec::new();
    let mut found = None;
    for bytes in (1..=16).map(|step| step * 2 * MIB).chain([48 * MIB, 64 * MIB]) {
        let bytes = bytes / 192 * 192;
        let mut ways: [Way<'_>; 4] = [
            ("flat".into(), Box::new(move || copy(rules.level, from, to, bytes))),
            ("past".into(), Box::new(move || copy_past(rules.level, from, to, bytes))),
            (
                "3 × f32".into(),
                Box::new(move || deinterleave(rules.level, from, to, 4, 3, bytes, None)),
            ),
            (
                "past".into(),
                Box::new(move || {
                    deinterleave(rules.level, from, to, 4, 3, bytes, Some(rules.prefetch));
                }),
            ),
        ];
        let speeds = measure(bytes, &mut ways);
        match speeds[1] > speeds[0] {
            true => found = found.or(Some(2 * bytes)),
            false => found = None,
        }
        let names = ways.map(|(name, _)| name).to_vec();
        rows.push((size(bytes), names, speeds));
    }
    table("Through the caches, and past them", &rows);
    let found = found.map_or("nowhere".to_owned(), |bytes| format!("from {} on", size(bytes)));
    println!("  rule: input and outputs beyond {}; found: {found}", size(rules.budget));
}

/// How far ahead to prefetch.
fn prefetch(from: *const u8, to: *mut u8, rules: Rules) {
    let bytes = 48 * MIB;
    let mut rows = Vec::new();
    for (width, len) in [(1, 3), (4, 3), (8, 2)] {
        let mut ways: Vec<Way<'_>> = Vec::new();
        for distance in [512, 1024, 2048, 4096, 8192, 12288] {
            let run =
                move || deinterleave(rules.level, from, to, width, len, bytes, Some(distance));
            ways.push((distance.to_string(), Box::new(run)));
        }
        let speeds = measure(bytes, &mut ways);
        let names = ways.into_iter().map(|(name, _)| name).collect();
        rows.push((format!("{len} × {width} B"), names, speeds));
    }
    table("Bytes ahead that input is prefetched, past the caches, 48 MiB", &rows);
    println!("  rule: {}", rules.prefetch);
}

fn signed(count: usize) -> isize {
    count as isize
}

/// The levels of this architecture up to one.
fn levels(highest: Level) -> Vec<Level> {
    let all = [Level::Portable, Level::Neon, Level::Avx2, Level::Avx512, Level::Vbmi];
    let is_own = |level: &Level| {
        *level == Level::Portable || !std::ptr::eq(of_level(*level), of_level(Level::Portable))
    };
    all.into_iter().filter(|level| *level <= highest).filter(is_own).collect()
}

fn copy(level: Level, from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: buffers are larger than any copy, and this CPU has the level.
    unsafe { (of_level(level).copy)(from, to, bytes) };
}

fn copy_past(level: Level, from: *const u8, to: *mut u8, bytes: usize) {
    let Some(past) = &of_level(level).non_temporal else { return copy(level, from, to, bytes) };
    // SAFETY: as above; all are whole lines.
    unsafe { (past.stream)(from, to, bytes / LINE * LINE) };
    (past.fence)();
}

#[cfg(target_arch = "x86_64")]
fn strings(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("rep movsb", inout("rsi") from => _, inout("rdi") to => _,
            inout("rcx") bytes => _, options(nostack, preserves_flags));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn strings(from: *const u8, to: *mut u8, bytes: usize) {
    copy(Level::Portable, from, to, bytes);
}

/// `len` units of `width` bytes, past the caches if a distance to prefetch is given.
fn deinterleave(
    level: Level,
    from: *const u8,
    to: *mut u8,
    width: usize,
    len: usize,
    bytes: usize,
    prefetch: Option<usize>,
) {
    let kernels: &Kernels = of_level(level);
    let count = bytes / (width * len);
    let mut targets = [std::ptr::null_mut(); MAX_DEINTERLEAVED];
    for (at, target) in targets.iter_mut().enumerate().take(len) {
        *target = to.wrapping_add(at * count * width / LINE * LINE);
    }
    let (step, past) = (width * len, prefetch.is_some());
    let prefetch = prefetch.unwrap_or(0);
    let rows =
        Deinterleave { source: from, step, targets, count, after: 0, prefetch, more: Axis::NONE };
    let (mut block, mut done) = (rows, 0);
    // SAFETY: as above. Where targets share a line, what is written does not matter.
    unsafe {
        if let Some(lines) = kernels.deinterleave_lines {
            lines(&mut block, len, width, past, &mut |_, rows| {
                done = rows;
                false
            });
        }
        if done == 0 {
            for (at, target) in targets.into_iter().enumerate().take(len) {
                let source = from.wrapping_add(at * width);
                kernels.gather(width)(Gather { source, step, target, count, unit: width });
            }
        }
    }
    if let Some(past) = &kernels.non_temporal {
        (past.fence)();
    }
}
