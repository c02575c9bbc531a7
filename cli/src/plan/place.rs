//! Every tensor of a checkpoint with its place: on every rank, cut among the ranks, or on one rank.

use super::cut::Cut;
use super::numbers::Numbers;
use super::scales::{check_single, scale_block};
use super::text::{Block, BlockSize, CutRule, Parts, Plan, Rule, Values};
use crate::checkpoint::Model;
use crate::config::Config;
use crate::failure::{failure, invalid, refuse, Kind};
use crate::report::{kinds, shown};
use crate::signals;
use anyhow::{Context, Error, Result};
use libsplit_formats::safetensors::Tensor;
use std::collections::HashMap;
use std::sync::Arc;

/// Where a tensor goes.
#[derive(Debug, Clone)]
pub enum Place {
    /// Every rank has it.
    Whole,
    /// Each rank has a part of it. Tensors that are cut alike have the same cut.
    Cut(Arc<Cut>),
    /// Only this rank has it.
    Rank(usize),
}

impl Place {
    /// The shape that a rank has; none if it does not have the tensor.
    pub fn shape(&self, rank: usize, shape: &[u64]) -> Option<Vec<u64>> {
        match self {
            Self::Whole => Some(shape.to_vec()),
            Self::Cut(cut) => Some(cut.shape_of(rank, shape)),
            Self::Rank(only) => (*only == rank).then(|| shape.to_vec()),
        }
    }

    pub fn cut(&self) -> Option<&Cut> {
        match self {
            Self::Cut(cut) => Some(cut),
            _ => None,
        }
    }
}

/// Where all tensors go, in the order of the model's files and of the tensors in them.
pub struct Placed {
    pub tp: usize,
    pub tensors: Vec<Vec<(Option<usize>, Place)>>,
    /// The numbers that the plan took by name.
    pub values: Values,
    /// Bytes of each rank's tensors.
    pub rank_bytes: Vec<u64>,
}

/// Where a plan looks up what it does not say itself.
pub struct Given<'a> {
    pub values: &'a Values,
    pub config: &'a Config,
    /// Whether config.json names a quantization.
    pub is_quantized: bool,
}

/// The components that end the names of what belongs to quantized weights alone. What they hold does not
/// lie as in a weight, and no option lets them go unmatched.
const QUANTIZED: [&str; 15] = [
    "qweight",
    "qzeros",
    "scales",
    "g_idx",
    "weight_scale",
    "weight_scale_inv",
    "weight_scale_2",
    "input_scale",
    "weight_packed",
    "weight_shape",
    "weight_zero_point",
    "absmax",
    "quant_map",
    "SCB",
    "weight_format",
];

/// Whether a tensor belongs to a quantized weight. Other scales than those of quantizations are in many
/// models: they count only in a model that is quantized, or beside a weight of 8 bits or fewer.
fn is_quantized(name: &str, given: &Given, tensors: &HashMap<&str, &Tensor>) -> bool {
    let leaf = leaf(name);
    let is_beside_quantized = || {
        let weight = tensors.get(sibling_of(name, "weight").as_str());
        weight.is_some_and(|weight| weight.dtype.bits <= 8)
    };
    QUANTIZED.contains(&leaf)
        || leaf.ends_with("absmax")
        || leaf.contains("scale") && (given.is_quantized || is_beside_quantized())
}

/// Applies a plan to the tensors of a whole checkpoint.
pub fn place(plan: &Plan, model: &Model, tp: usize, given: &Given) -> Result<Placed> {
    let numbers =
        Numbers { given: given.values, plan, config: given.config, tp, used: Values::new() };
    let by_name = model.by_name();
    let rules = plan.entries.iter().map(|_| None).collect();
    let (cuts, pairs) = (HashMap::new(), HashMap::new());
    let unpaired = Vec::new();
    let mut work = Placer { plan, tp, numbers, tensors: by_name, rules, cuts, pairs, unpaired };
    let mut rank_bytes = vec![0_u64; tp];
    let mut unmatched = Vec::new();
    let mut tensors = Vec::new();
    for file in &model.files {
        let mut places = Vec::with_capacity(file.header.tensors.len());
        for tensor in &file.header.tensors {
            signals::check()?;
            // What the index does not list is not matched, but copied as it is.
            let entry = plan.entry(&tensor.name).filter(|_| file.lists(tensor));
            let is_unmatched = entry.is_none() && file.lists(tensor);
            if is_unmatched && is_quantized(&tensor.name, given, &work.tensors) {
                unmatched.push(tensor.name.as_str());
            }
            let place = entry.map_or(Ok(Place::Whole), |entry| work.place(entry, tensor));
            let place =
                place.and_then(|place| add_bytes(tensor, &place, &mut rank_bytes).map(|()| place));
            places.push((entry, place.with_context(|| described(tensor))?));
        }
        tensors.push(places);
    }
    if !unmatched.is_empty() {
        refuse!(
            "no pattern matches {}, which {} to quantized weights: add patterns for them to the \
             plan, with scale_of, axis or replicate depending on their layout",
            kinds(&unmatched, "tensor"),
            if unmatched.len() == 1 { "belongs" } else { "belong" }
        );
    }
    work.check_pairs()?;
    work.check_padding(model, &tensors)?;
    Ok(Placed { tp, tensors, values: work.numbers.used, rank_bytes })
}

fn described(tensor: &Tensor) -> String {
    format!("tensor {}, shape {:?}", shown(&tensor.name), tensor.shape)
}

/// Counts the bytes that each rank has of a tensor, which must be whole.
fn add_bytes(tensor: &Tensor, place: &Place, rank_bytes: &mut [u64]) -> Result<()> {
    let all = tensor.end - tensor.begin;
    for (rank, sum) in rank_bytes.iter_mut().enumerate() {
        let bytes = match place {
            Place::Whole => Some(all),
            Place::Rank(only) => Some(if *only == rank { all } else { 0 }),
            Place::Cut(cut) => tensor.dtype.bytes(&cut.shape_of(rank, &tensor.shape)),
        };
        let Some(sum_now) = bytes.and_then(|bytes| sum.checked_add(bytes)) else {
            refuse!(
                "the part of rank {rank}, {} of shape {:?}, is not a whole number of bytes, or \
                 overflows 64 bits: replicate the tensor, or use another --tp",
                tensor.dtype.name,
                place.shape(rank, &tensor.shape).unwrap_or_default()
            );
        };
        *sum = sum_now;
    }
    Ok(())
}

impl Placed {
    /// Refuses what the plan and the checkpoint do not have in common, or returns it if it is allowed.
    pub fn check_matched(
        &self,
        plan: &Plan,
        model: &Model,
        is_allowed: bool,
    ) -> Result<Vec<String>> {
        let unmatched = self.unmatched(plan, model);
        if !unmatched.is_empty() && !is_allowed {
            refuse!(
                "{}: correct the plan, or copy such tensors to every rank with --allow-unmatched",
                unmatched.join("; ")
            );
        }
        Ok(unmatched)
    }

    /// In a few lines: patterns that match no tensor, and tensors that no pattern matches.
    fn unmatched(&self, plan: &Plan, model: &Model) -> Vec<String> {
        let mut is_used = vec![false; plan.entries.len()];
        let mut names = Vec::new();
        for (file, places) in model.files.iter().zip(&self.tensors) {
            for (tensor, (entry, _)) in file.header.tensors.iter().zip(places) {
                match entry {
                    Some(entry) => is_used[*entry] = true,
                    None if file.lists(tensor) => names.push(tensor.name.as_str()),
                    None => {}
                }
            }
        }
        let mut lines = Vec::new();
        if !names.is_empty() {
            lines.push(format!("no pattern matches {}", kinds(&names, "tensor")));
        }
        let unused = plan.entries.iter().zip(is_used);
        let unused: Vec<_> = unused
            .filter(|(entry, is_used)| !entry.is_optional && !is_used)
            .map(|(entry, _)| entry.pattern.as_str())
            .collect();
        if !unused.is_empty() {
            lines.push(format!("no tensor matches {}", kinds(&unused, "pattern")));
        }
        lines
    }
}

/// Cuts that are alike are made once.
type CutKey = (usize, usize, u64, Option<(u64, u64)>);

pub(super) struct Placer<'a> {
    pub plan: &'a Plan,
    pub tp: usize,
    numbers: Numbers<'a>,
    /// The model's tensors by name.
    pub tensors: HashMap<&'a str, &'a Tensor>,
    /// Of the entries that match something.
    rules: Vec<Option<Rule>>,
    cuts: HashMap<CutKey, Arc<Cut>>,
    /// By entry, the tensors that are to be compared with others beside them.
    pub pairs: HashMap<usize, Vec<&'a Tensor>>,
    /// With their entries, tensors that are padded though an element may stand for several values.
    pub unpaired: Vec<(usize, &'a Tensor)>,
}

impl<'a> Placer<'a> {
    pub fn rule(&mut self, entry: usize) -> Result<Rule> {
        if let Some(rule) = &self.rules[entry] {
            return Ok(rule.clone());
        }
        let rule = self.plan.entries[entry].rule(&mut self.numbers)?;
        self.rules[entry] = Some(rule.clone());
        Ok(rule)
    }

    fn place(&mut self, entry: usize, tensor: &'a Tensor) -> Result<Place> {
        let (name, shape) = (tensor.name.as_str(), tensor.shape.as_slice());
        match self.rule(entry)? {
            Rule::Replicate => Ok(Place::Whole),
            Rule::Cut(rule) => {
                let pattern = &self.plan.entries[entry].pattern;
                let Some(axis) = axis_of(&rule, pattern, name, shape.len())? else {
                    return Ok(Place::Whole);
                };
                self.check_leaf(entry, &rule, name, shape[axis])?;
                if rule.pairs_with.is_some() || rule.head_dim_of.is_some() {
                    self.pairs.entry(entry).or_default().push(tensor);
                } else if rule.pad_to.is_some_and(|it| it > 1) && holds_several(tensor) {
                    self.unpaired.push((entry, tensor));
                }
                let cut = self.cut(&rule, entry, axis, shape[axis]);
                let cut =
                    cut.map_err(|error| self.with_remedy(error, &rule, tensor, shape[axis]))?;
                self.check_query(&rule, name, axis, shape[axis])?;
                Ok(Place::Cut(cut))
            }
            Rule::ByIndex { by, of } => self.by_index(name, shape, &by, of),
            Rule::ScaleOf { sibling, block } => self.scale(name, shape, &sibling, &block),
        }
    }

    /// Refuses a pattern that matches any name for all but weights, biases, and what is as long as the weight.
    fn check_leaf(&mut self, entry: usize, rule: &CutRule, name: &str, extent: u64) -> Result<()> {
        let leaf = leaf(name);
        if matches!(leaf, "weight" | "bias") || !self.plan.matches_any(entry, name) {
            return Ok(());
        }
        let weight = self.tensors.get(sibling_of(name, "weight").as_str());
        let pattern = &self.plan.entries[entry].pattern;
        if let Some(weight) = weight.filter(|_| !QUANTIZED.contains(&leaf)) {
            let axis = axis_of(rule, pattern, &weight.name, weight.shape.len())?;
            if axis.is_some_and(|axis| weight.shape[axis] == extent) {
                return Ok(());
            }
        }
        refuse!(
            "{leaf} may not have the layout of a weight, and pattern {pattern:?} matches any name: add \
             a pattern that ends with .{leaf} before it in the plan"
        );
    }

    /// Query heads are never replicated: each of them would count several times.
    fn check_query(&self, rule: &CutRule, name: &str, axis: usize, extent: u64) -> Result<()> {
        let module = name.rsplit('.').find(|part| !matches!(*part, "weight" | "bias"));
        let is_query = module.is_some_and(|module| {
            matches!(module, "q" | "wq" | "query") || module.starts_with("q_")
        });
        if rule.replicate_kv && is_query && rule.heads(axis, extent)?.1 < self.tp as u64 {
            refuse!(
                "replicate_kv: these look like query heads, and there are fewer than {} ranks: use a \
                 smaller --tp, and give key and value heads a pattern of their own",
                self.tp
            );
        }
        Ok(())
    }

    /// An error of a cut, with what else would help.
    fn with_remedy(&self, error: Error, rule: &CutRule, tensor: &Tensor, extent: u64) -> Error {
        let is_plain = matches!(rule.parts, Parts::Elements(1)) && rule.pad_name.is_none();
        let remedy = if leaf(&tensor.name).contains("scale") && !rule.has_axis() {
            "; scale_of = \"weight\" lets scales follow their weight".into()
        } else if is_plain && extent > 1 && !self.plan.is_ready && !holds_several(tensor) {
            let tp = self.tp;
            format!(", or pad_to = {tp} to add zeros, here and in what is computed with it")
        } else {
            return error;
        };
        failure(Kind::Refused, format!("{error}{remedy}"))
    }

    fn cut(&mut self, rule: &CutRule, entry: usize, axis: usize, extent: u64) -> Result<Arc<Cut>> {
        let key = (entry, axis, extent, None);
        if let Some(cut) = self.cuts.get(&key) {
            return Ok(Arc::clone(cut));
        }
        let cut = Arc::new(rule.cut(axis, extent, self.tp)?);
        self.cuts.insert(key, Arc::clone(&cut));
        Ok(cut)
    }

    /// Consecutive numbers go to the same rank, as many to each.
    fn by_index(&self, name: &str, shape: &[u64], by: &str, of: u64) -> Result<Place> {
        let tp = self.tp as u64;
        if !of.is_multiple_of(tp) {
            refuse!(
                "{of} {by} cannot be shared equally among {tp} ranks: use a --tp that divides {of}"
            );
        }
        let mut components = name.split('.').skip_while(|component| *component != by);
        if components.next().is_none() {
            refuse!("by = {by:?}: the name has no such component");
        }
        let index = components.next().and_then(|index| index.parse::<u64>().ok());
        match (index, shape.first()) {
            (Some(index), _) if index < of => Ok(Place::Rank(usize::try_from(index / (of / tp))?)),
            (Some(index), _) => {
                refuse!("number {index} of {by} is not below of = {of}: correct of")
            }
            (None, Some(extent)) if *extent == of => {
                Ok(Place::Cut(Arc::new(Cut::equal(0, of, self.tp))))
            }
            _ => refuse!(
                "by_index: there is no number after {by:?}, and the extent of axis 0 is not {of}: \
                 give the tensor its own rule"
            ),
        }
    }

    /// The cut of a scale: as its weight's, in blocks.
    fn scale(&mut self, name: &str, shape: &[u64], sibling: &str, block: &Block) -> Result<Place> {
        let weight = sibling_of(name, sibling);
        let Some(whole) = self.tensors.get(weight.as_str()) else {
            refuse!(
                "scale_of = {sibling:?}: there is no tensor {weight}: correct it, or give the tensor \
                 its own rule"
            );
        };
        let whole: &[u64] = &whole.shape;
        let scales = shape.iter().try_fold(1_u64, |count, extent| count.checked_mul(*extent));
        check_single(scales.unwrap_or(u64::MAX), block)?;
        let Some(entry) = self.plan.entry(&weight) else { return Ok(Place::Whole) };
        let rule = match self.rule(entry)? {
            Rule::Replicate => return Ok(Place::Whole),
            Rule::Cut(rule) => rule,
            Rule::ByIndex { by, of } => return self.by_index(name, shape, &by, of),
            Rule::ScaleOf { .. } => {
                invalid!("scale_of = {sibling:?}: {weight} itself follows another tensor")
            }
        };
        let pattern = &self.plan.entries[entry].pattern;
        let axis = axis_of(&rule, pattern, &weight, whole.len())?;
        let is_single = scales == Some(1) && !matches!(block, Block::Sizes(_));
        let Some(axis) = axis.filter(|_| !is_single) else { return Ok(Place::Whole) };
        let in_context = || format!("scale_of {weight}, shape {whole:?}");
        let found = scale_block(&rule, axis, whole, shape, block).with_context(in_context)?;
        let Some((size, count)) = found else { return Ok(Place::Whole) };
        let key = (entry, axis, whole[axis], Some((size, count)));
        if let Some(cut) = self.cuts.get(&key) {
            return Ok(Place::Cut(Arc::clone(cut)));
        }
        let cut = self.cut(&rule, entry, axis, whole[axis])?;
        let cut = Arc::new(cut.of_scales(size, count).with_context(in_context)?);
        self.cuts.insert(key, Arc::clone(&cut));
        Ok(Place::Cut(cut))
    }
}

pub(super) fn leaf(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The name of another tensor in the same module.
fn sibling_of(name: &str, sibling: &str) -> String {
    match name.rsplit_once('.') {
        Some((module, _)) => format!("{module}.{sibling}"),
        None => sibling.to_owned(),
    }
}

/// The axis that a rule cuts of a tensor of so many axes; none if every rank has the tensor.
pub(super) fn axis_of(
    rule: &CutRule,
    pattern: &str,
    name: &str,
    rank: usize,
) -> Result<Option<usize>> {
    let is_bias = leaf(name) == "bias";
    if is_bias && rule.name == "rowwise" {
        return Ok(None); // added once, after the sum over the ranks
    }
    if is_bias && rank == 1 {
        return Ok(Some(0));
    }
    if is_bias && !pattern.ends_with("bias") {
        refuse!("a bias with {rank} axes needs its own pattern that ends with .bias");
    }
    rule.axis(rank, leaf(name) == "weight")
}

/// Whether an element of a tensor may stand for several values: it is packed in words or blocks.
fn holds_several(tensor: &Tensor) -> bool {
    let is_integer = tensor.dtype.name.starts_with(['U', 'I']) || tensor.dtype.bits < 8;
    is_integer && !matches!(leaf(&tensor.name), "weight" | "bias")
}

/// The shape of a whole tensor, of which each rank has one of these shapes.
pub fn whole_shape(
    plan: &Plan,
    local: &HashMap<&str, &Tensor>,
    tensor: &Tensor,
    tp: usize,
    given: &Given,
) -> Result<Vec<u64>> {
    let (name, mut shape) = (tensor.name.as_str(), tensor.shape.clone());
    let mut numbers =
        Numbers { given: given.values, plan, config: given.config, tp, used: Values::new() };
    let Some(entry) = plan.entry(name) else { return Ok(shape) };
    match plan.entries[entry].rule(&mut numbers)? {
        Rule::Replicate => {}
        Rule::Cut(rule) => {
            if let Some(axis) = axis_of(&rule, &plan.entries[entry].pattern, name, shape.len())? {
                shape[axis] = rule.whole_extent(axis, shape[axis], tp)?;
            }
        }
        Rule::ByIndex { .. } => refuse!(
            "by_index: shards that another tool made can be joined only if each rank has every \
             tensor"
        ),
        Rule::ScaleOf { sibling, block } => {
            let weight = sibling_of(name, &sibling);
            let Some(here) = local.get(weight.as_str()) else {
                refuse!(
                    "scale_of = {sibling:?}: there is no tensor {weight}: correct it, or give the \
                     tensor its own rule"
                );
            };
            let here = &here.shape;
            let Some(entry) = plan.entry(&weight) else { return Ok(shape) };
            let Rule::Cut(rule) = plan.entries[entry].rule(&mut numbers)? else { return Ok(shape) };
            let pattern = &plan.entries[entry].pattern;
            let axis = axis_of(&rule, pattern, &weight, here.len())?;
            let Some(axis) = axis else { return Ok(shape) };
            let size = match &block {
                Block::Sizes(sizes) if shape.len() == sizes.len() && axis < sizes.len() => {
                    match sizes[axis] {
                        BlockSize::Elements(size) => size,
                        BlockSize::All | BlockSize::Inverse(_) => return Ok(shape),
                    }
                }
                _ if shape.iter().product::<u64>() == 1 => return Ok(shape),
                _ => match scale_block(&rule, axis, here, &shape, &block)? {
                    Some((size, _)) => size,
                    None => return Ok(shape),
                },
            };
            shape[axis] = rule.whole_extent(axis, here[axis], tp)?.div_ceil(size);
        }
    }
    Ok(shape)
}
