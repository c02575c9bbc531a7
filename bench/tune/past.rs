//! From which size on outputs go past the caches: each kind of them through the caches and past them.

use crate::case::{Case, Memory, KIB, MIB};
use crate::choices::{PAST, THROUGH};
use crate::measure::{by_rules, from_where, is_quick, row, size, title, verdict, Way};
use crate::pool::Pool;
use libsplit::{tune::rule, Executor};

/// A kind of outputs, the rules that say how many bytes of it stay in the caches, and a case.
struct Kind {
    name: &'static str,
    rules: &'static str,
    /// Outputs of so many bytes stay there, by one thread and by two.
    held: [usize; 2],
    case: fn(usize) -> Case,
}

pub fn measure(memory: &mut Memory, is_wanted: &dyn Fn(&str) -> bool) {
    for threads in [1, 2] {
        let pool = (threads > 1).then(|| Pool::new(false));
        let executor = pool.as_ref().map(|pool| pool as &dyn Executor);
        for kind in kinds() {
            let rules = if threads == 1 { "budget" } else { "all" };
            let name = format!("{}: {rules}{}, of {threads}", kind.name, kind.rules);
            if is_wanted(&name) {
                past(memory, &kind, &name, threads, executor);
            }
        }
    }
}

fn kinds() -> [Kind; 5] {
    let budget = rule("budget");
    let both = (2 * budget).min(rule("all")).max(budget);
    // Input counts as well.
    let of = |held: usize, eighths: usize| held / 8 * eighths / 2;
    let long = [of(budget, 8), of(both, 8)];
    let by_two = if rule("keeps_apart") > 0 { 8 } else { rule("apart") };
    let apart = [of(budget, rule("apart")), of(both, by_two)];
    [
        Kind {
            name: "long runs",
            rules: "",
            held: long,
            case: |bytes| Case::equal(bytes, 2, 64 * KIB),
        },
        Kind {
            name: "short runs",
            rules: ", short",
            held: [of(budget, rule("short")), long[1]],
            case: |bytes| Case::equal(bytes, 3, 2 * KIB),
        },
        Kind {
            name: "equal elements",
            rules: ", keeps_equal, or else apart",
            held: if rule("keeps_equal") > 0 { long } else { apart },
            case: |bytes| Case::equal(bytes, 3, 4),
        },
        Kind {
            name: "runs apart",
            rules: ", apart, keeps_apart",
            held: apart,
            case: |bytes| Case::part(bytes, 3, 1000),
        },
        Kind {
            name: "transposes",
            rules: ", transposed",
            // Of what one thread brings, whatever the threads, or as what lies apart.
            held: match rule("transposed") {
                8 => apart,
                eighths => [of(budget, eighths); 2],
            },
            case: |bytes| Case::transposed(bytes, 4),
        },
    ]
}

fn past(
    memory: &mut Memory,
    kind: &Kind,
    name: &str,
    threads: usize,
    executor: Option<&dyn Executor>,
) {
    title(&format!("{name} thread{}", if threads > 1 { "s" } else { "" }));
    let ways: [Way; 2] = [("through".into(), THROUGH.into()), ("past".into(), PAST.into())];
    let sizes: &[usize] = if is_quick() {
        &[4, 16]
    } else {
        &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 24, 28, 32, 40, 48]
    };
    let mut found = Vec::new();
    for mib in sizes {
        let case = (kind.case)(mib * MIB);
        let speeds = by_rules(memory, &case, &ways, executor);
        row(&format!("{} {}", size(case.bytes()), case.name), &["through", "past"], &speeds);
        found.push((case.bytes(), speeds[0], speeds[1]));
    }
    let found = from_where(&found, 1.0)
        .map_or("nowhere".into(), |bytes| format!("past from {} on", size(bytes)));
    verdict(&format!("past from {} on", size(kind.held[threads - 1])), &found);
}
