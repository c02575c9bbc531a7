//! Which rank is which: what shards say of themselves, and the order of ranks that are named one by one.

use crate::checkpoint::{Checkpoint, Source};
use crate::failure::{invalid, refuse, usage};
use anyhow::{Context, Result};
use libsplit_formats::safetensors::Header;
use std::path::{Path, PathBuf};

/// The entries of a shard's metadata.
const KEYS: [&str; 4] = ["libsplit.rank", "libsplit.ranks", "libsplit.plan", "libsplit.model"];

/// What a shard says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub rank: usize,
    pub ranks: usize,
    /// A fingerprint of the plan.
    pub plan: String,
    /// A fingerprint of the whole file: a hash of its tensors' checksums. In a header that has just been
    /// made, it consists of as many zeros.
    pub model: String,
}

impl Mark {
    /// That of a file that has just been made.
    pub fn new(rank: usize, ranks: usize, plan: String) -> Self {
        Self { rank, ranks, plan, model: "0".repeat(16) }
    }

    /// Reads it from a header, if that has one.
    pub fn of(header: &Header) -> Result<Option<Self>> {
        let entry = |key: &str| {
            let mut entries = header.metadata.iter().flatten();
            entries.find(|(name, _)| name == key).map(|(_, value)| value.as_str())
        };
        let (rank, ranks, plan, model) = match KEYS.map(entry) {
            [Some(rank), Some(ranks), Some(plan), Some(model)] => (rank, ranks, plan, model),
            [None, None, None, None] => return Ok(None),
            _ => {
                invalid!("metadata: some of {} are present and others are missing", KEYS.join(", "))
            }
        };
        match (rank.parse(), ranks.parse()) {
            (Ok(rank), Ok(ranks)) => {
                Ok(Some(Self { rank, ranks, plan: plan.into(), model: model.into() }))
            }
            _ => invalid!(
                "metadata: libsplit.rank {rank:?} of libsplit.ranks {ranks:?} are not numbers"
            ),
        }
    }

    /// A header without it.
    pub fn without(header: &Header) -> Header {
        let mut header = header.clone();
        if let Some(metadata) = &mut header.metadata {
            let before = metadata.len();
            metadata.retain(|(key, _)| !KEYS.contains(&key.as_str()));
            if metadata.is_empty() && before != 0 {
                header.metadata = None;
            }
        }
        header
    }

    /// Adds it to a header.
    pub fn add(&self, header: &mut Header) {
        let (rank, ranks) = (self.rank.to_string(), self.ranks.to_string());
        let values = [rank, ranks, self.plan.clone(), self.model.clone()];
        let entries = KEYS.map(str::to_owned).into_iter().zip(values);
        header.metadata.get_or_insert_with(Vec::new).extend(entries);
    }

    /// Where a file that begins with these bytes says which model it is of, if it does.
    pub fn place_of_model(begin: &[u8]) -> Option<u64> {
        let key = format!("\"{}\":\"", KEYS[3]);
        let mut windows = begin.windows(key.len());
        let at = windows.position(|window| window == key.as_bytes())?;
        Some((at + key.len()) as u64)
    }

    /// Checks that a header has this one.
    pub fn check(&self, header: &Header) -> Result<()> {
        match Self::of(header)? {
            None => {
                invalid!("it does not say which rank it is, so 'libsplit shard' did not write it")
            }
            Some(found) if found.rank != self.rank || found.ranks != self.ranks => invalid!(
                "it is rank {} of {}, in the place of rank {} of {}",
                found.rank,
                found.ranks,
                self.rank,
                self.ranks
            ),
            Some(found) if found.plan != self.plan => {
                invalid!("it was made with a different plan or different numbers from the others")
            }
            Some(_) => Ok(()),
        }
    }
}

/// A rank that is named on the command line: what has to be known to put it in its place. The headers of
/// all ranks together may be larger than memory.
pub struct Named {
    pub path: PathBuf,
    pub directory: PathBuf,
    /// What all its files say.
    pub mark: Option<Mark>,
    /// Its first file.
    source: Option<Source>,
}

impl Named {
    /// Reads the headers of a rank.
    pub fn open(path: &Path) -> Result<Self> {
        let rank = Checkpoint::open(path)?;
        let mut first = None;
        for (index, (file, source)) in rank.model.files.iter().zip(&rank.sources).enumerate() {
            let shown = || source.path.display().to_string();
            let mark = Mark::of(&file.header).with_context(shown)?;
            let mark = mark.map(|mark| Mark { model: String::new(), ..mark }); // each file has its own
            if index == 0 {
                first = mark;
            } else if mark != first {
                invalid!("{}: it belongs to a different rank from the files beside it", shown());
            }
        }
        let source = rank.sources.into_iter().next();
        Ok(Self { path: path.into(), directory: rank.directory, mark: first, source })
    }
}

/// Puts ranks in their order by what they say of themselves, or else checks that they are in the order
/// of the numbers in their names, if the user does not say that they are in order.
pub fn check_order(ranks: &mut [Named], is_in_order: bool) -> Result<()> {
    if ranks.iter().all(|rank| rank.mark.is_none()) {
        return check_unmarked(ranks, is_in_order);
    }
    if is_in_order {
        usage!("--in-order: the shards say which rank they are: leave it out");
    }
    let count = ranks.len();
    for Named { directory, mark, .. } in ranks.iter() {
        let shown = directory.display();
        match mark {
            None => invalid!("{shown}: it does not say which rank it is, but others do"),
            Some(mark) if mark.ranks != count => invalid!(
                "{shown}: it is one of {} ranks, but the command names {count}: name all of them",
                mark.ranks
            ),
            Some(mark) if mark.rank >= count => {
                invalid!("{shown}: it is rank {} of {count}", mark.rank)
            }
            Some(_) => {}
        }
    }
    ranks.sort_by_key(|rank| rank.mark.as_ref().map(|mark| mark.rank));
    for pair in ranks.windows(2) {
        let [Some(one), Some(other)] = [&pair[0].mark, &pair[1].mark] else { continue };
        let [first, second] = [pair[0].directory.display(), pair[1].directory.display()];
        if one.rank == other.rank {
            invalid!(
                "{first} and {second}: both are rank {} of {count}: give every rank once",
                one.rank
            );
        }
        if one.plan != other.plan {
            invalid!("{second}: it was made with a different plan from rank {}", one.rank);
        }
    }
    Ok(())
}

/// Refuses ranks that do not say which they are, unless their names show that all are there and in order, or
/// the user says so.
fn check_unmarked(ranks: &[Named], is_in_order: bool) -> Result<()> {
    let sources: Vec<_> = ranks.iter().filter_map(|rank| rank.source.as_ref()).collect();
    if let [only] = sources.as_slice() {
        let shown = only.path.display();
        refuse!(
            "{shown}: it does not say which rank it is, and is the only one given: give all ranks"
        );
    }
    for (index, source) in sources.iter().enumerate() {
        if sources[..index].iter().any(|before| before.is_same(source)) {
            refuse!("{} is given twice: give every rank once", source.path.display());
        }
    }
    if is_in_order {
        return Ok(());
    }
    check_numbers(&sources.iter().map(|source| source.path.as_path()).collect::<Vec<_>>())
}

/// Refuses paths whose numbers do not give their order: one of the numbers counts up, and no other goes
/// down. The shell sorts rank-10 before rank-2.
fn check_numbers(paths: &[&Path]) -> Result<()> {
    let texts: Vec<_> = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let runs: Vec<_> = texts.iter().map(|text| runs(text)).collect();
    for (index, pair) in runs.windows(2).enumerate() {
        if !is_next(&runs[0], &pair[0], &pair[1]) {
            refuse!(
                "{} comes before {}: the files do not say which rank they are, and the numbers in their \
                 names do not give this order: give all ranks in their order, and say so with --in-order \
                 (the shell sorts rank-10 before rank-2)",
                texts[index],
                texts[index + 1]
            );
        }
    }
    let Some(counting) = counting(&runs) else { return Ok(()) };
    for (named, number) in [
        (&runs[0], number(runs[0][counting]).and_then(|first| first.checked_sub(1))),
        (&runs[runs.len() - 1], number(runs[runs.len() - 1][counting]).map(|last| last + 1)),
    ] {
        if let Some(other) = number.and_then(|number| with_number(named, counting, number)) {
            refuse!(
                "{other} is there, too, and not given: give all ranks, or say with --in-order that those \
                 given are all"
            );
        }
    }
    Ok(())
}

fn number(run: &str) -> Option<u64> {
    run.parse().ok().filter(|number| *number < u64::MAX)
}

/// Whether a path can be that of the rank after another's: they differ in numbers alone, of which at least
/// one counts up.
fn is_next(first: &[&str], before: &[&str], after: &[&str]) -> bool {
    if before.len() != after.len() || first.len() != after.len() {
        return false;
    }
    let pairs = before.iter().zip(after).filter(|(before, after)| before != after);
    let numbers = pairs.map(|(before, after)| Some((number(before)?, number(after)?)));
    let Some(numbers) = numbers.collect::<Option<Vec<_>>>() else { return false };
    numbers.iter().all(|(before, after)| before <= after)
        && numbers.iter().any(|(before, after)| before + 1 == *after)
}

/// Which of the runs is the number that counts up from each path to the next.
fn counting(runs: &[Vec<&str>]) -> Option<usize> {
    (0..runs[0].len()).find(|at| {
        runs.windows(2).all(|pair| match (number(pair[0][*at]), number(pair[1][*at])) {
            (Some(before), Some(after)) => before + 1 == after,
            _ => false,
        })
    })
}

/// The path of another rank, with the number everywhere that this one has its own, if there is such a file.
fn with_number(path: &[&str], counting: usize, number: u64) -> Option<String> {
    let own = path[counting];
    let run = |run: &&str| match *run {
        same if same == own => format!("{number:0width$}", width = own.len()),
        other => other.to_owned(),
    };
    let everywhere: String = path.iter().map(run).collect();
    let there = |at: (usize, &&str)| if at.0 == counting { run(at.1) } else { (*at.1).to_owned() };
    let here: String = path.iter().enumerate().map(there).collect();
    [everywhere, here].into_iter().find(|path| Path::new(path).exists())
}

/// A text as runs of digits and of other characters.
fn runs(text: &str) -> Vec<&str> {
    let mut runs = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let end = rest.find(|letter: char| letter.is_ascii_digit() != is_digit);
        let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
        runs.push(run);
        rest = after;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::check_numbers;
    use std::path::Path;

    #[test]
    fn numbers_in_names_count_up() {
        let check =
            |names: &[&str]| check_numbers(&names.iter().map(Path::new).collect::<Vec<_>>());
        assert!(check(&["s/rank-0/m.st", "s/rank-1/m.st"]).is_ok());
        assert!(check(&["a", "b"]).is_err());
        assert!(check(&["r9", "r10"]).is_ok());
        assert!(check(&["n0/r1", "n0/r2", "n1/r3"]).is_ok());
        assert!(check(&["n0/r0", "n0/r1", "n1/r0"]).is_err());
        assert!(check(&["r0-0", "r1-1", "r10-10"]).is_err());
        assert!(check(&["r1", "r10", "r2"]).is_err());
        assert!(check(&["r1", "r0"]).is_err());
        assert!(check(&["r0", "r2"]).is_err());
    }
}
