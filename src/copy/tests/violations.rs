//! Each assertion of the engine fails if what it says is violated.

use super::super::ahead::Ahead;
use super::super::call::{deliver_block, Call};
use super::super::groups::{Groups, Stretch};
use super::super::kernels::Kernels;
use super::super::level::kernels_of;
use super::super::machine::Machine;
use super::super::nest::{Axis, Nest};
use super::super::parallel::Executor;
use super::super::program::{Group, Pattern, ProgramSlot};
use super::super::rounds;
use super::super::runs::Runs;
use super::super::stage::Stages;
use super::super::stream::stream_runs;
use super::super::tile::{Block, MAX_COLUMNS};
use super::super::vector::copy_short;
use super::levels;
use super::transfer;
use crate::dtype::DType;
use crate::parts::{Part, Transfer};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null;

/// Checks that `violate` fails with a message that has these words.
fn fails(words: &str, violate: impl FnOnce()) {
    let result = catch_unwind(AssertUnwindSafe(violate));
    let payload = result.expect_err(words);
    let text = payload.downcast_ref::<String>().cloned();
    let text = text.or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string));
    let text = text.expect("a message");
    println!("{text}");
    assert!(text.contains(words), "{text}\nis not\n{words}");
}

fn kernels() -> &'static Kernels {
    kernels_of(*levels().last().unwrap())
}

#[test]
fn runs() {
    let input = [0u8; 256];
    let mut output = [0u8; 512];
    let one = Runs::one(input.as_ptr(), output.as_mut_ptr(), 8);
    fails("runs are skipped", || {
        one.skip(2);
    });
    // SAFETY: never reached, or within the arrays.
    unsafe {
        fails("more than two lines", || {
            let (source, target) = (input.as_ptr(), output.as_mut_ptr());
            copy_short::<u128>(source, target, 200);
        });
        fails("which may lie within a line", || {
            let target = output.as_mut_ptr().wrapping_add(output.as_ptr().align_offset(64) + 1);
            stream_runs::<u128>(&Runs { target, ..one }, null());
        });
        fails("only one step is streamed", || {
            let target = output.as_mut_ptr().wrapping_add(output.as_ptr().align_offset(64));
            let outer = Axis { extent: 2, from: 0, to: 0 };
            let runs = Runs { target, bytes: 64, outer, ..one };
            stream_runs::<u128>(&runs, null());
        });
    }
}

#[test]
fn tiles() {
    let input = [0u8; 4096];
    let mut output = vec![0u8; 8192];
    let targets = vec![output.as_mut_ptr(); MAX_COLUMNS + 1];
    let block = Block {
        source: input.as_ptr(),
        unit: 4,
        from: 16,
        rows: 4,
        targets: &targets[..4],
        at: 0,
        readable_end: input.as_ptr().wrapping_add(input.len()),
    };
    fails("rows are skipped", || {
        block.skip(5);
    });
    if levels().len() == 1 {
        return; // there are no tiles
    }
    // SAFETY: never reached.
    unsafe {
        fails("a block of 65 columns", || {
            deliver_block(kernels(), &Block { targets: &targets, ..block }, false);
        });
        fails("units of 4 bytes in tiles of 8", || {
            (kernels().tiles[3].transpose)(&block);
        });
        fails("columns are streamed that do not begin lines", || {
            let at = output.as_ptr().align_offset(64) + 4;
            (kernels().tiles[2].stream_lines)(&Block { at, ..block });
        });
    }
}

#[test]
fn stages() {
    let mut target = [0u8; 4096];
    let mut stages = Stages::new(kernels());
    // SAFETY: nothing is written but the target.
    unsafe {
        fails("6 stages", || {
            stages.divide(6);
        });
        let room = stages.divide(2);
        fails("stage 3 of 2", || {
            stages.room(3, target.as_mut_ptr());
        });
        fails("bytes without a place are pushed", || stages.push(0, 1, null()));
        stages.room(0, target.as_mut_ptr());
        fails("bytes in a stage of", || stages.push(0, room + 128, null()));
    }
}

#[test]
fn groups() {
    if levels().len() == 1 {
        return; // there are no programs
    }
    let kernels = kernels();
    let group = Group::single(1, 3);
    let pattern = Pattern { group, pieces: 3, apart: 1 };
    let mut slot = ProgramSlot::new(kernels.registers.bytes);
    let program = slot.make(pattern, &kernels.registers, false, usize::MAX).unwrap();
    let input = [0u8; 4096];
    let mut output = vec![0u8; 4096];
    let targets = vec![output.as_mut_ptr(); 3];
    let stretch = Stretch {
        source: input.as_ptr(),
        targets: &targets,
        at: 0,
        count: program.turn_groups(),
        outer: Axis::ONE,
        readable_end: input.as_ptr().wrapping_add(input.len()),
        ahead: Ahead::next(null()),
    };
    fails("2 targets for a program of 3 pieces", || {
        Groups { program, stretch: Stretch { targets: &targets[..2], ..stretch } }.check();
    });
    fails("that cannot make any again", || {
        Groups { program, stretch: Stretch { count: 1, ..stretch } }.check();
    });
    // SAFETY: never reached.
    unsafe {
        fails("turns are streamed that are not whole lines", || {
            let at = output.as_ptr().align_offset(64) + 1;
            (program.register.shuffle)(
                &Groups { program, stretch: Stretch { at, ..stretch } },
                true,
            );
        });
        fails("dwords are not streamed", || {
            (kernels.registers.dwords.shuffle)(&Groups { program, stretch }, true);
        });
        let call = a_call(&output);
        fails("2 targets for 3 pieces", || {
            let stretch = Stretch { targets: &targets[..2], ..stretch };
            call.deliver_groups(&Groups { program, stretch }, &mut Stages::new(kernels));
        });
    }
}

fn a_call(memory: &[u8]) -> Call {
    let shape = [4, 4];
    let of = Transfer { bytes: 16, ..transfer(DType::Uint8, &shape, 1, memory.as_ptr()) };
    Call::new(Machine::here(), &of, None)
}

#[test]
fn transfers() {
    let memory = [0u8; 64];
    let shape = [4, 4];
    let empty = transfer(DType::Uint8, &shape, 1, memory.as_ptr());
    fails("a call that copies nothing", || {
        Call::new(Machine::here(), &empty, None);
    });
    // SAFETY: there are no parts.
    unsafe {
        fails("range.end <= transfer.bytes", || {
            let mut ranges = std::iter::once(0..17);
            rounds::move_ranges(&empty, &a_call(&memory), &mut ranges);
        });
    }
    let part = Part { index: 0, offset: 0, len: 1, target: std::ptr::null_mut() };
    let mut nest = Nest::EMPTY;
    nest.set_up(&empty, &part, None);
    fails("1..9 of 4", || nest.restrict(0, 1..9));
    fails("axis 7 of 1", || nest.restrict(7, 0..1));
    fails("no room for another axis", || (0..65).for_each(|_| nest.push(Axis::ONE)));
    let _: Option<&dyn Executor> = None;
}

#[test]
fn bits() {
    use super::super::bit_runs::{BitRuns, Writer};
    use super::super::bit_tile::Tile;
    let memory = [0u8; 64];
    let mut output = [0u8; 64];
    let target = output.as_mut_ptr();
    let source = memory.as_ptr();
    let readable_end = source.wrapping_add(memory.len());
    let runs = BitRuns { source, readable_end, begin: 0, step: 8, run: 4, size: 4 };
    let some = |bytes: usize| Writer::new(target, target.wrapping_add(bytes));
    // SAFETY: never reached, or within the arrays.
    unsafe {
        fails("1 bytes are written where 0 have room", || runs.pack(&mut some(1), 0..16));
        fails("bits are held that have no room", || {
            let mut out = some(0);
            runs.pack(&mut out, 0..4);
            out.finish();
        });
        fails("a run that ends behind what may be read", || {
            BitRuns { readable_end: source, ..runs }.pack(&mut some(1), 0..4);
        });
        fails("runs are single elements", || {
            BitRuns { run: 6, size: 6, ..runs }.pack(&mut some(64), 0..66);
        });
        fails("single elements that end behind", || runs.pack(&mut some(64), 4 * 60..4 * 76));
        fails("rows of 516 bits", || Tile::new().fill(&runs, 0..129, 0..1));
    }
}
