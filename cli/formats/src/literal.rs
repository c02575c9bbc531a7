//! The literals of Python that NumPy writes into headers: strings, whole numbers, booleans, lists,
//! tuples, and one dictionary around them.
//!
//! Crates for Python's literals were tried first: theirs take a time that grows exponentially with
//! the brackets in brackets. This reader looks at every character once.

use crate::{invalid, Invalid, Result};

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Integer(i128),
    Boolean(bool),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    /// A name or number of another kind, as `None` or `1.5`.
    Other,
}

/// An entry of the dictionary: its value, and how that is spelt.
pub type Entry<'a> = (String, Value, &'a str);

/// Brackets in brackets: more than any type that NumPy makes, fewer than the stack holds.
const DEEPEST: usize = 64;

/// The entries of a dictionary that is all there is.
pub fn dictionary(text: &str) -> Result<Vec<Entry<'_>>> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let entries = reader.dictionary()?;
    reader.skip_space();
    if reader.at < text.len() {
        invalid!("not a Python dictionary: something follows it at byte {}", reader.at);
    }
    Ok(entries)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let taken = self.peek()?;
        self.at += taken.len_utf8();
        Some(taken)
    }

    fn skip_space(&mut self) {
        let space = [' ', '\t', '\n', '\r', '\x0c'];
        self.at = self.text.len() - self.rest().trim_start_matches(space).len();
    }

    /// Skips a character, if it is what comes next.
    fn found(&mut self, wanted: char) -> bool {
        self.skip_space();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn unexpected(&self, wanted: &str) -> Invalid {
        let found = self.peek().map_or("its end".into(), |found| format!("{found:?}"));
        Invalid(format!(
            "not a Python dictionary: {wanted} expected at byte {}, found {found}",
            self.at
        ))
    }

    fn dictionary(&mut self) -> Result<Vec<Entry<'a>>> {
        let mut entries = Vec::new();
        if !self.found('{') {
            return Err(self.unexpected("'{'"));
        }
        while !self.found('}') {
            self.skip_space();
            let Value::Text(key) = self.value()? else {
                invalid!("not a Python dictionary of names: a key is not a string");
            };
            if !self.found(':') {
                return Err(self.unexpected("':'"));
            }
            self.skip_space();
            let begin = self.at;
            let value = self.value()?;
            entries.push((key, value, &self.text[begin..self.at]));
            if !self.found(',') && !self.rest().starts_with('}') {
                return Err(self.unexpected("',' or '}'"));
            }
        }
        Ok(entries)
    }

    fn value(&mut self) -> Result<Value> {
        self.skip_space();
        match self.peek() {
            Some('[') => Ok(Value::List(self.items(']')?.0)),
            Some('(') => {
                let (mut items, comma) = self.items(')')?;
                // (1) is 1, (1,) is a tuple.
                match items.pop() {
                    Some(only) if items.is_empty() && !comma => Ok(only),
                    last => Ok(Value::Tuple(items.into_iter().chain(last).collect())),
                }
            }
            Some('\'' | '"') => self.string(),
            Some(letter) if is_word(letter) => {
                let (begin, word) = (self.at, self.word());
                let quoted = matches!(self.peek(), Some('\'' | '"'));
                match word {
                    "u" if quoted => self.string(), // as Python 2 wrote it
                    _ if quoted => {
                        self.at = begin;
                        Err(self.unexpected("a value"))
                    }
                    _ => Ok(named(word)),
                }
            }
            _ => Err(self.unexpected("a value")),
        }
    }

    /// What stands in brackets, and whether a comma follows the last of it.
    fn items(&mut self, closing: char) -> Result<(Vec<Value>, bool)> {
        if self.depth == DEEPEST {
            invalid!("more than {DEEPEST} nested brackets at byte {}", self.at);
        }
        self.depth += 1;
        self.take();
        let (mut items, mut comma) = (Vec::new(), false);
        while !self.found(closing) {
            if !items.is_empty() && !comma {
                return Err(self.unexpected(&format!("',' or '{closing}'")));
            }
            items.push(self.value()?);
            comma = self.found(',');
        }
        self.depth -= 1;
        Ok((items, comma))
    }

    fn word(&mut self) -> &'a str {
        let begin = self.at;
        while self.peek().is_some_and(is_word) {
            self.take();
        }
        &self.text[begin..self.at]
    }

    fn string(&mut self) -> Result<Value> {
        let quote = self.take();
        let mut text = String::new();
        loop {
            match self.take() {
                None | Some('\n') => return Err(self.unexpected("the end of a string")),
                Some('\\') => self.escape(&mut text)?,
                end if end == quote => return Ok(Value::Text(text)),
                Some(other) => text.push(other),
            }
        }
    }

    fn escape(&mut self, text: &mut String) -> Result<()> {
        let digits = match self.take() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            other => {
                let meant = match other {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some(same @ ('\\' | '\'' | '"')) => same,
                    _ => return Err(self.unexpected("an escape")),
                };
                text.push(meant);
                return Ok(());
            }
        };
        let code = self.rest().get(..digits).and_then(|code| u32::from_str_radix(code, 16).ok());
        let Some(code) = code else { return Err(self.unexpected("hexadecimal digits")) };
        self.at += digits;
        // Half of a surrogate pair is a character to Python, and none to Rust.
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        Ok(())
    }
}

fn is_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '+' | '-')
}

fn named(word: &str) -> Value {
    match word {
        "True" => Value::Boolean(true),
        "False" => Value::Boolean(false),
        // 4L is how Python 2 wrote 4.
        _ => word.trim_end_matches('L').parse().map_or(Value::Other, Value::Integer),
    }
}

#[cfg(test)]
mod tests {
    use super::{dictionary, Value, DEEPEST};

    fn value(text: &str) -> Value {
        let text = format!("{{'it': {text}}}");
        let entries = dictionary(&text).unwrap();
        let [(key, value, _)] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!(key, "it");
        value.clone()
    }

    #[test]
    fn values_of_every_kind() {
        let text = |text: &str| Value::Text(text.into());
        assert_eq!(value("'<f4'"), text("<f4"));
        assert_eq!(value(r#""it's""#), text("it's"));
        assert_eq!(value(r"'\'\\\x41\u00e9\U0001F600'"), text("'\\Aé😀"));
        assert_eq!(value("u'a'"), text("a"));
        assert_eq!(value("True"), Value::Boolean(true));
        assert_eq!(value("-12"), Value::Integer(-12));
        assert_eq!(value("12L"), Value::Integer(12));
        assert_eq!(value("(1)"), Value::Integer(1));
        assert_eq!(value("1.5"), Value::Other);
        assert_eq!(value("()"), Value::Tuple(vec![]));
        assert_eq!(value("( 1 , )"), Value::Tuple(vec![Value::Integer(1)]));
        assert_eq!(value("[(1, 2)]"), Value::List(vec![value("(1, 2,)")]));
    }

    #[test]
    fn a_value_is_kept_as_it_is_spelt() {
        let entries = dictionary("{ 'a':  [ 'é' ,] , 'b': 1 }").unwrap();
        assert_eq!((entries[0].2, entries[1].2), ("[ 'é' ,]", "1"));
    }

    #[test]
    fn what_is_no_dictionary() {
        for text in [
            "",
            "{",
            "[]",
            "{}}",
            "{'a'}",
            "{'a': }",
            "{'a': 1 'b': 2}",
            "{1: 2}",
            "{'a': 1, , }",
            "{'a': 'b}",
            "{'a': (1 2)}",
            "{'a': [1}",
            "{'a': r'b'}",
            r"{'a': '\x4'}",
            "{'a': [,]}",
        ] {
            let error = dictionary(text).unwrap_err().to_string();
            assert!(error.contains("not a Python dictionary"), "{text}: {error}");
        }
    }

    #[test]
    fn brackets_in_brackets_take_no_time() {
        // Sixteen of these took another reader half a minute.
        for (open, close) in [("{", "}"), ("[", "]"), ("(", ")"), ("{'a':", "}"), ("{(", ")}")] {
            for depth in [DEEPEST / 2, DEEPEST + 1, 100_000] {
                dictionary(&(open.repeat(depth) + &close.repeat(depth))).unwrap_err();
                let text = format!("{{'a': {}{}}}", open.repeat(depth), close.repeat(depth));
                assert_eq!(dictionary(&text).is_ok(), depth < DEEPEST && matches!(open, "[" | "("));
            }
        }
    }
}
