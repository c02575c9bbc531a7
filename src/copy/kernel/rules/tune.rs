//! For `make tune` alone: this CPU's rules as numbers, and others in their place.

use super::super::cpu::Cpu;
use super::{Rules, HERE, LEVELS, MIB, PAGE};
use core::sync::atomic::Ordering::Relaxed;

/// The levels by their numbers, as the rule `level` has them.
pub const NAMES: [&str; LEVELS.len()] = ["portable", "NEON", "AVX2", "AVX-512", "VBMI"];

/// Bytes that the rules for this CPU give, and other numbers; of a choice 1, or 0.
#[must_use]
pub fn rule(name: &str) -> usize {
    let mut found = 0;
    change(&mut Rules::of(&Cpu::this()), name, |value| {
        found = value;
        value
    });
    found
}

/// The highest level that this CPU has, by its number.
#[must_use]
pub fn highest() -> usize {
    number(|level| *level <= Cpu::this().level)
}

/// Lets this process go by the rules for this CPU, but for those that are named, until the next call; small calls keep the
/// loops that they have found.
pub fn force(others: &[(&str, usize)]) {
    let mut rules = Rules::of(&Cpu::this());
    for (name, value) in others {
        change(&mut rules, name, |_| *value);
    }
    rules.level = rules.level.min(Cpu::this().level);
    // What fits into a word of them.
    rules.prefetch = rules.prefetch.min(255 * super::PREFETCH_UNIT);
    rules.strings = rules.strings.min(255 * PAGE);
    rules.budget = rules.budget.clamp(PAGE, (1 << 15) * PAGE);
    rules.all = rules.all.min(super::MOST) & !(MIB - 1);
    HERE.store(rules.packed(), Relaxed);
}

fn number(is_it: impl Fn(&super::Level) -> bool) -> usize {
    LEVELS.iter().rposition(is_it).unwrap_or(0)
}

fn change(rules: &mut Rules, name: &str, to: impl FnOnce(usize) -> usize) {
    let choice = match name {
        "level" => {
            let level = number(|level| *level == rules.level);
            rules.level = LEVELS.get(to(level)).copied().unwrap_or(rules.level);
            return;
        }
        "budget" => return rules.budget = to(rules.budget),
        "all" => return rules.all = to(rules.all),
        "apart" => return rules.apart = to(rules.apart),
        "transposed" => return rules.transposed = to(rules.transposed),
        "short" => return rules.short = to(rules.short),
        "prefetch" => return rules.prefetch = to(rules.prefetch),
        "strings" => return rules.strings = to(rules.strings),
        "keeps_equal" => &mut rules.keeps_equal,
        "keeps_apart" => &mut rules.keeps_apart,
        "is_row_major_past" => &mut rules.is_row_major_past,
        "combines" => &mut rules.combines,
        "repeats_by_strings" => &mut rules.repeats_by_strings,
        "is_halved" => &mut rules.is_halved,
        "goes_by_piece" => &mut rules.goes_by_piece,
        _ => return,
    };
    *choice = to(usize::from(*choice)) > 0;
}
