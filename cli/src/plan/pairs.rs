//! Tensors that are computed with each other: their heads are as wide, and they are cut alike.

use super::place::{axis_of, leaf, Place, Placer};
use super::text::{CutRule, Rule};
use crate::checkpoint::Model;
use crate::failure::refuse;
use crate::report::shown;
use anyhow::{Context, Result};
use libsplit_formats::safetensors::Tensor;
use std::collections::{HashMap, HashSet};

/// A tensor that is cut: by which rule, and along which axis.
struct Found<'a> {
    tensor: &'a Tensor,
    rule: CutRule,
    axis: usize,
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    HeadDimOf,
    PairsWith,
}

impl<'a> Placer<'a> {
    /// Compares tensors with those that `head_dim_of` and `pairs_with` name. They have to be beside at
    /// least one of the tensors that the pattern matches.
    pub fn check_pairs(&mut self) -> Result<()> {
        let mut pairs: Vec<_> = std::mem::take(&mut self.pairs).into_iter().collect();
        pairs.sort_by_key(|(entry, _)| *entry);
        let mut partners = HashSet::new();
        for (entry, tensors) in pairs {
            let Rule::Cut(rule) = self.rule(entry)? else { continue };
            let keys = [(Key::HeadDimOf, &rule.head_dim_of), (Key::PairsWith, &rule.pairs_with)];
            for (key, other) in keys {
                let Some(other) = other else { continue };
                let mut is_there = false;
                for tensor in &tensors {
                    let described =
                        || format!("tensor {}, shape {:?}", shown(&tensor.name), tensor.shape);
                    let found = self.check_pair(entry, tensor, other, key);
                    let found = found.with_context(described)?;
                    is_there |= !found.is_empty();
                    if key == Key::PairsWith {
                        partners
                            .extend(found.iter().filter_map(|other| self.plan.entry(&other.name)));
                    }
                }
                if !is_there {
                    let name = if key == Key::HeadDimOf { "head_dim_of" } else { "pairs_with" };
                    refuse!(
                        "{:?}: {name} = {other:?}: nothing beside {} has this name: correct it",
                        self.plan.entries[entry].pattern,
                        shown(&tensors[0].name)
                    );
                }
            }
        }
        self.check_unpaired(&partners)
    }

    /// Refuses to pad what may stand for several values, if nothing says what it is computed with.
    fn check_unpaired(&self, partners: &HashSet<usize>) -> Result<()> {
        let mut alone = self.unpaired.iter().filter(|(entry, _)| !partners.contains(entry));
        let Some((_, tensor)) = alone.next() else { return Ok(()) };
        refuse!(
            "tensor {}, shape {:?}: pad_to: an element of it may stand for several values, and what it is \
             computed with has to be padded to as many: name that with pairs_with, as in pairs_with = \
             \"up_proj\"",
            shown(&tensor.name),
            tensor.shape
        );
    }

    /// Refuses weights of modules beside each other, as long along the axis that is cut, of which one is padded
    /// and another is not: they are computed with each other, unless the plan says with what else.
    pub fn check_padding(
        &mut self,
        model: &'a Model,
        places: &[Vec<(Option<usize>, Place)>],
    ) -> Result<()> {
        let mut seen: HashMap<(&str, u64), (&Tensor, u64)> = HashMap::new();
        let tensors = model.files.iter().flat_map(|file| &file.header.tensors);
        for (tensor, (entry, place)) in tensors.zip(places.iter().flatten()) {
            let (Some(entry), Place::Cut(cut)) = (entry, place) else { continue };
            let Some(module) = tensor.name.strip_suffix(".weight") else { continue };
            let Rule::Cut(rule) = self.rule(*entry)? else { continue };
            if rule.pairs_with.is_some() {
                continue;
            }
            let around = module.rsplit_once('.').map_or("", |(around, _)| around);
            let (other, padded) = *seen.entry((around, cut.real)).or_insert((tensor, cut.extent));
            if padded != cut.extent {
                refuse!(
                    "tensor {}, shape {:?}: it would be padded to {} along axis {}, and {} to {padded}, \
                     which is beside it and as long: pad both alike, or say with pairs_with what else it is \
                     computed with",
                    shown(&tensor.name),
                    tensor.shape,
                    cut.extent,
                    cut.axis,
                    shown(&other.name)
                );
            }
        }
        Ok(())
    }

    /// Compares a tensor with another beside it; returns what is there of that.
    fn check_pair(
        &mut self,
        entry: usize,
        tensor: &'a Tensor,
        other: &str,
        key: Key,
    ) -> Result<Vec<&'a Tensor>> {
        let Some(one) = self.found(tensor)? else { return Ok(Vec::new()) };
        let candidates = self.beside(&tensor.name, other);
        for candidate in &candidates {
            // In another form, elements are other numbers of values, and so are heads.
            let is_alike =
                leaf(&candidate.name) == leaf(&tensor.name) || candidate.name.ends_with(other);
            let Some(other) = self.found(candidate)? else { continue };
            match key {
                Key::HeadDimOf if is_alike => self.check_width(entry, &one, &other)?,
                Key::HeadDimOf => continue,
                Key::PairsWith => self.check_shares(&one, &other)?,
            }
            break;
        }
        Ok(candidates)
    }

    /// The tensors of the module of this name beside that of a tensor, or the tensor of this name. That is
    /// first, and then the one of the same kind.
    fn beside(&self, name: &str, other: &str) -> Vec<&'a Tensor> {
        let above = |name: &'_ str| name.rsplit_once('.').map_or(0, |(above, _)| above.len() + 1);
        let within = above(name);
        let around = above(name[..within].trim_end_matches('.'));
        let mut names = vec![format!("{}{other}", &name[..within])];
        names.push(format!("{}{other}", &name[..around]));
        for leaf in [leaf(name), "weight", "qweight"] {
            names.push(format!("{}{other}.{leaf}", &name[..around]));
        }
        names.iter().filter_map(|name| self.tensors.get(name.as_str()).copied()).collect()
    }

    fn found(&mut self, tensor: &'a Tensor) -> Result<Option<Found<'a>>> {
        let Some(entry) = self.plan.entry(&tensor.name) else { return Ok(None) };
        let Rule::Cut(rule) = self.rule(entry)? else { return Ok(None) };
        let pattern = &self.plan.entries[entry].pattern;
        let axis = axis_of(&rule, pattern, &tensor.name, tensor.shape.len())?;
        Ok(axis.map(|axis| Found { tensor, rule, axis }))
    }

    fn check_width(&self, entry: usize, one: &Found, other: &Found) -> Result<()> {
        let (width, count) = one.heads()?;
        let (other_width, other_count) = other.heads()?;
        if width == other_width {
            return Ok(());
        }
        let names = self.plan.entries[entry].names().join(", ");
        let numbers = if names.is_empty() { "heads".into() } else { names };
        refuse!(
            "each of its {count} heads would be {width} wide, and those of {} are {other_width} wide, as \
             there are {other_count}: correct the number of heads ({numbers})",
            other.described()
        );
    }

    fn check_shares(&self, one: &Found, other: &Found) -> Result<()> {
        let [here, there] = [one.shares(self.tp)?, other.shares(self.tp)?];
        for (rank, (here, there)) in here.iter().zip(&there).enumerate() {
            let is_same = |one: u64, other: u64| {
                u128::from(one) * u128::from(there.2) == u128::from(other) * u128::from(here.2)
            };
            if !is_same(here.0, there.0) || !is_same(here.1, there.1) {
                refuse!(
                    "it is not cut alike with {}, with which it is computed (pairs_with): rank {rank} \
                     would have {} to {} of {} here, and {} to {} of {} there: pad both, to the same \
                     share for each rank",
                    other.described(),
                    here.0,
                    here.1,
                    here.2,
                    there.0,
                    there.1,
                    there.2
                );
            }
        }
        Ok(())
    }
}

impl Found<'_> {
    fn extent(&self) -> u64 {
        self.tensor.shape[self.axis]
    }

    fn heads(&self) -> Result<(u64, u64)> {
        self.rule.heads(self.axis, self.extent()).with_context(|| self.described())
    }

    fn shares(&self, tp: usize) -> Result<Vec<(u64, u64, u64)>> {
        let shares = self.rule.shares(self.axis, self.extent(), tp);
        shares.with_context(|| self.described())
    }

    fn described(&self) -> String {
        format!("{}, shape {:?}", shown(&self.tensor.name), self.tensor.shape)
    }
}
