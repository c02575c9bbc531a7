//! Shuffle programs: each register of the output is a few picks from registers of the input, merged. A program is made
//! from nothing but where each byte comes from, so that one kernel (`shuffle.rs`) takes short runs apart and puts them
//! together, picks every second unit, repeats units, and turns rows round.

use super::vector::LINE_BYTES;
use core::mem::MaybeUninit;

/// The most picks of a program, and of one of its registers.
const MAX_STEPS: usize = 30;
pub(super) const MAX_STEPS_OF_REGISTER: usize = 8;
/// The most registers of a turn.
pub(super) const MAX_REGISTERS: usize = 16;

/// Units that follow each other in the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    /// Bytes of a unit, which lie together in the input too.
    pub unit: usize,
    /// Units of a group, and bytes of input from one to the next.
    pub units: usize,
    pub apart: isize,
    /// Bytes of input from a group to the next.
    pub from: isize,
}

impl Group {
    pub(super) fn bytes(&self) -> usize {
        self.unit * self.units
    }

    /// Bytes of input from the first one of a group to the end of the highest.
    pub(super) fn reach(&self) -> usize {
        self.apart.max(0).unsigned_abs() * (self.units - 1) + self.unit
    }

    /// Returns how far from the first byte of the input a byte of the output comes from.
    fn offset(&self, byte: usize) -> isize {
        let (group, within) = (byte / self.bytes().max(1), byte % self.bytes().max(1));
        let (unit, within) = (within / self.unit.max(1), within % self.unit.max(1));
        let (groups, units) = (group.cast_signed(), unit.cast_signed());
        let begin = groups.wrapping_mul(self.from).wrapping_add(units.wrapping_mul(self.apart));
        begin.wrapping_add(within.cast_signed())
    }
}

/// What the registers of a level are like.
#[derive(Clone, Copy)]
pub(super) struct Register {
    pub bytes: usize,
    /// Bytes among which a pick finds its own; 0 if there are no picks.
    pub window: usize,
}

/// One pick: the number of each byte from where its window begins, which bytes of the output it gives, and where the
/// windows begin.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Step {
    pub index: [u8; LINE_BYTES],
    pub mask: u64,
    pub offsets: [isize; 2],
}

impl Step {
    /// Picks nothing: a number of 0x80 or more gives a 0, by levels that merge without the mask.
    const NONE: Self = Self { index: [0x80; LINE_BYTES], mask: 0, offsets: [0; 2] };
}

/// The picks of a turn: of as many registers as whole groups fill well.
pub(super) struct Program {
    pub group: Group,
    /// Groups of a turn, and its registers.
    pub groups: usize,
    pub registers: usize,
    /// Picks of each register.
    pub counts: [usize; MAX_REGISTERS],
    pub steps: [MaybeUninit<Step>; MAX_STEPS],
    /// The end of the highest window, from where a turn begins.
    pub high: isize,
    /// Steps that have been written.
    written: usize,
    register_bytes: usize,
}

impl Program {
    pub(super) const NONE: Self = Self {
        group: Group { unit: 0, units: 0, apart: 0, from: 0 },
        groups: 0,
        registers: 0,
        counts: [0; MAX_REGISTERS],
        steps: [const { MaybeUninit::uninit() }; MAX_STEPS],
        high: 0,
        written: 0,
        register_bytes: 0,
    };

    /// Bytes of output that a turn makes.
    pub(super) fn bytes(&self) -> usize {
        self.groups * self.group.bytes()
    }

    /// Bytes of input from a turn to the next.
    pub(super) fn from(&self) -> isize {
        self.group.from.wrapping_mul(self.groups.cast_signed())
    }

    /// Whether a turn makes whole lines.
    pub(super) fn makes_lines(&self) -> bool {
        self.groups > 0 && self.bytes() == self.registers * self.register_bytes && self.bytes().is_multiple_of(LINE_BYTES)
    }

    pub(super) fn steps(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Makes it the program of such groups, and returns whether there is one. Where targets can be aligned, turns of
    /// whole lines are preferred.
    #[inline(never)]
    pub(super) fn make(&mut self, group: Group, register: Register, by_lines: bool) -> bool {
        self.groups = 0;
        if register.window == 0 || group.bytes() == 0 {
            return false;
        }
        if by_lines && self.make_lines(group, register) {
            return true;
        }
        let (groups, registers) = best_turn(&group, register);
        let one = register.bytes / group.bytes();
        (groups > 0 && self.fill(group, register, (groups, registers), false))
            || (registers > 1 && one > 0 && self.fill(group, register, (one, 1), false))
    }

    /// The same, of as many groups as fill whole lines. Windows that begin where lines do are better if they are no more.
    fn make_lines(&mut self, group: Group, register: Register) -> bool {
        let (line, bytes) = (register.bytes.max(LINE_BYTES), group.bytes());
        let Some(lines) = (1..=MAX_REGISTERS).find(|lines| (lines * line).is_multiple_of(bytes)) else {
            return false;
        };
        let turn = (lines * line / bytes, lines * line / register.bytes.max(1));
        if turn.1 > MAX_REGISTERS {
            return false;
        }
        let on_lines = self.fill(group, register, turn, true).then(|| self.steps());
        self.fill(group, register, turn, false)
            && (on_lines.is_none_or(|steps| steps > self.steps()) || self.fill(group, register, turn, true))
    }

    /// The same, of so many groups in so many registers.
    fn fill(&mut self, group: Group, register: Register, (groups, registers): (usize, usize), on_lines: bool) -> bool {
        let bytes = groups * group.bytes();
        (self.group, self.groups, self.registers) = (group, groups, registers);
        (self.register_bytes, self.high, self.counts) = (register.bytes, 0, [0; MAX_REGISTERS]);
        self.written = 0;
        let lanes = register.bytes / register.window.max(1);
        for number in 0..registers {
            let (first, mut count) = (self.written, 0);
            for lane in 0..lanes {
                let begin = number * register.bytes + lane * register.window;
                let lane = Lane {
                    first,
                    number: lane,
                    window: register.window,
                    begin,
                    len: bytes.saturating_sub(begin).min(register.window),
                };
                let Some(of_lane) = self.fill_lane(&lane, on_lines) else {
                    self.groups = 0;
                    return false;
                };
                count = count.max(of_lane);
            }
            if let Some(slot) = self.counts.get_mut(number) {
                *slot = count;
            }
        }
        true
    }

    /// Fills a lane of a register from as few windows as will do, of which each begins at the lowest byte that is still
    /// missing. Returns how many these are.
    fn fill_lane(&mut self, lane: &Lane, on_lines: bool) -> Option<usize> {
        let &Lane { first, number, window, begin, len } = lane;
        let group = self.group;
        let mut missing = if len == LINE_BYTES { u64::MAX } else { (1 << len) - 1 };
        let mut count = 0;
        while missing != 0 {
            let left = missing;
            let bytes = (0..len).filter(|byte| left >> byte & 1 == 1);
            let lowest = bytes.clone().map(|byte| group.offset(begin + byte)).min()?;
            let from = if on_lines && lowest > 0 { lowest & !(window.cast_signed() - 1) } else { lowest };
            let step = self.step(first, count)?;
            // A lane further on that needs no window of its own reads what this one does.
            step.offsets.iter_mut().skip(number).for_each(|offset| *offset = from);
            for byte in bytes {
                let ahead = group.offset(begin + byte).wrapping_sub(from);
                if ahead < window.cast_signed() {
                    missing &= !(1 << byte);
                    let at = number * window + byte;
                    if let Some(index) = step.index.get_mut(at) {
                        *index = ahead.to_le_bytes()[0];
                    }
                    step.mask |= 1 << at;
                }
            }
            self.high = self.high.max(from.wrapping_add(window.cast_signed()));
            count += 1;
        }
        Some(count)
    }

    /// A step of the register whose first one is given, new if it has not been written.
    fn step(&mut self, first: usize, count: usize) -> Option<&mut Step> {
        let slot = self.steps.get_mut(first + count).filter(|_| count < MAX_STEPS_OF_REGISTER)?;
        if first + count == self.written {
            slot.write(Step::NONE);
            self.written += 1;
        }
        // SAFETY: steps are written in order, this one by now.
        Some(unsafe { slot.assume_init_mut() })
    }
}

/// A lane of a register: the first step of the register, which lane it is, and which bytes of the output it holds.
struct Lane {
    first: usize,
    number: usize,
    window: usize,
    begin: usize,
    len: usize,
}

/// Returns how many groups a turn takes, in how many registers: the fewest that are filled nearly as well as any.
fn best_turn(group: &Group, register: Register) -> (usize, usize) {
    let mut best = (0, 1);
    for registers in 1..=4 {
        let groups = registers * register.bytes / group.bytes().max(1);
        // Another register must be worth a tenth.
        if groups * best.1 * 10 > best.0 * registers * 11 {
            best = (groups, registers);
        }
    }
    best
}
