//! Describes what a copy will do, as text for people.

use super::call::Call;
use super::kernels::Level;
use super::machine::Machine;
use super::nest::Nest;
use super::parallel::{self, MAX_TASKS};
use super::piece::Choice;
use super::program::ProgramSlot;
use super::rows::Rows;
use super::{small, work_of};
use crate::parts::Transfer;
use crate::text::Text;
use core::ffi::CStr;

/// Returns which loops run on this CPU.
pub(crate) fn cpu_string() -> &'static CStr {
    match Machine::kernels().level {
        Level::Portable if cfg!(target_arch = "x86_64") => c"x86-64 portable",
        Level::Portable => c"portable",
        Level::Neon => c"AArch64 NEON",
        Level::Avx2 => c"x86-64 AVX2",
        Level::Avx512 => c"x86-64 AVX-512",
    }
}

/// Writes the normal form, the method and what the others would cost, the level, and whether outputs are streamed. If
/// pieces differ, the first stands for all. Addresses do not matter, so pieces whose outputs continue each other are not
/// joined here.
pub(crate) fn describe(transfer: &Transfer<'_>, text: &mut Text<'_>) {
    describe_on(Machine::here(), transfer, text);
}

/// Does what [`describe`] does, for a machine that may differ from this one.
pub(super) fn describe_on(machine: Machine, transfer: &Transfer<'_>, text: &mut Text<'_>) {
    if transfer.bytes == 0 {
        text.text("\nnothing to copy");
        return;
    }
    if small::is_small(transfer) {
        text.text("\nsmall: each piece's runs one after the other, ").text(machine.kernels.name);
        return;
    }
    let call = Call::new(machine, transfer, None);
    let mut slot = ProgramSlot::new(machine.kernels.registers.bytes);
    let rows = Rows::of(transfer, call);
    if let Some(rows) = &rows {
        rows.describe(transfer, &mut slot, text);
    } else if transfer.geometry.dtype.is_sub_byte() {
        text.text("\nbits: runs of sub-byte elements are shifted into place");
    } else if let Some(part) = transfer.parts.iter().next() {
        let mut nest = Nest::EMPTY;
        nest.set_up(transfer, &part, None);
        text.text("\npiece: unit ").number(nest.unit).text(" bytes, axes");
        for axis in nest.axes() {
            text.text(" ").number(axis.extent).text(" (").number(axis.from as i64);
            text.text(" to ").number(axis.to as i64).text(")");
        }
        Choice::new(&call, &nest, &mut slot).costs.describe(text);
    }
    text.text("\n").text(machine.kernels.name).text(", machine ").text(machine.model.name);
    text.text(if call.streams { ", past the caches" } else { ", through the caches" });
    text.text(" (past them above ")
        .number(machine.threshold(machine.cached_bytes))
        .text(" bytes read and written), up to ");
    let has_threads = parallel::are_of_use(&machine, transfer.bytes);
    let work = work_of(transfer, rows.as_ref(), has_threads);
    text.number(work.tasks(&machine, MAX_TASKS)).text(" tasks of use");
}
