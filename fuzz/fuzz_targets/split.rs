//! Any call: descriptors and parameters, right or hostile, through all four functions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use libsplit_fuzz::{check, script::Script};

fuzz_target!(|bytes: &[u8]| check::run(&Script::read(bytes)));
