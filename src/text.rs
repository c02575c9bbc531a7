//! Text for people, written to memory of the caller, without a heap and without anything that can panic.

use core::fmt::{self, Write};

/// A buffer that takes as much of a text as fits, and counts all of it, as snprintf does.
pub(crate) struct Text<'a> {
    room: &'a mut [u8],
    /// Bytes of the whole text so far, whether there was room for them or not.
    len: usize,
}

impl<'a> Text<'a> {
    /// Begins a text. The last byte of the room is kept for the NUL that [`Text::end`] writes.
    pub(crate) fn new(room: &'a mut [u8]) -> Self {
        Self { room, len: 0 }
    }

    /// Appends a text; returns `self`, so that calls can be chained.
    #[inline(never)]
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        let last = self.room.len().saturating_sub(1);
        let room = self.room.get_mut(self.len..last).unwrap_or_default();
        room.iter_mut().zip(text.bytes()).for_each(|(slot, byte)| *slot = byte);
        self.len = self.len.saturating_add(text.len());
        self
    }

    /// Appends a number in decimal, with a sign if it is negative.
    pub(crate) fn number(&mut self, number: impl fmt::Display) -> &mut Self {
        // A text takes all that is written to it.
        let _ = write!(self, "{number}");
        self
    }

    /// Appends numbers in brackets: `[2, 3]`.
    pub(crate) fn list(&mut self, numbers: impl IntoIterator<Item = i64>) -> &mut Self {
        self.text("[");
        for (at, number) in numbers.into_iter().enumerate() {
            if at > 0 {
                self.text(", ");
            }
            self.number(number);
        }
        self.text("]")
    }

    /// Ends the text with a NUL, if there is any room; returns its length without the NUL.
    pub(crate) fn end(self) -> usize {
        let last = self.room.len().saturating_sub(1).min(self.len);
        if let Some(slot) = self.room.get_mut(last) {
            *slot = 0;
        }
        self.len
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    fn write(text: &mut Text<'_>) {
        text.text("f32 ").list([2, -3]).text(" ").number(i64::MIN).text(" ").number(0);
    }

    const WHOLE: &str = "f32 [2, -3] -9223372036854775808 0";

    #[test]
    fn what_fits_is_written_and_all_is_counted() {
        for size in 0..WHOLE.len() + 3 {
            let mut room = vec![b'#'; size];
            let mut text = Text::new(&mut room);
            write(&mut text);
            assert_eq!(text.end(), WHOLE.len());
            if size > 0 {
                let kept = WHOLE.len().min(size - 1);
                assert_eq!(&room[..kept], &WHOLE.as_bytes()[..kept]);
                assert_eq!(room[kept], 0);
                assert!(room[kept + 1..].iter().all(|byte| *byte == b'#'));
            }
        }
    }
}
