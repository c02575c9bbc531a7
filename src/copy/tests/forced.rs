//! Other machines than this one, for tests: with the kernels of any level that the CPU has, with any row of the table,
//! or with thresholds so low that small copies take the ways of large ones.

use super::super::cpu::Cpu;
use super::super::kernels::Level;
use super::super::level::kernels_of;
use super::super::machine::{Machine, MODELS};
use core::ffi::CStr;

/// The names of the rows of the table, separated by spaces.
pub(in super::super) const MODEL_NAMES: &CStr = c"zen3 zen4 zen5 xeon other";

/// How many powers of two thresholds are lowered by.
const LOW_POWER: usize = 10;

/// Why this machine cannot be another one. The numbers are statuses of `libsplit_test_force()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Refused {
    /// This CPU lacks a level.
    ByCpu = 1,
    UnknownWord = 2,
    /// This build lacks a level.
    ByBuild = 3,
}

impl Level {
    /// The levels of this architecture, the lowest first, with the words by which tests force them. A build may lack
    /// some of them.
    pub(in super::super) const ALL: &[(&CStr, Self)] = &[
        (c"portable", Self::Portable),
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        (c"neon", Self::Neon),
        #[cfg(target_arch = "x86_64")]
        (c"avx2", Self::Avx2),
        #[cfg(target_arch = "x86_64")]
        (c"avx512", Self::Avx512),
    ];

    /// Returns the word by which tests force this level.
    #[cfg(test)]
    pub(in super::super) fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, level)| *level == self);
        found.map_or("?", |(name, _)| name.to_str().unwrap())
    }
}

/// Returns the levels that this CPU and this build have.
#[cfg(test)]
pub(in super::super) fn levels() -> Vec<Level> {
    let is_here = |level: &Level| *level <= Cpu::this().level && kernels_of(*level).level == *level;
    Level::ALL.iter().map(|(_, level)| *level).filter(is_here).collect()
}

impl Machine {
    /// Returns a machine like this one, but with a level's kernels, a model's row, or thresholds so low that small
    /// copies take the ways of large ones.
    pub(in super::super) fn of_words(words: &str) -> Result<Self, Refused> {
        let cpu = Cpu::this();
        let mut machine = Self::of(&cpu);
        for word in words.split(' ').filter(|word| !word.is_empty()) {
            let is_level = |(name, _): &&(&CStr, Level)| name.to_bytes() == word.as_bytes();
            if let Some(&(_, level)) = Level::ALL.iter().find(is_level) {
                if kernels_of(level).level != level {
                    return Err(Refused::ByBuild);
                }
                if level > cpu.level {
                    return Err(Refused::ByCpu);
                }
                machine.kernels = kernels_of(level);
            } else if let Some(model) = MODELS.iter().find(|model| model.name == word) {
                let Self { kernels, shrunk, .. } = machine;
                machine = Self { kernels, shrunk, ..Self::with(&cpu, model) };
            } else if word == "low" {
                machine.shrunk = LOW_POWER;
            } else {
                return Err(Refused::UnknownWord);
            }
        }
        Ok(machine)
    }
}
