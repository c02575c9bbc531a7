//! Every tensor of a checkpoint with its cut.

use super::cut::Cut;
use super::text::{CutRule, Entry, Plan, Rule};
use crate::failure::{invalid, refuse};
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Shapes by name.
pub type Tensors = BTreeMap<String, Vec<u64>>;

/// Where the tensors of a checkpoint go.
#[derive(Debug, Default)]
pub struct Placed {
    /// Of each tensor the entry of the plan that matched it, and its cut, if it has one.
    pub tensors: BTreeMap<String, (Option<usize>, Option<Cut>)>,
    /// What the user should know: patterns and tensors without a match.
    pub warnings: Vec<String>,
}

/// Applies a plan to the tensors of a whole checkpoint.
pub fn place(plan: &Plan, tensors: &Tensors, tp: usize) -> Result<Placed> {
    let mut placed = Placed::default();
    for (name, shape) in tensors {
        let cut = cut(plan, tensors, name, shape, tp);
        let cut = cut.with_context(|| format!("tensor {name}, shape {shape:?}"))?;
        placed.tensors.insert(name.clone(), (plan.entry(name), cut));
    }
    placed.warnings = warnings(plan, &placed);
    Ok(placed)
}

fn cut(
    plan: &Plan,
    tensors: &Tensors,
    name: &str,
    shape: &[u64],
    tp: usize,
) -> Result<Option<Cut>> {
    let Some(entry) = plan.entry(name) else { return Ok(None) };
    match &plan.entries[entry].rule {
        Rule::Replicate => Ok(None),
        Rule::Cut(rule) => {
            let axis = rule.axis(shape.len())?;
            axis.map(|axis| rule.cut(axis, shape[axis], tp)).transpose()
        }
        Rule::ScaleOf { sibling, block } => {
            let (weight, rule, axis) = weight_of(plan, tensors, name, sibling)?;
            let Some((rule, axis)) = rule.zip(axis) else { return Ok(None) };
            let whole = &tensors[&weight];
            let weight_cut = rule.cut(axis, whole[axis], tp)?;
            scale_cut(&weight_cut, whole, shape, block.as_deref())
                .with_context(|| format!("scale_of {weight}, shape {whole:?}"))
        }
    }
}

/// The weight that a scale belongs to, its rule, and the axis that is cut, if there are.
fn weight_of<'a>(
    plan: &'a Plan,
    tensors: &Tensors,
    scale: &str,
    sibling: &str,
) -> Result<(String, Option<&'a CutRule>, Option<usize>)> {
    let weight = match scale.rsplit_once('.') {
        Some((module, _)) => format!("{module}.{sibling}"),
        None => sibling.to_owned(),
    };
    let Some(shape) = tensors.get(&weight) else {
        refuse!("scale_of = {sibling:?}: there is no tensor {weight} beside it");
    };
    match plan.entry(&weight).map(|entry| &plan.entries[entry].rule) {
        None | Some(Rule::Replicate) => Ok((weight, None, None)),
        Some(Rule::Cut(rule)) => {
            let axis = rule.axis(shape.len()).with_context(|| format!("tensor {weight}"))?;
            Ok((weight, Some(rule), axis))
        }
        Some(Rule::ScaleOf { .. }) => {
            invalid!("scale_of = {sibling:?}: {weight} follows another tensor itself")
        }
    }
}

/// The cut of a scale: as its weight's, in blocks.
fn scale_cut(
    cut: &Cut,
    weight: &[u64],
    scale: &[u64],
    block: Option<&[u64]>,
) -> Result<Option<Cut>> {
    let axis = cut.axis;
    if let Some(block) = block {
        if block.len() != weight.len() {
            refuse!("block has {} numbers, the weight {} axes", block.len(), weight.len());
        }
    }
    // One scale for the whole axis is every rank's; so are scales without this axis.
    let count = scale.get(axis).copied().unwrap_or(1);
    if count == 1 {
        return Ok(None);
    }
    let extent = weight[axis];
    let size = match block {
        Some(block) => block[axis],
        None if extent.is_multiple_of(count) => extent / count,
        None => refuse!(
            "axis {axis} has {count} scales for {extent} elements: how many each is for is not \
             clear; give block"
        ),
    };
    if size == 0 || extent.div_ceil(size) != count {
        refuse!(
            "axis {axis} has {count} scales, and {extent} elements in blocks of {size} need {}: \
             correct block",
            extent.checked_div(size).map_or(0, |_| extent.div_ceil(size))
        );
    }
    cut.of_scales(size, count).map(Some)
}

fn warnings(plan: &Plan, placed: &Placed) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, Entry { pattern, is_optional, .. }) in plan.entries.iter().enumerate() {
        if !is_optional && !placed.tensors.values().any(|(entry, _)| *entry == Some(index)) {
            warnings.push(format!("pattern {pattern:?} matches no tensor"));
        }
    }
    let unmatched = placed.tensors.iter().filter(|(_, (entry, _))| entry.is_none());
    warnings.extend(unmatched.map(|(name, _)| format!("no pattern matches {name}: replicated")));
    warnings
}

/// The shapes of a whole checkpoint, of which each rank has tensors of these shapes.
pub fn whole_shapes(plan: &Plan, local: &Tensors, tp: usize) -> Result<Tensors> {
    let mut whole = Tensors::new();
    for (name, shape) in local {
        let extents = plan.entry(name).map(|entry| &plan.entries[entry].rule);
        let shape = match extents {
            Some(Rule::Cut(rule)) => whole_shape(rule, shape, tp),
            Some(Rule::ScaleOf { sibling, block }) => {
                whole_scale(plan, local, name, (sibling, block.as_deref()), tp)
            }
            _ => Ok(shape.clone()),
        };
        let shape = shape.with_context(|| format!("tensor {name}, shape {:?}", local[name]))?;
        whole.insert(name.clone(), shape);
    }
    Ok(whole)
}

fn whole_shape(rule: &CutRule, local: &[u64], tp: usize) -> Result<Vec<u64>> {
    let mut shape = local.to_vec();
    if let Some(axis) = rule.axis(shape.len())? {
        shape[axis] = rule.whole_extent(axis, shape[axis], tp)?;
    }
    Ok(shape)
}

fn whole_scale(
    plan: &Plan,
    local: &Tensors,
    name: &str,
    (sibling, block): (&str, Option<&[u64]>),
    tp: usize,
) -> Result<Vec<u64>> {
    let (weight, rule, axis) = weight_of(plan, local, name, sibling)?;
    let mut shape = local[name].clone();
    let Some((rule, axis)) = rule.zip(axis) else { return Ok(shape) };
    let here = local[&weight][axis];
    let Some(count) = shape.get_mut(axis) else { return Ok(shape) };
    let size = match block.and_then(|block| block.get(axis).copied()) {
        Some(size) => size.max(1),
        None if *count > 1 && here.is_multiple_of(*count) => here / *count,
        None => refuse!(
            "axis {axis} has {count} scales for {here} elements: whether ranks share them is not \
             clear; give block"
        ),
    };
    let whole = rule.whole_extent(axis, here, tp)?;
    if size < whole {
        *count = whole.div_ceil(size);
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::{place, whole_shapes, Tensors};
    use crate::plan::text::{Plan, Values};

    fn plan(text: &str) -> Plan {
        let text = format!("[tensors]\n{text}");
        Plan::parse(&text, &Values::new(), &serde_json::Value::Null).unwrap()
    }

    fn tensors(shapes: &[(&str, &[u64])]) -> Tensors {
        shapes.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect()
    }

    /// The shapes of each rank, and back to those of the whole.
    fn local(text: &str, shapes: &[(&str, &[u64])], tp: usize) -> Vec<Tensors> {
        let (plan, whole) = (plan(text), tensors(shapes));
        let placed = place(&plan, &whole, tp).unwrap();
        let shape = |rank: usize, (name, shape): (&String, &Vec<u64>)| {
            let cut = placed.tensors[name].1.as_ref();
            (name.clone(), cut.map_or(shape.clone(), |cut| cut.shape_of(rank, shape)))
        };
        let ranks: Vec<Tensors> =
            (0..tp).map(|rank| whole.iter().map(|tensor| shape(rank, tensor)).collect()).collect();
        assert_eq!(whole_shapes(&plan, &ranks[0], tp).unwrap(), whole);
        ranks
    }

    #[test]
    fn weights_and_biases() {
        let ranks = local(
            "'up' = 'colwise'\n'down' = 'rowwise'\n'conv' = {rule = 'colwise', axis = -1}",
            &[
                ("up.weight", &[4, 6]),
                ("up.bias", &[4]),
                ("down.weight", &[6, 4]),
                ("down.bias", &[6]),
                ("conv.weight", &[3, 1, 2]),
                ("other", &[]),
            ],
            2,
        );
        let expected = tensors(&[
            ("up.weight", &[2, 6]),
            ("up.bias", &[2]),
            ("down.weight", &[6, 2]),
            ("down.bias", &[6]),
            ("conv.weight", &[3, 1, 1]),
            ("other", &[]),
        ]);
        assert_eq!(ranks, [expected.clone(), expected]);
    }

    #[test]
    fn scales_follow() {
        let scale = "'*.scale' = {scale_of = 'weight', block = [2, 2]}\n";
        let ranks = local(
            &format!("{scale}'up' = 'colwise'\n'down' = 'rowwise'\n'rest' = 'replicate'"),
            &[
                ("up.weight", &[8, 5]),
                ("up.scale", &[4, 3]),
                ("down.weight", &[5, 8]),
                ("down.scale", &[3, 4]),
                ("rest.weight", &[4, 4]),
                ("rest.scale", &[2, 2]),
            ],
            2,
        );
        assert_eq!((&ranks[1]["up.scale"], &ranks[1]["down.scale"]), (&vec![2, 3], &vec![3, 2]));
        assert_eq!(ranks[1]["rest.scale"], [2, 2]);
    }

    fn refused(text: &str, shapes: &[(&str, &[u64])], tp: usize) -> String {
        format!("{:#}", place(&plan(text), &tensors(shapes), tp).unwrap_err())
    }

    #[test]
    fn refusals_name_tensor_numbers_and_remedy() {
        for (text, shapes, tp, words) in [
            (
                "'a' = 'colwise'",
                &[("a.w", &[6, 4][..])][..],
                4,
                &["a.w", "6", "4 ranks", "--tp"][..],
            ),
            ("'a' = 'rowwise'", &[("a.w", &[4, 6, 2])], 2, &["a.w", "3", "axis = N"]),
            ("'a' = {rule = 'rowwise', axis = 2}", &[("a.w", &[4, 6])], 2, &["axis 2", "2 axes"]),
            ("'*.s' = {scale_of = 'w'}", &[("a.s", &[4])], 2, &["a.s", "no tensor a.w"]),
            (
                "'*.s' = {scale_of = 'w'}\n'a' = 'colwise'",
                &[("a.s", &[3]), ("a.w", &[8, 8])],
                2,
                &["a.s", "3 scales", "8", "give block"],
            ),
            (
                "'*.s' = {scale_of = 'w', block = [3, 8]}\n'a' = 'colwise'",
                &[("a.s", &[4]), ("a.w", &[8, 8])],
                2,
                &["a.s", "4 scales", "blocks of 3", "3"],
            ),
            (
                "'*.s' = {scale_of = 'w', block = [4, 8]}\n'a' = 'colwise'",
                &[("a.s", &[2]), ("a.w", &[8, 8])],
                4,
                &["a.s", "a.w", "cut at 2", "block of 4", "--tp"],
            ),
        ] {
            let error = refused(text, shapes, tp);
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
    }

    #[test]
    fn what_matches_nothing_is_told() {
        let plan = plan("'a' = 'colwise'\n'c' = {rule = 'colwise', optional = true}");
        let placed = place(&plan, &tensors(&[("b.w", &[2, 2])]), 2).unwrap();
        let told = ["pattern \"a\" matches no tensor", "no pattern matches b.w: replicated"];
        assert_eq!(placed.warnings, told);
    }
}
