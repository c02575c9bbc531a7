//! Numbers of a plan: given, or looked up by their names.

use super::text::{Block, BlockSize, Part, Plan, Values};
use crate::config::{Config, Number};
use crate::failure::{invalid, refuse};
use anyhow::{Context, Result};
use serde::Deserialize;

/// A number, or the name of one.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Given {
    Number(i64),
    Text(String),
}

/// The names in `{a|b}`.
pub fn name_in(text: &str) -> Option<&str> {
    text.trim().strip_prefix('{')?.strip_suffix('}')
}

/// Where numbers are looked up by name.
pub struct Numbers<'a> {
    pub given: &'a Values,
    pub plan: &'a Plan,
    pub config: &'a Config,
    pub tp: usize,
    /// Those that have been looked up.
    pub used: Values,
}

impl Numbers<'_> {
    /// A number of at least 1.
    pub fn count(&mut self, given: &Given) -> Result<u64> {
        let (number, text) = match given {
            Given::Number(number) => (*number, ""),
            Given::Text(text) => (self.text(text)?, text.as_str()),
        };
        match u64::try_from(number) {
            Ok(count @ 1..) => Ok(count),
            _ => refuse!("{text} is {number} where at least 1 is needed: correct it, or give another with --set"),
        }
    }

    /// A number, or none if a name that ends in '?' is not known.
    pub fn optional(&mut self, given: &Given) -> Result<Option<u64>> {
        let Given::Text(text) = given else { return self.count(given).map(Some) };
        let Some(name) = name_in(text).and_then(|name| name.strip_suffix('?')) else {
            return self.count(given).map(Some);
        };
        if self.find(name)?.is_none() {
            return Ok(None);
        }
        self.count(&Given::Text(format!("{{{name}}}"))).map(Some)
    }

    /// The elements of an axis that share a scale.
    pub fn block_size(&mut self, given: &Given) -> Result<BlockSize> {
        let number = match given {
            Given::Number(number) => *number,
            Given::Text(text) => match text.strip_prefix("1/") {
                Some(count) => {
                    return Ok(BlockSize::Inverse(self.count(&Given::Text(count.into()))?))
                }
                None => self.text(text)?,
            },
        };
        if number == -1 {
            return Ok(BlockSize::All);
        }
        let count = match given {
            Given::Number(_) => self.count(given)?,
            Given::Text(text) => self.count(&Given::Text(text.clone()))?,
        };
        Ok(BlockSize::Elements(count))
    }

    /// `{name}` of a list, or `{name|tensor}`, which is a single scale where the name is unknown.
    pub fn block(&mut self, text: &str) -> Result<Block> {
        let names = name_in(text).unwrap_or(text);
        let (name, is_tensor) = match names.strip_suffix("|tensor") {
            Some(name) => (name, true),
            None => (names, false),
        };
        if is_tensor && self.find(name)?.is_none() {
            return Ok(Block::Tensor(Some(name.into())));
        }
        let Number::List(list) = self.look_up(name, "A,B")? else {
            invalid!("{text} is not a list of numbers of elements: give it as --set {name}=A,B");
        };
        let sizes = list.iter().map(|size| self.block_size(&Given::Number(*size)));
        Ok(Block::Sizes(sizes.collect::<Result<_>>().with_context(|| text.to_owned())?))
    }

    /// `32`, `{name}`, or `{name|another}`, which is the other one where the first is unknown.
    fn text(&mut self, text: &str) -> Result<i64> {
        if let Ok(number) = text.trim().parse() {
            return Ok(number);
        }
        let Some(names) = name_in(text) else {
            invalid!("{text:?} is neither a number nor a name in braces");
        };
        match self.look_up(names, "N")? {
            Number::One(number) => Ok(number),
            Number::List(_) => invalid!("{names} is a list, and a number is needed"),
        }
    }

    /// The first of some names that is known.
    fn find(&mut self, names: &str) -> Result<Option<Number>> {
        for name in names.split('|') {
            if let Ok(number) = name.parse() {
                return Ok(Some(Number::One(number)));
            }
            if name == "tp" {
                // Never kept: it is another in a reshard.
                return Ok(Some(Number::One(i64::try_from(self.tp)?)));
            }
            let own = self.plan.values.get(name).map(|number| Number::One(*number));
            let given = self.given.get(name).cloned().or(own);
            let found = if given.is_some() { given } else { self.config.number(name)? };
            if let Some(value) = found {
                self.used.insert(name.into(), value.clone());
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// The form is what such a number looks like.
    fn look_up(&mut self, names: &str, form: &str) -> Result<Number> {
        if let Some(found) = self.find(names)? {
            return Ok(found);
        }
        let name = names.split('|').next().unwrap_or_default();
        let config = match self.config.path() {
            Some(path) => format!("{} does not have it", path.display()),
            None => "there is no config.json beside the model".into(),
        };
        refuse!("{name} is not known: {config}; give it with --set {name}={form}");
    }

    /// `q:32,k:8,v:8`, or with the width of a head, and parts that every rank has, or several ranks may
    /// have: `x:64x128,B:1x128 whole`, `x:64x128,B:4x128 replicate`.
    pub fn parts(&mut self, text: &str, is_grouped: bool) -> Result<Vec<Part>> {
        let parts = text.split(',').map(|part| {
            let Some((name, sizes)) = part.split_once(':') else {
                invalid!("parts {text:?}: {part:?} is not a name, a colon and a number");
            };
            let sizes = sizes.trim();
            let (sizes, word) = match sizes.split_once(' ') {
                Some((sizes, word)) => (sizes, word.trim()),
                None => (sizes, ""),
            };
            if !["", "whole", "replicate"].contains(&word) {
                invalid!(
                    "parts {text:?}: there is no word {word:?}: a part may end in \"whole\" or in \
                     \"replicate\""
                );
            }
            let (is_whole, may_replicate) = (word == "whole", word == "replicate");
            let end = match sizes.find('}') {
                Some(end) if sizes.starts_with('{') => end + 1,
                _ => sizes.find('x').unwrap_or(sizes.len()),
            };
            let (heads, width) = sizes.split_at(end);
            let mut number = |text: &str| self.count(&Given::Text(text.into()));
            let heads = number(heads)?;
            let width = width.strip_prefix('x').map(number).transpose()?;
            Ok(Part { name: name.trim().into(), heads, width, is_whole, may_replicate })
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let widths = parts.iter().filter(|part| part.width.is_some()).count();
        let has_whole = parts.iter().any(|part| part.is_whole);
        if widths != 0 && widths != parts.len() || has_whole && widths == 0 {
            invalid!(
                "parts {text:?}: give the width of a head in every part, as q:32x128, or in none \
                      (a part that is whole needs it)"
            );
        }
        if is_grouped && widths != 0 {
            invalid!("parts {text:?}: grouped parts have heads of one width, and none is whole");
        }
        Ok(parts)
    }
}
