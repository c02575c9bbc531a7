//! Scales of a quantized weight: which of its elements each of them is for.

use super::text::{Block, BlockSize, CutRule};
use crate::failure::refuse;
use anyhow::Result;

/// The elements of a weight's axis that have one scale, and how many scales there are; none if every
/// rank needs all of them.
pub fn scale_block(
    rule: &CutRule,
    axis: usize,
    weight: &[u64],
    scale: &[u64],
    block: &Block,
) -> Result<Option<(u64, u64)>> {
    if scale.len() != weight.len() {
        // A scale for each of the outputs.
        let is_of_outputs = !rule.has_axis() && weight.len() == 2 && scale == &weight[..1];
        if !is_of_outputs {
            refuse!(
                "the scales have {} axes and the weight has {}, so it is not clear which elements \
                 each scale is for: give them their own rule",
                scale.len(),
                weight.len()
            );
        }
        return Ok((axis == 0).then_some((1, weight[0])));
    }
    if let Block::Sizes(sizes) = block {
        return block_of(sizes, axis, weight, scale);
    }
    for (at, (extent, count)) in weight.iter().zip(scale).enumerate() {
        if *count != 1 && count != extent {
            refuse!(
                "axis {at} has {count} scales for {extent} elements, and nothing says how many \
                 elements share a scale: give block, as in block = [128, 128]"
            );
        }
    }
    Ok((scale[axis] != 1).then_some((1, scale[axis])))
}

/// The same, where the plan says how many elements have one scale.
fn block_of(
    sizes: &[BlockSize],
    axis: usize,
    weight: &[u64],
    scale: &[u64],
) -> Result<Option<(u64, u64)>> {
    if sizes.len() != weight.len() {
        refuse!(
            "block has {} numbers, and the weight has {} axes: correct block",
            sizes.len(),
            weight.len()
        );
    }
    for (at, (size, (extent, count))) in sizes.iter().zip(weight.iter().zip(scale)).enumerate() {
        let Some(needed) = size.scales(*extent).filter(|needed| needed != count) else { continue };
        let blocks = match size {
            BlockSize::Elements(size) => format!("in blocks of {size}"),
            BlockSize::All => "in a single block".into(),
            BlockSize::Inverse(count) => format!("with {count} scales each"),
        };
        refuse!("axis {at} has {count} scales, and {extent} elements {blocks} need {needed}: correct block");
    }
    match sizes[axis] {
        _ if scale[axis] == 1 => Ok(None),
        BlockSize::All => Ok(None),
        BlockSize::Elements(size) => Ok(Some((size, scale[axis]))),
        BlockSize::Inverse(_) => refuse!(
            "axis {axis} is cut, and an element of it has several scales: give the scales their own rule"
        ),
    }
}

/// Refuses several scales where there can be only one.
pub fn check_single(scales: u64, block: &Block) -> Result<()> {
    match block {
        Block::Tensor(None) if scales != 1 => refuse!(
            "block = \"tensor\" means a single scale, and there are {scales}: give the size of the \
             blocks, as in block = [128, 128]"
        ),
        Block::Tensor(Some(name)) if scales != 1 => refuse!(
            "there are {scales} scales, and {name} is not known: give it with --set {name}=A,B"
        ),
        _ => Ok(()),
    }
}
