//! Elements of one width, dealt out to as many targets.

use super::kernel::lines::{Lines, LINE, STAGE};
use super::kernel::{Deal, Kernels, Past, DEALS};
use super::tuning::Tuning;

/// Deals rows out, an element of `width` bytes of each to each of `len` targets, past the caches or
/// not.
///
/// # Safety
/// As [`Kernels::deal`].
pub(super) unsafe fn copy(tuning: Tuning, mut deal: Deal, len: usize, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match tuning.past {
            Some(past) => {
                if let (true, Some(deal_lines)) =
                    (deal.is_alike(len, width), tuning.kernels.deal_lines)
                {
                    deal.skip(deal_lines(deal, len, width, true), width);
                }
                staged(tuning.kernels, past, deal, len, width);
            }
            None => through(tuning.kernels, deal, len, width),
        }
    }
}

/// Deals out to as many targets at a time as there is a loop for.
///
/// # Safety
/// As [`Kernels::deal`].
unsafe fn through(kernels: &Kernels, mut deal: Deal, len: usize, width: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(deal_lines) = kernels.deal_lines {
            deal.skip(deal_lines(deal, len, width, false), width);
        }
        let mut left = len;
        while left > 0 {
            let now = DEALS.into_iter().find(|len| *len <= left).unwrap_or(1);
            kernels.deal(deal, width, now);
            deal.targets.rotate_left(now);
            deal.source = deal.source.wrapping_add(now * width);
            left -= now;
        }
    }
}

/// Deals out past the caches, by way of a stage for each target.
///
/// # Safety
/// As [`Kernels::deal`].
unsafe fn staged(kernels: &Kernels, past: &Past, mut deal: Deal, len: usize, width: usize) {
    let mut lines = deal.targets.map(Lines::new);
    let lines = lines.get_mut(..len).unwrap_or_default();
    let mut left = deal.count;
    while left > 0 {
        deal.count = left.min(STAGE / width);
        for (slot, lines) in deal.targets.iter_mut().zip(lines.iter_mut()) {
            *slot = lines.room();
        }
        // SAFETY: the caller's promise; a stage has room for STAGE bytes.
        unsafe {
            through(kernels, deal, len, width);
            for lines in lines.iter_mut() {
                lines.filled(past, deal.count * width);
            }
        }
        deal.source = deal.source.wrapping_add(deal.count * deal.step);
        left -= deal.count;
    }
    for lines in lines {
        // SAFETY: the caller's promise.
        unsafe { lines.finish() };
    }
}

impl Deal {
    /// Whether all targets lie as many whole elements from a line.
    pub(super) fn is_alike(&self, len: usize, width: usize) -> bool {
        let mut begins = self.targets.iter().take(len).map(|target| *target as usize % LINE);
        let first = begins.next().unwrap_or(0);
        first % width == 0 && begins.all(|begin| begin == first)
    }

    /// Leaves the first rows out.
    pub(super) fn skip(&mut self, rows: usize, width: usize) {
        self.source = self.source.wrapping_add(rows * self.step);
        self.targets = self.targets.map(|target| target.wrapping_add(rows * width));
        self.count -= rows;
    }
}
