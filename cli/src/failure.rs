//! Errors, by their exit codes.

use std::fmt;

/// The kinds of errors that have their own exit code; that of all others is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command line is wrong, whatever the input contains.
    Usage = 2,
    /// An input is not what it should be.
    Invalid = 3,
    /// The operator's rules or the plan refuse the split.
    Refused = 4,
    /// An output already exists.
    Exists = 5,
    /// A signal to stop.
    Stopped = 130,
}

/// An error of a kind.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// An error of this kind.
pub fn failure(kind: Kind, message: impl Into<String>) -> anyhow::Error {
    Failure { kind, message: message.into() }.into()
}

/// Gives up because the command line is wrong.
macro_rules! usage {
    ($($message:tt)*) => {
        return Err($crate::failure::failure($crate::failure::Kind::Usage, format!($($message)*)))
    };
}
pub(crate) use usage;

/// Gives up because the input is not what it should be.
macro_rules! invalid {
    ($($message:tt)*) => {
        return Err($crate::failure::failure($crate::failure::Kind::Invalid, format!($($message)*)))
    };
}
pub(crate) use invalid;

/// Gives up because the rules do not allow it.
macro_rules! refuse {
    ($($message:tt)*) => {
        return Err($crate::failure::failure($crate::failure::Kind::Refused, format!($($message)*)))
    };
}
pub(crate) use refuse;

/// The exit code of an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let code = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let is_invalid =
            cause.is::<libsplit_formats::Invalid>() || io == Some(std::io::ErrorKind::InvalidData); // text that is not UTF-8
        let kind = cause.downcast_ref::<Failure>().map(|failure| failure.kind);
        kind.or(is_invalid.then_some(Kind::Invalid)).map(|kind| kind as u8)
    };
    error.chain().find_map(code).unwrap_or(1)
}
