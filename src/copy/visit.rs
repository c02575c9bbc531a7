//! What `dyn FnMut` is for, without the code of each for `FnOnce`, which nobody calls.

/// Takes what it is given, and answers.
pub(super) trait Visit<A, R = ()> {
    fn visit(&mut self, given: A) -> R;
}

impl<A, R, F: FnMut(A) -> R> Visit<A, R> for F {
    fn visit(&mut self, given: A) -> R {
        self(given)
    }
}
