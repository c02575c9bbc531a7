//! Rules that are one of a few values: all of them beside each other on a few cases.

use crate::case::{Case, Memory, KIB, MIB};
use crate::measure::{by_rules, row, title, verdict, Way};
use libsplit::tune::{highest, rule, NAMES};

const VBMI: usize = NAMES.len() - 1;

/// All outputs go past the caches, or none.
pub const PAST: [(&str, usize); 2] = [("budget", 0), ("all", 0)];
pub const THROUGH: [(&str, usize); 5] =
    [("budget", usize::MAX), ("all", usize::MAX), ("apart", 8), ("transposed", 8), ("short", 8)];

/// A rule, what it is measured by, rules that have another value then, its values, and cases.
struct Choice {
    rule: &'static str,
    of: &'static str,
    others: &'static [(&'static str, usize)],
    values: Vec<usize>,
    cases: Vec<Case>,
}

pub fn measure(memory: &mut Memory, is_wanted: &dyn Fn(&str) -> bool) {
    let choices =
        [level(), is_halved(), prefetch(), combines(), row_major(), by_piece(), repeats()];
    for choice in choices.iter().filter(|choice| is_wanted(choice.rule)) {
        choice.measure(memory);
    }
}

fn level() -> Choice {
    let is_own =
        |level: &usize| *level == 0 || (NAMES[*level] == "NEON") == cfg!(target_arch = "aarch64");
    let runs = [(3, 1), (4, 4), (2, 8), (5, 7), (3, 12), (3, 48), (3, 1024)];
    Choice {
        rule: "level",
        of: "384 KiB in the caches",
        others: &[],
        values: (0..=highest()).filter(is_own).collect(),
        cases: equal(384 * KIB, &runs),
    }
}

fn is_halved() -> Choice {
    Choice {
        rule: "is_halved",
        of: "1 MiB by the loops of VBMI, if this CPU has them",
        others: &[("level", VBMI)],
        values: vec![0, 1],
        cases: equal(MIB, &[(2, 48), (3, 64), (5, 96), (12, 128), (1, 8 * KIB)]),
    }
}

fn prefetch() -> Choice {
    let runs = [(3, 1), (3, 4), (2, 8), (3, 12), (8, 48), (3, 100), (3, 4096)];
    Choice {
        rule: "prefetch",
        of: "bytes ahead, 48 MiB past the caches",
        others: &PAST,
        values: vec![512, 1024, 2048, 4096, 6144, 8192, 12288],
        cases: equal(48 * MIB, &runs),
    }
}

fn combines() -> Choice {
    let runs = [(2, 12), (3, 12), (5, 9), (8, 12), (3, 24), (5, 24), (16, 24)];
    Choice {
        rule: "combines",
        of: "40 MiB past the caches",
        others: &PAST,
        values: vec![0, 1],
        cases: equal(40 * MIB, &runs),
    }
}

fn row_major() -> Choice {
    Choice {
        rule: "is_row_major_past",
        of: "32 MiB past the caches",
        others: &PAST,
        values: vec![0, 1],
        cases: equal(32 * MIB, &[(2, 64 * KIB), (2, MIB), (2, 2 * MIB), (8, MIB)]),
    }
}

fn by_piece() -> Choice {
    let unequal = |bytes: usize, pieces: usize, longest: usize| {
        Case::runs(bytes, (0..pieces).map(|at| 1 + at % longest).collect())
    };
    let mut cases = equal(MIB, &[(200, 12), (48, 31)]);
    cases.extend(equal(24 * MIB, &[(256, 6)]));
    cases.extend([unequal(24 * MIB, 750, 7), unequal(24 * MIB, 64, 10)]);
    cases.extend([unequal(MIB, 64, 5), unequal(250 * KIB, 48, 60)]);
    Choice {
        rule: "goes_by_piece",
        of: "short runs of many pieces",
        others: &[],
        values: vec![0, 1],
        cases,
    }
}

fn repeats() -> Choice {
    Choice {
        rule: "repeats_by_strings",
        of: "8 MiB of a row, with string instructions for long runs, if the level has them",
        others: &[("strings", 24 * KIB)],
        values: vec![0, 1],
        cases: [KIB, 3 * KIB, 12 * KIB].map(|row| Case::repeated(8 * MIB, row)).into(),
    }
}

fn equal(bytes: usize, runs: &[(usize, usize)]) -> Vec<Case> {
    runs.iter().map(|(pieces, run)| Case::equal(bytes, *pieces, *run)).collect()
}

impl Choice {
    fn measure(&self, memory: &mut Memory) {
        title(&format!("{}: {}", self.rule, self.of));
        let rule = rule(self.rule);
        let way =
            |value: &usize| (self.label(*value), [self.others, &[(self.rule, *value)]].concat());
        let ways: Vec<Way> = self.values.iter().map(way).collect();
        let names: Vec<&str> = ways.iter().map(|(name, _)| name.as_str()).collect();
        // Logarithms of all speeds.
        let mut sums = vec![0.0; ways.len()];
        for case in &self.cases {
            let speeds = by_rules(memory, case, &ways, None);
            row(&case.name, &names, &speeds);
            sums.iter_mut().zip(&speeds).for_each(|(sum, speed)| *sum += speed.ln());
        }
        let best = (0..sums.len()).max_by(|a, b| sums[*a].total_cmp(&sums[*b])).unwrap();
        let times = |at: usize| ((sums[best] - sums[at]) / self.cases.len() as f64).exp();
        let by = match self.values.iter().position(|value| *value == rule) {
            Some(at) if at != best => format!(", {:.2} times as quick on the whole", times(at)),
            _ => String::new(),
        };
        verdict(&self.label(rule), &format!("{}{by}", names[best]));
    }

    fn label(&self, value: usize) -> String {
        match self.rule {
            "level" => NAMES[value].to_owned(),
            "prefetch" => value.to_string(),
            _ => ["no", "yes"][value].to_owned(),
        }
    }
}
