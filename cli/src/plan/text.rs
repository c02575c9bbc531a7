//! `plan.toml`: patterns and rules.

use super::numbers::{name_in, Given, Numbers};
use crate::config::Number;
use crate::failure::{invalid, refuse, usage};
use anyhow::{Context, Result};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// More parts than this are taken for a mistake.
const MOST_PARTS: u64 = 1 << 16;

/// Numbers by name.
pub type Values = BTreeMap<String, Number>;

/// Patterns with their rules; the first that matches a tensor decides.
pub struct Plan {
    /// The text of the plan, to be kept with what is made by it.
    pub text: String,
    pub entries: Vec<Entry>,
    globs: GlobSet,
    /// The numbers of its table `[values]`.
    pub values: BTreeMap<String, i64>,
    /// Whether it comes with the tool, so that no remedy says to change it.
    pub is_ready: bool,
}

/// A pattern with its rule.
pub struct Entry {
    pub pattern: String,
    /// Whether it may match no tensor.
    pub is_optional: bool,
    rule: RawRule,
}

/// What becomes of a tensor.
#[derive(Debug, Clone)]
pub enum Rule {
    Replicate,
    Cut(CutRule),
    /// One rank has it: the number after the word `by` in its name decides which. Without such a
    /// number, its first axis is cut among the ranks. There are `of` numbers.
    ByIndex {
        by: String,
        of: u64,
    },
    /// It is cut as the tensor of this name beside it.
    ScaleOf {
        sibling: String,
        block: Block,
    },
}

/// How many elements of a weight have one scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The plan does not say: one scale for an axis, or one for each of its elements.
    Unsaid,
    /// One for all. If that is because a number is not known, its name.
    Tensor(Option<String>),
    /// So many of each axis.
    Sizes(Vec<BlockSize>),
}

/// The elements of an axis that have one scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockSize {
    Elements(u64),
    /// The whole axis.
    All,
    /// An element, or a word of several values, has so many scales.
    Inverse(u64),
}

impl BlockSize {
    /// How many scales an axis has; none if that is more than 64 bits hold.
    pub fn scales(self, extent: u64) -> Option<u64> {
        match self {
            Self::Elements(size) => Some(extent.div_ceil(size)),
            Self::All => Some(extent.min(1)),
            Self::Inverse(count) => extent.checked_mul(count),
        }
    }
}

/// How an axis is cut.
#[derive(Debug, Clone)]
pub struct CutRule {
    pub name: &'static str,
    pub axis: AxisRule,
    pub parts: Parts,
    pub groups: Option<u64>,
    pub is_grouped: bool,
    pub head_dim: Option<u64>,
    /// The module beside it whose heads are as wide.
    pub head_dim_of: Option<String>,
    /// The module beside it that is computed with it, and cut alike.
    pub pairs_with: Option<String>,
    pub replicate_kv: bool,
    /// Zeros are added, up to a multiple of so many heads or elements.
    pub pad_to: Option<u64>,
    /// The name of that number, if it has one.
    pub pad_name: Option<String>,
}

/// Which axis.
#[derive(Debug, Clone, Copy)]
pub enum AxisRule {
    /// Of a weight [out, in] the first; of a bias, the only one.
    Out,
    /// Of a weight [out, in] the last; a bias is replicated.
    In,
    Given(i64),
}

/// What lies along the axis.
#[derive(Debug, Clone)]
pub enum Parts {
    /// Single elements, in so many equal parts.
    Elements(u64),
    /// Parts by name, each of so many heads (or other things that stay in one piece).
    Heads(Vec<Part>),
}

/// A part of a fused tensor.
#[derive(Debug, Clone)]
pub struct Part {
    pub name: String,
    pub heads: u64,
    /// Elements of a head, if the plan says so.
    pub width: Option<u64>,
    /// Every rank has all of it.
    pub is_whole: bool,
    /// Several ranks may have the same head.
    pub may_replicate: bool,
}

/// The parts that `replicate_kv` means.
pub fn is_key_or_value(name: &str) -> bool {
    matches!(name, "k" | "v" | "key" | "value" | "kv")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    #[serde(default)]
    values: BTreeMap<String, i64>,
    tensors: toml::Table,
    /// Patterns that come first for checkpoints of a quantization, by its name or several.
    #[serde(default)]
    quantized: BTreeMap<String, toml::Table>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    rule: Option<String>,
    #[serde(default)]
    optional: bool,
    axis: Option<i64>,
    heads: Option<Given>,
    parts: Option<String>,
    split_factor: Option<Given>,
    layout: Option<String>,
    groups: Option<Given>,
    head_dim: Option<Given>,
    head_dim_of: Option<String>,
    pairs_with: Option<String>,
    replicate_kv: Option<bool>,
    pad_to: Option<Given>,
    by: Option<String>,
    of: Option<Given>,
    scale_of: Option<String>,
    block: Option<RawBlock>,
}

/// The keys that mean something with each rule.
const KEYS: [(&str, &[&str]); 6] = [
    ("replicate", &[]),
    (
        "colwise",
        &["axis", "heads", "head_dim", "head_dim_of", "pairs_with", "replicate_kv", "pad_to"],
    ),
    ("rowwise", &["axis", "heads", "head_dim", "head_dim_of", "pairs_with", "pad_to"]),
    (
        "packed",
        &[
            "axis",
            "split_factor",
            "parts",
            "layout",
            "groups",
            "head_dim",
            "head_dim_of",
            "pairs_with",
            "replicate_kv",
        ],
    ),
    ("by_index", &["by", "of"]),
    ("scale_of", &["block"]),
];

/// The keys whose value is a number, or the name of one.
const NUMBERS: [&str; 6] = ["heads", "split_factor", "groups", "head_dim", "pad_to", "of"];

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum RawBlock {
    Sizes(Vec<Given>),
    Text(String),
}

impl Plan {
    /// Reads a plan for a checkpoint of this quantization.
    pub fn parse(text: &str, quantization: Option<&str>) -> Result<Self> {
        let raw: RawPlan = match toml::from_str(text) {
            Ok(raw) => raw,
            Err(error) => invalid!("{}", error.to_string().trim_end()),
        };
        let (mut all, mut known, mut used) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (names, table) in raw.quantized {
            // All of them, so that a mistake is found whichever the checkpoint needs.
            let entries = entries(table).with_context(|| format!("quantized.{names:?}"))?;
            used.extend(entries.iter().flat_map(Entry::names));
            let names = names.split(',').map(str::trim);
            if names.clone().any(|name| Some(name) == quantization) {
                all = entries;
            }
            known.extend(names.map(str::to_owned));
        }
        if let Some(name) = quantization.filter(|name| !known.iter().any(|known| known == name)) {
            refuse!(
                "the checkpoint's config says that it is quantized with {name}, and the plan \
                 knows {}: add a table [quantized.{name:?}] with patterns for its tensors",
                if known.is_empty() { "no quantization".into() } else { known.join(", ") }
            );
        }
        let tensors = entries(raw.tensors)?;
        used.extend(tensors.iter().flat_map(Entry::names));
        if let Some(name) = raw.values.keys().find(|name| !used.contains(*name)) {
            let used: Vec<_> = used.into_iter().collect();
            let used = if used.is_empty() { "none".into() } else { used.join(", ") };
            invalid!(
                "[values] {name}: the plan uses no number with this name: correct it; the names it \
                 uses: {used}"
            );
        }
        // A quantized weight may be there in other tensors than these.
        all.extend(tensors.into_iter().map(|entry| Entry {
            is_optional: entry.is_optional || quantization.is_some(),
            ..entry
        }));
        let mut globs = GlobSetBuilder::new();
        for entry in &all {
            let glob = GlobBuilder::new(&entry.pattern).empty_alternates(true).build();
            match glob {
                Ok(glob) => globs.add(glob),
                Err(error) => invalid!("pattern {:?}: {}", entry.pattern, error.kind()),
            };
        }
        let globs = globs.build()?;
        Ok(Self { text: text.into(), entries: all, globs, values: raw.values, is_ready: false })
    }

    /// Returns the first entry whose pattern matches a tensor's name or, of a weight or a bias, the
    /// name of its module.
    pub fn entry(&self, name: &str) -> Option<usize> {
        let module = name.strip_suffix(".weight").or_else(|| name.strip_suffix(".bias"));
        let first = |name: &str| self.globs.matches(name).into_iter().min();
        first(name).into_iter().chain(module.and_then(first)).min()
    }

    /// Whether the pattern of an entry matches a tensor whatever the last component of its name is.
    pub fn matches_any(&self, entry: usize, name: &str) -> bool {
        let module =
            name.rsplit_once('.').map_or(String::new(), |(module, _)| format!("{module}."));
        let made_up = format!("{module}\u{1}");
        self.globs.matches(made_up).contains(&entry)
    }

    /// Checks that the plan uses every number that is given for it.
    pub fn check_names(&self, given: &Values) -> Result<()> {
        let known: BTreeSet<_> = self.entries.iter().flat_map(Entry::names).collect();
        for name in given.keys() {
            if !known.contains(name) {
                let known: Vec<_> = known.into_iter().collect();
                let known = if known.is_empty() { "none".into() } else { known.join(", ") };
                usage!("--set {name}: the plan uses no number with this name; the names it uses: {known}");
            }
        }
        Ok(())
    }
}

impl Entry {
    /// The names of the numbers that its rule takes.
    pub fn names(&self) -> Vec<String> {
        self.rule.names()
    }

    /// The rule with its numbers.
    pub fn rule(&self, numbers: &mut Numbers) -> Result<Rule> {
        self.rule.rule(numbers).with_context(|| format!("{:?}", self.pattern))
    }
}

fn entries(table: toml::Table) -> Result<Vec<Entry>> {
    let entries = table.into_iter().map(|(pattern, value)| {
        let rule = raw_rule(value).with_context(|| format!("{pattern:?}"))?;
        Ok(Entry { pattern, is_optional: rule.optional, rule })
    });
    entries.collect()
}

/// Reads a rule, and refuses keys that mean nothing in it.
fn raw_rule(value: toml::Value) -> Result<RawRule> {
    let table = match value {
        toml::Value::String(rule) => toml::Table::from_iter([("rule".into(), rule.into())]),
        toml::Value::Table(table) => table,
        _ => invalid!("neither the name of a rule nor a table"),
    };
    let keys: Vec<_> = table.keys().cloned().collect();
    check_values(&table)?;
    let raw: RawRule = match toml::Value::Table(table).try_into() {
        Ok(raw) => raw,
        Err(error) => invalid!("{}", error.to_string().trim_end().replace('\n', " ")),
    };
    if raw.rule.is_some() && raw.scale_of.is_some() {
        invalid!("rule and scale_of are both given: give one of them");
    }
    let name = raw.rule.as_deref().unwrap_or("scale_of");
    let Some((_, allowed)) = KEYS.iter().find(|(known, _)| *known == name) else {
        let known = ["colwise", "rowwise", "packed", "by_index", "replicate"].join(", ");
        invalid!("there is no rule {name:?}: the rules are {known}");
    };
    let is_known = |key: &str| ["rule", "scale_of", "optional"].contains(&key);
    if let Some(key) = keys.iter().find(|key| !is_known(key) && !allowed.contains(&key.as_str())) {
        let allowed = if allowed.is_empty() { "no other key".into() } else { allowed.join(", ") };
        invalid!("{key} has no meaning with {name}, which takes {allowed}");
    }
    raw.check(name)?;
    Ok(raw)
}

/// Refuses values that are not of their key's kind, where that is easily mistaken.
fn check_values(table: &toml::Table) -> Result<()> {
    if let Some((key, value)) = table.iter().find(|(_, value)| value.is_table()) {
        invalid!(
            "{key} = {value} is not a key of a rule: if it is the end of a name, write the name in \
             quotes, as in \"layers.*.up\" = \"colwise\""
        );
    }
    if !table.contains_key("rule") && !table.contains_key("scale_of") {
        invalid!(
            "neither rule nor scale_of is given: give one of them; a name with dots needs quotes, as \
             in \"layers.*.up\" = \"colwise\""
        );
    }
    for (key, value) in table {
        let is_count = value.is_str() || value.as_integer().is_some_and(|it| it > 0);
        if NUMBERS.contains(&key.as_str()) && !is_count {
            invalid!(
                "{key} is {value}: give a whole number of at least 1, or a name in braces as in \
                 {key} = \"{{num_attention_heads}}\""
            );
        }
        let sizes = value.as_array().filter(|_| key == "block").into_iter().flatten();
        let is_size =
            |it: &toml::Value| it.is_str() || it.as_integer().is_some_and(|it| it > 0 || it == -1);
        if let Some(size) = sizes.into_iter().find(|size| !is_size(size)) {
            invalid!(
                "block: {size} is not a number of elements: give a whole number of at least 1, -1 for \
                 the whole axis, or a name in braces"
            );
        }
    }
    Ok(())
}

impl RawRule {
    /// Refuses keys that contradict each other.
    fn check(&self, name: &str) -> Result<()> {
        let has_units = self.heads.is_some() || self.parts.is_some();
        let is_grouped = self.layout.as_deref() == Some("grouped");
        if !matches!(self.layout.as_deref(), None | Some("concat" | "grouped")) {
            let layout = self.layout.as_deref().unwrap_or_default();
            invalid!("there is no layout {layout:?}: the layouts are concat and grouped");
        }
        if self.parts.is_some() && self.split_factor.is_some() {
            invalid!("parts and split_factor both describe the axis: give one of them");
        }
        if self.parts.is_none() && self.layout.is_some() || !is_grouped && self.groups.is_some() {
            invalid!("groups needs layout = \"grouped\", and layout needs parts");
        }
        let has_dim = self.head_dim.is_some() || self.head_dim_of.is_some();
        if !has_units && (self.replicate_kv == Some(true) || has_dim) {
            invalid!(
                "replicate_kv, head_dim and head_dim_of need heads or parts, which give the number of \
                 heads"
            );
        }
        let parts = self.parts.iter().flat_map(|parts| parts.split(','));
        let parts: Vec<_> = parts.filter_map(|part| Some(part.split_once(':')?.0.trim())).collect();
        let twice = parts.iter().enumerate().find(|(at, name)| parts[..*at].contains(name));
        if let Some((_, name)) = twice {
            invalid!("parts: {name} appears twice: give each part a name of its own");
        }
        if self.replicate_kv == Some(true)
            && self.parts.is_some()
            && !parts.iter().any(|name| is_key_or_value(name))
        {
            invalid!(
                "replicate_kv: no part is a key or value (k, v, key, value or kv): write replicate after \
                 each part that several ranks may have, as in \"B:4 replicate\""
            );
        }
        let optional = |given: &Given| matches!(given, Given::Text(text) if text.contains('?'));
        let others = [&self.heads, &self.split_factor, &self.groups, &self.pad_to, &self.of];
        let is_in_parts = self.parts.as_ref().is_some_and(|parts| parts.contains('?'));
        if others.into_iter().flatten().any(optional) || is_in_parts {
            invalid!("heads, parts and other sizes have to be known: only head_dim may have a name with ?");
        }
        if name == "by_index" && (self.by.is_none() || self.of.is_none()) {
            invalid!(
                "by_index needs both by, the word before the number, and of, how many there are"
            );
        }
        if let Some(RawBlock::Text(text)) = &self.block {
            if text != "tensor" && name_in(text).is_none() {
                invalid!("block {text:?} is neither a list, nor a name in braces, nor \"tensor\"");
            }
        }
        Ok(())
    }

    /// The names of the numbers that it takes.
    fn names(&self) -> Vec<String> {
        let sizes = match &self.block {
            Some(RawBlock::Sizes(sizes)) => sizes.as_slice(),
            _ => &[],
        };
        let given =
            [&self.heads, &self.split_factor, &self.groups, &self.head_dim, &self.pad_to, &self.of];
        let texts = given.into_iter().flatten().chain(sizes).filter_map(|given| match given {
            Given::Text(text) => Some(text.as_str()),
            Given::Number(_) => None,
        });
        let block = match &self.block {
            Some(RawBlock::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let in_braces = |text: &str| -> Vec<String> {
            let braces = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
            braces.flat_map(|(names, _)| names.split('|')).map(str::to_owned).collect()
        };
        let names = texts.chain(block).chain(self.parts.as_deref()).flat_map(in_braces);
        let names = names.map(|name| name.trim_end_matches('?').to_owned());
        let is_name = |name: &String| {
            !["tp", "tensor"].contains(&name.as_str()) && name.parse::<i64>().is_err()
        };
        names.filter(is_name).collect()
    }

    fn rule(&self, numbers: &mut Numbers) -> Result<Rule> {
        if let Some(sibling) = &self.scale_of {
            let block = match &self.block {
                None => Block::Unsaid,
                Some(RawBlock::Text(text)) if text == "tensor" => Block::Tensor(None),
                Some(RawBlock::Text(text)) => numbers.block(text)?,
                Some(RawBlock::Sizes(sizes)) => {
                    let sizes = sizes.iter().map(|size| numbers.block_size(size));
                    Block::Sizes(sizes.collect::<Result<_>>()?)
                }
            };
            return Ok(Rule::ScaleOf { sibling: sibling.clone(), block });
        }
        let (name, axis) = match self.rule.as_deref() {
            Some("colwise") => ("colwise", AxisRule::Out),
            Some("rowwise") => ("rowwise", AxisRule::In),
            Some("packed") => ("packed", AxisRule::Out),
            Some("by_index") => {
                let of = self.of.as_ref().map(|of| numbers.count(of)).transpose()?;
                let by = self.by.clone().unwrap_or_default();
                return Ok(Rule::ByIndex { by, of: of.unwrap_or(1) });
            }
            _ => return Ok(Rule::Replicate),
        };
        let mut number =
            |given: &Option<Given>| given.as_ref().map(|given| numbers.count(given)).transpose();
        let (groups, pad_to) = (number(&self.groups)?, number(&self.pad_to)?);
        let head_dim =
            self.head_dim.as_ref().map(|dim| numbers.optional(dim)).transpose()?.flatten();
        Ok(Rule::Cut(CutRule {
            name,
            axis: self.axis.map_or(axis, AxisRule::Given),
            parts: self.parts_of(name, numbers)?,
            groups,
            is_grouped: self.layout.as_deref() == Some("grouped"),
            head_dim,
            head_dim_of: self.head_dim_of.clone(),
            pairs_with: self.pairs_with.clone(),
            replicate_kv: self.replicate_kv.unwrap_or_default(),
            pad_to,
            pad_name: match &self.pad_to {
                Some(Given::Text(text)) => name_in(text).and_then(|names| names.split('|').next()),
                _ => None,
            }
            .map(str::to_owned),
        }))
    }

    fn parts_of(&self, name: &str, numbers: &mut Numbers) -> Result<Parts> {
        if let Some(heads) = &self.heads {
            let heads = numbers.count(heads)?;
            let may_replicate = self.replicate_kv == Some(true);
            let name = "heads".into();
            let part = Part { name, heads, width: None, is_whole: false, may_replicate };
            return Ok(Parts::Heads(vec![part]));
        }
        if let Some(parts) = &self.parts {
            let is_grouped = self.layout.as_deref() == Some("grouped");
            let mut parts = numbers.parts(parts, is_grouped)?;
            for part in &mut parts {
                let is_meant = self.replicate_kv == Some(true) && is_key_or_value(&part.name);
                part.may_replicate |= is_meant;
            }
            return Ok(Parts::Heads(parts));
        }
        Ok(Parts::Elements(match &self.split_factor {
            Some(factor) => match numbers.count(factor)? {
                factor @ ..=MOST_PARTS => factor,
                factor => refuse!("split_factor {factor}: at most {MOST_PARTS} parts are possible"),
            },
            None if name == "packed" => 2, // as transformers has it
            None => 1,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Numbers, Parts, Plan, Rule, Values};
    use crate::config::{Config, Number};

    fn plan(text: &str) -> anyhow::Result<Plan> {
        Plan::parse(text, None)
    }

    #[test]
    fn a_pattern_matches_names_and_the_modules_of_weights_and_biases() {
        let matches = |pattern: &str, name: &str| {
            plan(&format!("[tensors]\n'{pattern}' = 'replicate'")).unwrap().entry(name).is_some()
        };
        assert!(matches("a.*.q", "a.0.q.weight"));
        assert!(matches("a.*.q.weight", "a.0.q.weight"));
        assert!(matches("*.q", "a.b.c.q.bias"));
        assert!(matches("{a,b}.q[0-9]", "b.q7.bias"));
        assert!(!matches("a.*.q", "a.0.q.scale"));
        assert!(!matches("a.*.q", "a.0.q.weight.scale"));
        assert!(!matches("q", "q_proj.weight"));
        assert!(matches("lm_head", "lm_head"));
    }

    #[test]
    fn the_first_match_decides_and_those_of_the_quantization_come_first() {
        let text = "[tensors]\n'z*' = 'colwise'\n'*' = 'replicate'\n'a' = 'rowwise'\n\
                    [quantized.'x, y']\n'q.w' = 'rowwise'";
        let entries = |quantization| {
            let plan = Plan::parse(text, quantization).unwrap();
            ["zz", "a", "q.w"].map(|name| plan.entries[plan.entry(name).unwrap()].pattern.clone())
        };
        assert_eq!(entries(None), ["z*", "*", "*"]);
        assert_eq!(entries(Some("y")), ["z*", "*", "q.w"]);
        assert!(Plan::parse(text, Some("z")).is_err());
    }

    #[test]
    fn numbers_by_name() {
        let parts = |parts: &str| {
            let text = format!(
                "[values]\nmine = 7\n[tensors]\na = {{rule = 'packed', parts = '{parts}'}}\n\
                 b = {{rule = 'colwise', heads = '{{mine}}'}}"
            );
            let (plan, config) = (plan(&text)?, Config::default());
            let given = Values::from([("heads".into(), Number::One(4))]);
            let mut numbers =
                Numbers { given: &given, plan: &plan, config: &config, tp: 3, used: Values::new() };
            let Rule::Cut(rule) = plan.entries[0].rule(&mut numbers)? else { panic!() };
            let Parts::Heads(parts) = rule.parts else { panic!() };
            Ok(parts.iter().map(|part| (part.heads, part.width, part.is_whole)).collect::<Vec<_>>())
        };
        let parts = |text| parts(text).map_err(|error: anyhow::Error| format!("{error:#}"));
        assert_eq!(parts("q:{heads}, k:2").unwrap(), [(4, None, false), (2, None, false)]);
        assert_eq!(parts("q:{none|heads},k:{mine}").unwrap()[1], (7, None, false));
        assert_eq!(parts("q:{none|5},k:{tp}").unwrap()[0].0, 5);
        assert_eq!(
            parts("q:{tp}x{mine},b:1x2 whole").unwrap(),
            [(3, Some(7), false), (1, Some(2), true)]
        );
        for (text, word) in [
            ("q:{none}", "--set none=N"),
            ("q:x", "neither a number"),
            ("q:0", "at least 1"),
            ("q", "colon"),
            ("q:1x2,k:1", "every part"),
        ] {
            assert!(parts(text).unwrap_err().contains(word), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_plan() {
        for (text, word) in [
            ("a = 1", "tensors"),
            ("[tensors]\na = 'diagonal'", "colwise, rowwise, packed, by_index"),
            ("[tensors]\na = 3", "table"),
            ("[tensors]\na = {}", "neither"),
            ("[tensors]\na = {rule = 'colwise', head = 3}", "head"),
            (
                "[tensors]\na = {rule = 'packed', parts = 'q:1', layout = 'woven'}",
                "concat and grouped",
            ),
            ("[tensors]\na = {rule = 'packed', layout = 'grouped'}", "parts"),
            ("[tensors]\na = {rule = 'colwise', replicate_kv = true}", "replicate_kv"),
            ("[tensors]\na = 'colwise'\na = 'rowwise'", "duplicate"),
            ("[tensors]\n'{a' = 'colwise'", "{a"),
            ("[tensors]\n[quantized.x]\na = 'diagonal'", "diagonal"),
            ("[tensors]\nb = {scale_of = 'w', block = 'row'}", "tensor"),
        ] {
            let Err(error) = plan(text) else { panic!("{text}") };
            assert!(format!("{error:#}").contains(word), "{text}: {error:#}");
        }
    }
}
