//! The feature `rayon`: runs copies on rayon's threads.

use crate::copy::Executor;

/// An executor that uses the current rayon pool: the global one, or that of `ThreadPool::install`.
///
/// ```
/// use libsplit::{Operator, Rayon, Split, View};
///
/// let data: Vec<f32> = vec![0.5; 1 << 20];
/// let halves = Split::new(Operator::OpenVinoSplit1)
///     .axis(1)
///     .num_outputs(2)
///     .executor(&Rayon)
///     .to_vecs(&View::packed(&data, &[1 << 10, 1 << 10])?)?;
/// assert_eq!(halves[1], data[1 << 19..]);
/// # Ok::<(), libsplit::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Rayon;

impl Executor for Rayon {
    fn max_tasks(&self) -> usize {
        rayon::current_num_threads()
    }

    fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
        rayon::scope(|scope| {
            (0..count).for_each(|index| scope.spawn(move |_| task(index)));
        });
        Ok(())
    }
}
