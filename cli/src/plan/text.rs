//! `plan.toml`: patterns, rules, and numbers by name.

use crate::failure::{invalid, refuse};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use wildmatch::WildMatch;

/// The plans that come with the tool.
pub const READY: [(&str, &str); 3] = [
    ("llama", include_str!("../../plans/llama.toml")),
    ("gpt-neox", include_str!("../../plans/gpt-neox.toml")),
    ("phi", include_str!("../../plans/phi.toml")),
];

/// The text of a ready plan.
pub fn ready(name: &str) -> Option<&'static str> {
    READY.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// More parts than this are taken for a mistake.
const MOST_PARTS: u64 = 1 << 16;

/// Numbers by name, for `{name}` in a plan.
pub type Values = BTreeMap<String, u64>;

/// Patterns with their rules, in the plan's order.
#[derive(Debug)]
pub struct Plan {
    pub entries: Vec<Entry>,
    /// What of the given numbers it uses.
    pub values: Values,
}

/// A pattern with its rule.
#[derive(Debug)]
pub struct Entry {
    pub pattern: String,
    pub rule: Rule,
    /// Whether it may match no tensor.
    pub is_optional: bool,
}

/// What becomes of a tensor.
#[derive(Debug, Clone)]
pub enum Rule {
    Replicate,
    Cut(CutRule),
    /// As the tensor beside it of this name is cut, a block of which has one scale.
    ScaleOf {
        sibling: String,
        block: Option<Vec<u64>>,
    },
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
    pub replicate_kv: bool,
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
    Heads(Vec<(String, u64)>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlan {
    #[serde(default)]
    values: BTreeMap<String, u64>,
    tensors: toml::Table,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    rule: Option<String>,
    #[serde(default)]
    optional: bool,
    axis: Option<i64>,
    heads: Option<Number>,
    parts: Option<String>,
    split_factor: Option<Number>,
    layout: Option<String>,
    groups: Option<Number>,
    head_dim: Option<Number>,
    replicate_kv: Option<bool>,
    scale_of: Option<String>,
    block: Option<Vec<Number>>,
}

/// A number, or the name of one.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Given(u64),
    Named(String),
}

impl Plan {
    /// Reads a plan; `values` come before the plan's own, and those of `config` last.
    pub fn parse(text: &str, values: &Values, config: &serde_json::Value) -> Result<Self> {
        let raw: RawPlan = match toml::from_str(text) {
            Ok(raw) => raw,
            Err(error) => invalid!("{}", error.to_string().trim_end()),
        };
        let mut names = Names { given: values, plan: &raw.values, config, used: Values::new() };
        let entries = raw.tensors.into_iter().map(|(pattern, value)| {
            let entry = raw_rule(value).and_then(|raw| {
                let is_optional = raw.optional;
                Ok((is_optional, raw.rule(&mut names)?))
            });
            let (is_optional, rule) = entry.with_context(|| format!("{pattern:?}"))?;
            Ok(Entry { pattern, rule, is_optional })
        });
        let entries = entries.collect::<Result<_>>()?;
        Ok(Self { entries, values: names.used })
    }

    /// The first entry whose pattern matches a tensor's name, or its module's.
    pub fn entry(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| matches(&entry.pattern, name))
    }
}

/// Whether a pattern matches the name of a tensor, or of the module that it is in.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern = WildMatch::new(pattern);
    let module = name.rsplit_once('.').map(|(module, _)| module);
    pattern.matches(name) || module.is_some_and(|module| pattern.matches(module))
}

fn raw_rule(value: toml::Value) -> Result<RawRule> {
    match value {
        toml::Value::String(rule) => Ok(RawRule { rule: Some(rule), ..RawRule::default() }),
        value => match value.try_into() {
            Ok(rule) => Ok(rule),
            Err(error) => invalid!("{}", error.to_string().trim_end()),
        },
    }
}

impl RawRule {
    fn rule(self, names: &mut Names) -> Result<Rule> {
        if self.scale_of.is_some() {
            return self.scale(names);
        }
        if self.block.is_some() {
            invalid!("block goes with scale_of");
        }
        let (name, axis) = match self.rule.as_deref() {
            Some("replicate") => return self.replicate(),
            Some("colwise") => ("colwise", AxisRule::Out),
            Some("rowwise") => ("rowwise", AxisRule::In),
            Some("packed") => ("packed", AxisRule::Out),
            Some(other) => {
                invalid!("rule {other:?} is none: there are colwise, rowwise, packed and replicate")
            }
            None => invalid!("there is neither rule nor scale_of"),
        };
        let is_grouped = match self.layout.as_deref() {
            None | Some("concat") => false,
            Some("grouped") => true,
            Some(other) => invalid!("layout {other:?} is none: there are concat and grouped"),
        };
        let replicate_kv = self.replicate_kv.unwrap_or_default();
        let (has_parts, has_groups) = (self.parts.is_some(), self.groups.is_some());
        let has_heads = self.heads.is_some();
        let parts = self.parts_of(name, names)?;
        if is_grouped && !has_parts || has_groups && !is_grouped {
            invalid!("groups goes with layout = \"grouped\", and that with parts");
        }
        if !has_parts && !has_heads && (replicate_kv || self.head_dim.is_some()) {
            invalid!(
                "replicate_kv and head_dim go with heads or parts, which say how many there are"
            );
        }
        Ok(Rule::Cut(CutRule {
            name,
            axis: self.axis.map_or(axis, AxisRule::Given),
            parts,
            groups: self.groups.map(|groups| names.number(&groups)).transpose()?,
            is_grouped,
            head_dim: self.head_dim.map(|size| names.number(&size)).transpose()?,
            replicate_kv,
        }))
    }

    fn replicate(&self) -> Result<Rule> {
        let others = [self.heads.is_some(), self.parts.is_some(), self.axis.is_some()];
        if others.contains(&true) || self.layout.is_some() || self.split_factor.is_some() {
            invalid!("replicate takes nothing else: every rank has the whole tensor");
        }
        Ok(Rule::Replicate)
    }

    fn scale(self, names: &mut Names) -> Result<Rule> {
        if self.rule.is_some() || self.parts.is_some() || self.axis.is_some() {
            invalid!("scale_of takes only block: the rest is as of its weight");
        }
        let block = self.block.map(|block| block.iter().map(|size| names.number(size)).collect());
        Ok(Rule::ScaleOf { sibling: self.scale_of.unwrap_or_default(), block: block.transpose()? })
    }

    fn parts_of(&self, name: &str, names: &mut Names) -> Result<Parts> {
        let given = [self.heads.is_some(), self.parts.is_some(), self.split_factor.is_some()];
        if given.into_iter().filter(|given| *given).count() > 1 {
            invalid!("there is more than one of heads, parts and split_factor");
        }
        if name == "packed" && self.heads.is_some()
            || name != "packed" && self.split_factor.is_some()
        {
            invalid!("heads goes with colwise and rowwise, split_factor with packed");
        }
        if let Some(heads) = &self.heads {
            return Ok(Parts::Heads(vec![("heads".into(), names.count(heads)?)]));
        }
        if let Some(parts) = &self.parts {
            return Ok(Parts::Heads(names.parts(parts)?));
        }
        Ok(Parts::Elements(match &self.split_factor {
            Some(factor) => match names.count(factor)? {
                factor @ ..=MOST_PARTS => factor,
                factor => {
                    refuse!("split_factor {factor}: more than {MOST_PARTS} parts are a mistake")
                }
            },
            None if name == "packed" => 2, // as transformers has it
            None => 1,
        }))
    }
}

/// Where numbers are looked up by name.
struct Names<'a> {
    given: &'a Values,
    plan: &'a Values,
    config: &'a serde_json::Value,
    used: Values,
}

impl Names<'_> {
    fn number(&mut self, number: &Number) -> Result<u64> {
        match number {
            Number::Given(number) => Ok(*number),
            Number::Named(text) => self.text(text),
        }
    }

    /// A number that is not 0.
    fn count(&mut self, number: &Number) -> Result<u64> {
        match self.number(number)? {
            0 => refuse!("0 parts or heads: there must be at least 1"),
            count => Ok(count),
        }
    }

    /// `32`, `{name}`, or `{name|another}`, which is the other one where the first is unknown.
    fn text(&mut self, text: &str) -> Result<u64> {
        let text = text.trim();
        let Some(names) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            match text.parse() {
                Ok(number) => return Ok(number),
                Err(_) => invalid!("{text:?} is neither a number nor a name in braces"),
            }
        };
        for name in names.split('|') {
            let config = || self.config.get(name).and_then(serde_json::Value::as_u64);
            let found = self.given.get(name).or(self.plan.get(name)).copied().or_else(config);
            if let Some(value) = found {
                self.used.insert(name.into(), value);
                return Ok(value);
            }
        }
        let name = names.split('|').next().unwrap_or_default();
        refuse!(
            "{name} is not known: give --set {name}=N, or put the model's config.json beside it"
        );
    }

    /// `q:32,k:8,v:8`.
    fn parts(&mut self, text: &str) -> Result<Vec<(String, u64)>> {
        let parts = text.split(',').map(|part| {
            let Some((name, count)) = part.split_once(':') else {
                invalid!("parts {text:?}: {part:?} is not a name, a colon and a number");
            };
            Ok((name.trim().to_owned(), self.count(&Number::Named(count.into()))?))
        });
        parts.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{matches, Parts, Plan, Rule, Values, READY};
    use serde_json::json;

    fn plan(text: &str) -> anyhow::Result<Plan> {
        Plan::parse(text, &Values::new(), &json!({"heads": 4, "name": "x"}))
    }

    #[test]
    fn a_pattern_matches_tensors_and_modules() {
        assert!(matches("a.*.q", "a.0.q.weight"));
        assert!(matches("a.*.q.weight", "a.0.q.weight"));
        assert!(matches("*.q", "a.b.c.q.bias"));
        assert!(!matches("a.*.q", "a.0.q.weight.scale"));
        assert!(!matches("q", "q_proj.weight"));
        assert!(matches("lm_head", "lm_head.weight"));
    }

    #[test]
    fn the_first_match_wins_and_order_is_kept() {
        let plan = plan("[tensors]\n'z*' = 'colwise'\n'*' = 'replicate'\n'a' = 'rowwise'").unwrap();
        assert_eq!(
            (plan.entry("zz"), plan.entry("a"), plan.entry("q.w")),
            (Some(0), Some(1), Some(1))
        );
    }

    #[test]
    fn numbers_by_name() {
        let parts = |text: &str| {
            let text =
                format!("[values]\nmine = 7\n[tensors]\na = {{rule = 'packed', parts = '{text}'}}");
            match plan(&text)?.entries.remove(0).rule {
                Rule::Cut(cut) => match cut.parts {
                    Parts::Heads(parts) => {
                        Ok(parts.into_iter().map(|part| part.1).collect::<Vec<_>>())
                    }
                    Parts::Elements(_) => panic!(),
                },
                _ => panic!(),
            }
        };
        let parts = |text| parts(text).map_err(|error: anyhow::Error| format!("{error:#}"));
        assert_eq!(parts("q:{heads}, k:2").unwrap(), [4, 2]);
        assert_eq!(parts("q:{none|heads},k:{mine}").unwrap(), [4, 7]);
        assert!(parts("q:{none}").unwrap_err().contains("--set none=N"));
        assert!(parts("q:{name}").unwrap_err().contains("name"));
        assert!(parts("q:0").unwrap_err().contains("at least 1"));
        assert!(parts("q").unwrap_err().contains("colon"));
    }

    #[test]
    fn what_is_no_plan() {
        for (text, word) in [
            ("a = 1", "tensors"),
            ("[tensors]\na = 'diagonal'", "colwise, rowwise, packed and replicate"),
            ("[tensors]\na = 3", "a"),
            ("[tensors]\na = {}", "neither"),
            ("[tensors]\na = {rule = 'packed', split_factor = 65537}", "65536"),
            ("[tensors]\na = {rule = 'colwise', head = 3}", "head"),
            ("[tensors]\na = {rule = 'packed', layout = 'woven'}", "concat and grouped"),
            ("[tensors]\na = {rule = 'packed', layout = 'grouped'}", "parts"),
            ("[tensors]\na = {rule = 'packed', heads = 2}", "heads"),
            ("[tensors]\na = {rule = 'colwise', replicate_kv = true}", "replicate_kv"),
            ("[tensors]\na = {rule = 'replicate', heads = 3}", "replicate"),
            ("[tensors]\na = {scale_of = 'weight', axis = 1}", "block"),
            ("[tensors]\na = {rule = 'colwise', block = [1]}", "scale_of"),
            ("[tensors]\na = 'colwise'\na = 'rowwise'", "duplicate"),
        ] {
            let error = format!("{:#}", plan(text).unwrap_err());
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn ready_plans_are_plans() {
        let config = json!({"num_attention_heads": 8, "num_key_value_heads": 2});
        for (name, text) in READY {
            let plan = Plan::parse(text, &Values::new(), &config).unwrap();
            assert!(plan.entries.len() > 4, "{name}");
        }
    }
}
