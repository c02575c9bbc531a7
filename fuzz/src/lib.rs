//! Calls libsplit with a fuzzer's bytes, and has a model that says what must come out.
//!
//! | file | what it holds |
//! |---|---|
//! | `script.rs` | the fuzzer's bytes as a call: every number in it, tame or wild |
//! | `call.rs` | the memory of a call: descriptors, arrays and buffers, each of its exact size |
//! | `rules.rs` | the model of the operators: parameters to lengths |
//! | `tensor.rs` | the model of tensors in memory: spans, strides, elements bit by bit |
//! | `check/` | the functions, each compared with the model |
//!
//! The model shares no code with the library. It counts in `i128` and moves single bits.

pub mod call;
pub mod check;
pub mod rules;
pub mod script;
pub mod tensor;
