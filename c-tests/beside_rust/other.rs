//! Some other library in Rust: with threads, a heap, and panics that it catches.

/// 0 + 1 + … + (count - 1), on another thread, after a panic.
#[unsafe(no_mangle)]
pub extern "C" fn other_sum(count: i64) -> i64 {
    std::panic::set_hook(Box::new(|_| ()));
    let caught = std::panic::catch_unwind(|| assert!(count < 0, "caught below"));
    let numbers: Vec<i64> = (0..count).collect();
    let sum = std::thread::spawn(move || numbers.iter().sum()).join().unwrap_or(-1);
    if caught.is_err() {
        sum
    } else {
        -2
    }
}
