//! Valid calls with 4-bit and 2-bit elements: any layout, offset, lengths and tasks.
#![no_main]

use libfuzzer_sys::fuzz_target;
use libsplit_fuzz::{check, script::Script};

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script::read(bytes);
    script.wild = 0;
    script.op = 2 + script.op.rem_euclid(2); // VariadicSplit or OpenVINO's Split
    script.input.dtype = [20, 21, 22, 24, 25][script.input.dtype.rem_euclid(5) as usize];
    check::run(&script);
});
