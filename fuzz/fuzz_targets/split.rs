//! Any call, valid or hostile: descriptors and parameters, through all four functions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use libsplit_fuzz::{check, script::Script};

fuzz_target!(|bytes: &[u8]| check::run(&Script::read(bytes)));
