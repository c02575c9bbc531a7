//! Describes what a copy will do, as text for people.

use super::call::Call;
use super::cost::{Costs, Method};
use super::level::Level;
use super::machine::{Machine, CYCLE};
use super::nest::Nest;
use super::piece::Choice;
use super::program::Program;
use super::rows::Rows;
use super::{joined, parallel, small};
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

/// Writes the normal form, the method and what the others would cost, the level, and whether the copy goes past the
/// caches. If pieces differ, the first stands for all. Addresses do not matter.
pub(crate) fn describe(transfer: &Transfer<'_>, text: &mut Text<'_>) {
    let machine = Machine::here();
    if transfer.bytes == 0 {
        text.text("\nnothing to copy");
        return;
    }
    if small::is_small(transfer) {
        text.text("\nsmall: each piece's runs one after the other, ").text(machine.kernels.name);
        return;
    }
    let call = Call::new(machine, transfer, None);
    let mut program = Program::new();
    let mut rows = Rows::new(call);
    if rows.make(transfer).is_some() {
        rows.describe(transfer, text);
    } else if transfer.geometry.dtype.is_sub_byte() {
        text.text("\nbits: runs of elements that share bytes are shifted into place");
    } else if let Some(piece) = joined(transfer).next() {
        let mut nest = Nest::NONE;
        nest.make(transfer, &piece.part, piece.step);
        text.text("\npiece: unit ").number(nest.unit).text(" bytes, axes");
        for axis in nest.axes() {
            text.text(" ").number(axis.extent).text(" (").number(axis.from as i64);
            text.text(" to ").number(axis.to as i64).text(")");
        }
        costs(&Choice::new(&call, &nest, &mut program).costs, text);
    }
    text.text("\n").text(machine.kernels.name).text(", machine ").text(machine.model.name);
    text.text(if call.past { ", past the caches" } else { ", through the caches" });
    text.text(" (past them above ")
        .number(machine.cached_bytes)
        .text(" bytes read and written), up to ");
    text.number(parallel::most_tasks(transfer.bytes)).text(" tasks of use");
}

/// Writes the chosen method and the costs of all, in cycles for 64 bytes of output.
pub(super) fn costs(costs: &Costs, text: &mut Text<'_>) {
    let name = |method| match method {
        Method::Runs => "runs",
        Method::Shuffle => "shuffle",
        Method::Transpose => "transpose",
    };
    text.text(": ").text(name(costs.best())).text(" (cycles a line:");
    let all = [
        (Method::Runs, Some(costs.runs)),
        (Method::Shuffle, costs.shuffle),
        (Method::Transpose, costs.transpose),
    ];
    for (method, cost) in all {
        if let Some(cost) = cost {
            text.text(" ").text(name(method)).text(" ").number(cost / CYCLE);
        }
    }
    text.text(")");
}
