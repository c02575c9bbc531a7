//! From which size on two threads win: halves of a split, by one thread and by two that look for work in a loop,
//! or sleep.

use crate::case::{Case, Memory, KIB};
use crate::measure::{from_where, is_quick, row, size, speeds, title, verdict};
use crate::pool::Pool;
use libsplit::{tune::force, Executor};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Mutex;

pub fn measure(memory: &mut Memory, is_wanted: &dyn Fn(&str) -> bool) {
    let name = "two threads";
    if !is_wanted(name) {
        return;
    }
    title(name);
    force(&[]);
    let case = |bytes| Case::equal(bytes, 2, 4 * KIB);
    let sizes: Vec<usize> =
        (16..23).step_by(if is_quick() { 4 } else { 1 }).map(|power| 1 << power).collect();
    let pools = [Pool::new(false), Pool::new(true)];
    let mut found = [Vec::new(), Vec::new()];
    for bytes in &sizes {
        let [first, second] = memory.halves();
        let half = case(bytes / 2);
        let speeds = half.with(first, 0, |first| {
            half.with(second, 0, |second| {
                let (first, second) = (Mutex::new(first), Mutex::new(second));
                let copy = |at: usize| match at {
                    0 => first.lock().unwrap()(None),
                    _ => second.lock().unwrap()(None),
                };
                speeds(2 * half.bytes(), 3, &|_| (), &mut |way| match way {
                    0 => (0..2).for_each(copy),
                    way => pools[way - 1].parallel_for(2, &copy).unwrap(),
                })
            })
        });
        row(&size(*bytes), &["one", "two in a loop", "two that sleep"], &speeds);
        for (found, two) in found.iter_mut().zip(&speeds[1..]) {
            found.push((*bytes, speeds[0], *two));
        }
    }
    let sizes = (1..64).map(|step| step * 64 * KIB);
    let asked = sizes.into_iter().find(|bytes| asks(memory, &case(*bytes)));
    let found = found.map(|found| {
        from_where(&found, 1.05)
            .map_or("nowhere".into(), |bytes| format!("from {} on", size(bytes)))
    });
    verdict(
        &format!("from {} on, of any threads", asked.map_or("nowhere".into(), size)),
        &format!("by those in a loop {}, by those that sleep {}", found[0], found[1]),
    );
}

/// Whether the library asks for threads.
fn asks(memory: &mut Memory, case: &Case) -> bool {
    struct Asked(AtomicBool);
    impl Executor for Asked {
        fn max_tasks(&self) -> usize {
            2
        }
        fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
            self.0.store(true, Relaxed);
            (0..count).for_each(task);
            Ok(())
        }
    }
    let executor = Asked(AtomicBool::new(false));
    case.with(memory.parts(), 0, |split| split(Some(&executor)));
    executor.0.into_inner()
}
