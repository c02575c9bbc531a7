//! From which size on string instructions win. Those of the library are of the level VBMI: here they are asked
//! for by themselves.

use crate::case::{Case, Memory, LARGEST};
use crate::measure::{from_where, is_quick, row, size, speeds, title, verdict};
use libsplit::tune::{force, rule};

pub fn measure(memory: &mut Memory, is_wanted: &dyn Fn(&str) -> bool) {
    let name = "strings: one run";
    if !cfg!(target_arch = "x86_64") || !is_wanted(name) {
        return;
    }
    title(name);
    force(&[("strings", 0)]);
    let mut found = Vec::new();
    for bytes in (12..24).step_by(if is_quick() { 6 } else { 1 }).map(|power| 1 << power) {
        for off in [0, 16] {
            let case = Case::equal(bytes, 1, bytes);
            let [own, [from, to]] = memory.halves();
            let nothing = Case::equal(64, 1, 64);
            let (from, few_from) = from.split_at_mut(LARGEST / 2);
            let (to, few_to) = to.split_at_mut(LARGEST / 2);
            // Both have what a call costs.
            let speeds = case.with(own, off, |split| {
                nothing.with([few_from, few_to], 0, |call| {
                    speeds(bytes, 2, &|_| (), &mut |way| match way {
                        0 => split(None),
                        _ => {
                            call(None);
                            strings(&from[..bytes], &mut to[off..off + bytes]);
                        }
                    })
                })
            });
            row(&format!("{}, {off} off a line", size(bytes)), &["loop", "rep movsb"], &speeds);
            found.push((bytes, speeds[0], speeds[1]));
        }
    }
    let says = |bytes: usize| format!("from {} on", size(bytes));
    let ruled = Some(rule("strings")).filter(|bytes| *bytes > 0).map_or("never".into(), says);
    verdict(&ruled, &from_where(&found, 1.03).map_or("not up to the largest".into(), says));
}

#[cfg(target_arch = "x86_64")]
fn strings(from: &[u8], to: &mut [u8]) {
    assert_eq!(from.len(), to.len());
    // SAFETY: both are as long; the direction flag is clear, as calls have it.
    unsafe {
        std::arch::asm!("rep movsb", inout("rsi") from.as_ptr() => _, inout("rdi") to.as_mut_ptr() => _,
            inout("rcx") from.len() => _, options(nostack, preserves_flags));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn strings(_: &[u8], _: &mut [u8]) {}
