//! A thread beside this one, which looks for work in a loop, or sleeps.

use libsplit::Executor;
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use std::thread::{spawn, JoinHandle};

type Work = &'static (dyn Fn() + Sync);

#[derive(Default)]
struct Shared {
    work: Mutex<Option<Work>>,
    /// Works that were given, and that were done; the last one is none.
    given: AtomicUsize,
    done: AtomicUsize,
}

pub struct Pool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    pub fn new(sleeps: bool) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let run = move || {
            for turn in 1.. {
                if sleeps {
                    while theirs.given.load(Acquire) < turn {
                        std::thread::park();
                    }
                }
                wait(&theirs.given, turn);
                let Some(work) = *theirs.work.lock().unwrap() else { return };
                work();
                theirs.done.store(turn, Release);
            }
        };
        Self { shared, thread: Some(spawn(run)) }
    }

    fn give(&self, work: Option<Work>) -> usize {
        *self.shared.work.lock().unwrap() = work;
        let turn = self.shared.given.fetch_add(1, AcqRel) + 1;
        self.thread.iter().for_each(|thread| thread.thread().unpark());
        turn
    }
}

impl Executor for Pool {
    fn max_tasks(&self) -> usize {
        2
    }

    fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
        let next = AtomicUsize::new(0);
        let work = || {
            while Some(next.fetch_add(1, AcqRel)).filter(|at| *at < count).map(task).is_some() {}
        };
        let borrowed: &(dyn Fn() + Sync) = &work;
        // SAFETY: the other thread is done with it before this returns.
        let turn =
            self.give(Some(unsafe { std::mem::transmute::<&(dyn Fn() + Sync), Work>(borrowed) }));
        work();
        wait(&self.shared.done, turn);
        Ok(())
    }
}

/// In a loop, which lets others run after a while: both threads may be on one core.
fn wait(count: &AtomicUsize, turn: usize) {
    let mut spins = 0;
    while count.load(Acquire) < turn {
        spins += 1;
        if spins % 1000 == 0 {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.give(None);
        self.thread.take().map(JoinHandle::join);
    }
}
