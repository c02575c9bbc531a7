//! Bands: neighbouring pieces of equal length, which one kernel moves together. Rows of eight bytes, split into 2, 2, 1
//! and 3, have three bands:
//!
//! ```text
//! row        |a a b b c d d d|         first band: runs of 2 bytes for two targets, 2 bytes `apart`
//!            |<band 0>|1|band 2|        a band's `offset` is where its first run begins in a row
//! ```

use super::cost::{self, Costs};
use super::program::{Group, Pattern, Program, ProgramSlot};
use super::rows::Rows;
use super::tile::MAX_COLUMNS;
use crate::parts::Part;
use core::iter::Peekable;
use core::ops::Range;
use core::ptr::null_mut;

/// The most bands that are set up at a time, with one program: all of this lives on the stack.
const MAX_BANDS: usize = 8;

/// Neighbouring pieces of equal length.
pub(super) struct Band {
    /// Bytes from the start of a row to the first piece, and from one piece to the next.
    pub offset: isize,
    pub apart: isize,
    /// Bytes of a run.
    pub run: usize,
    pub costs: Costs,
    targets: Range<usize>,
}

impl Band {
    const NONE: Self = {
        let costs = Costs { runs: 0, program: None, transpose: None };
        Self { offset: 0, apart: 0, run: 0, costs, targets: 0..0 }
    };

    /// Returns the number of pieces.
    pub(super) fn pieces(&self) -> usize {
        self.targets.len()
    }

    /// Returns whether a program that was made for another band makes this one, too.
    fn is_made_by(&self, program: &Program) -> bool {
        let is_alike = program.group().unit == self.run
            && (program.pattern.apart == self.apart || self.pieces() == 1);
        is_alike && program.pieces() <= self.pieces()
    }
}

/// The bands that are set up at a time, and the addresses of their pieces.
pub(super) struct Bands {
    list: [Band; MAX_BANDS],
    count: usize,
    targets: [*mut u8; MAX_COLUMNS],
}

impl Bands {
    #[inline(always)] // it is too large to return cheaply
    pub(super) fn new() -> Self {
        Self { list: [Band::NONE; MAX_BANDS], count: 0, targets: [null_mut(); MAX_COLUMNS] }
    }

    pub(super) fn all(&self) -> &[Band] {
        self.list.get(..self.count).unwrap_or_default()
    }

    /// Returns where a band's pieces go.
    pub(super) fn targets_of(&self, band: &Band) -> &[*mut u8] {
        debug_assert!(band.targets.end <= MAX_COLUMNS && !band.targets.is_empty());
        self.targets.get(band.targets.clone()).unwrap_or_default()
    }

    /// Sets up the next bands, as many as there is room for. Returns the program that moves those whose best method is
    /// one: the first band that is worth a program has it made, and it serves others that are alike.
    pub(super) fn set_up<'a>(
        &mut self,
        rows: &Rows,
        parts: &mut Peekable<impl Iterator<Item = Part>>,
        slot: &'a mut ProgramSlot,
    ) -> Option<&'a Program> {
        self.count = 0;
        let (mut found, mut has_program) = (0, false);
        for band in &mut self.list {
            let Some(first) = parts.peek().copied() else { break };
            let begin = found;
            let mut end = first.offset;
            while let Some(slot) = self.targets.get_mut(found) {
                let is_next = |part: &Part| part.len == first.len && part.offset == end;
                let Some(part) = parts.next_if(is_next) else { break };
                *slot = part.target;
                found += 1;
                end += part.len;
            }
            if found == begin {
                break;
            }
            let run = rows.run_bytes(first.len);
            *band = Band {
                offset: rows.offset_of(&first),
                apart: if first.len > 1 { run.cast_signed() } else { rows.apart },
                run,
                costs: Band::NONE.costs,
                targets: begin..found,
            };
            band.costs = costs_of(rows, band, slot, &mut has_program);
            self.count += 1;
        }
        slot.get().filter(|_| has_program)
    }
}

/// Returns what it costs to move a band. Unless an earlier band has a program, one is made for this band.
fn costs_of(rows: &Rows, band: &Band, slot: &mut ProgramSlot, has_program: &mut bool) -> Costs {
    let call = &rows.call;
    let pattern = Pattern {
        group: Group::single(band.run, rows.row().from),
        pieces: band.pieces(),
        apart: band.apart,
    };
    let of_tiles = || cost::of_transpose(call, band.run, band.pieces(), rows.row().extent);
    let transpose = if band.apart == band.run.cast_signed() { of_tiles() } else { None };
    let runs = cost::of_runs(call, band.run);
    let mut costs = Costs { runs, program: None, transpose };
    if !*has_program {
        let limit = costs.without_program();
        costs.program = cost::make_program(call, slot, pattern, rows.count, limit);
        *has_program = costs.program.is_some();
    }
    let Some(program) = slot.get().filter(|_| *has_program) else { return costs };
    // Rows must be enough for a turn.
    let is_made = band.is_made_by(program) && program.turn_groups() <= rows.row().extent;
    costs.program = is_made.then(|| cost::of_program(call, program));
    costs
}
