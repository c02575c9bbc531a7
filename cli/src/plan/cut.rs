//! One axis among ranks.
//!
//! What lies along the axis are groups, in each of them the parts in turn, in each part its heads,
//! each so many elements wide. The layout `concat` is a single group. Ranks take whole groups; where
//! there are more ranks than groups, the ranks of a group share the heads of each part, or each have
//! the one head that there is, if that may be replicated.

use super::text::{AxisRule, CutRule, Parts};
use crate::failure::refuse;
use anyhow::Result;
use std::fmt::Write;

/// Elements from one to another, along the axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    pub begin: u64,
    pub end: u64,
}

impl Segment {
    pub fn len(self) -> u64 {
        self.end - self.begin
    }
}

/// How a tensor is cut: which segments of the axis each rank has, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub axis: usize,
    pub extent: u64,
    pub ranks: Vec<Vec<Segment>>,
}

impl Cut {
    /// The extent of the axis that a rank has.
    pub fn extent_of(&self, rank: usize) -> u64 {
        self.ranks[rank].iter().map(|segment| segment.len()).sum()
    }

    /// The shape that a rank has.
    pub fn shape_of(&self, rank: usize, shape: &[u64]) -> Vec<u64> {
        let mut shape = shape.to_vec();
        shape[self.axis] = self.extent_of(rank);
        shape
    }

    /// The cut of scales, one for so many elements ('block') of what this cut is of.
    pub fn of_scales(&self, block: u64, scales: u64) -> Result<Self> {
        let scale = |segment: &Segment| {
            let Segment { begin, end } = *segment;
            let is_whole = |at: u64| at.is_multiple_of(block) || at == self.extent;
            if !is_whole(begin) || !is_whole(end) {
                let at = if is_whole(begin) { end } else { begin };
                refuse!(
                    "its weight is cut at {at} of axis {}, within a block of {block} that has one \
                     scale: use a --tp that gives each rank whole blocks",
                    self.axis
                );
            }
            Ok(Segment { begin: begin.div_ceil(block), end: end.div_ceil(block) })
        };
        let ranks = self.ranks.iter().map(|segments| segments.iter().map(scale).collect());
        Ok(Self { axis: self.axis, extent: scales, ranks: ranks.collect::<Result<_>>()? })
    }
}

impl CutRule {
    /// The axis that is cut; none if the rule replicates a tensor of this rank.
    pub fn axis(&self, rank: usize) -> Result<Option<usize>> {
        match self.axis {
            AxisRule::Given(axis) => {
                let count = i64::try_from(rank).unwrap_or(i64::MAX);
                let found = if axis < 0 { axis.saturating_add(count) } else { axis };
                match usize::try_from(found) {
                    Ok(axis) if axis < rank => Ok(Some(axis)),
                    _ => refuse!(
                        "axis {axis} is outside of the {rank} axes that it has: correct axis, or give \
                         the tensor a pattern of its own"
                    ),
                }
            }
            AxisRule::In if rank == 1 => Ok(None),
            AxisRule::Out if rank == 1 || rank == 2 => Ok(Some(0)),
            AxisRule::In if rank == 2 => Ok(Some(1)),
            _ => refuse!(
                "{} says which axis is cut of a weight with 2 axes or a bias with 1, and this has \
                 {rank}: name it with axis = N",
                self.name
            ),
        }
    }

    /// The segments of each of 'tp' ranks, along an axis of this extent.
    pub fn cut(&self, axis: usize, extent: u64, tp: usize) -> Result<Cut> {
        let along = Along::new(self, axis, extent)?;
        let ranks = (0..tp as u64).map(|rank| along.segments(rank, tp as u64));
        Ok(Cut { axis, extent, ranks: ranks.collect::<Result<_>>()? })
    }

    /// The extent of the whole axis, of which a rank has so much.
    pub fn whole_extent(&self, axis: usize, local: u64, tp: usize) -> Result<u64> {
        let Parts::Heads(parts) = &self.parts else { return Ok(local.saturating_mul(tp as u64)) };
        let heads: u64 = parts.iter().map(|part| part.1).sum();
        let of_heads = Self { head_dim: None, ..self.clone() }.cut(axis, heads, tp)?;
        let here = of_heads.extent_of(0);
        if !local.is_multiple_of(here) {
            refuse!("axis {axis} has {local}, which is no multiple of the {here} heads of a rank");
        }
        Ok((local / here).saturating_mul(heads))
    }
}

/// What lies along an axis.
struct Along<'a> {
    rule: &'a CutRule,
    /// Parts with their heads in one group.
    parts: Vec<(&'a str, u64)>,
    groups: u64,
    /// Elements of a head.
    width: u64,
    axis: usize,
}

impl<'a> Along<'a> {
    fn new(rule: &'a CutRule, axis: usize, extent: u64) -> Result<Self> {
        let mut parts: Vec<(&str, u64)> = match &rule.parts {
            Parts::Heads(parts) => parts.iter().map(|part| (part.0.as_str(), part.1)).collect(),
            Parts::Elements(count) if extent.is_multiple_of(*count) => {
                let each = if *count == 1 { "its extent" } else { "each part" };
                vec![(each, extent / count); usize::try_from(*count)?]
            }
            Parts::Elements(count) => {
                refuse!(
                    "axis {axis} has {extent}, which does not divide into {count} equal parts: \
                     correct split_factor, or give parts"
                );
            }
        };
        let heads = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.1));
        let Some(heads) = heads else { refuse!("parts: more than can be numbered") };
        let width = extent.checked_div(heads).unwrap_or(0);
        if heads.checked_mul(width) != Some(extent) {
            refuse!(
                "axis {axis} has {extent}, which is no multiple of {}: correct the number of heads",
                sum(&parts)
            );
        }
        if let Some(size) = rule.head_dim.filter(|size| *size != width) {
            refuse!(
                "axis {axis} has {extent}, so that each of {} is {width} wide, and not head_dim \
                 {size}: correct either",
                sum(&parts)
            );
        }
        let mut groups = 1;
        if rule.is_grouped {
            let fewest = parts.iter().map(|part| part.1).min().unwrap_or(1);
            groups = rule.groups.unwrap_or(fewest);
            for (name, count) in &mut parts {
                if groups == 0 || *count % groups != 0 {
                    refuse!(
                        "{name} has {count} heads, which do not divide into {groups} groups: \
                             say how many with groups = N"
                    );
                }
                *count /= groups;
            }
        }
        Ok(Self { rule, parts, groups, width, axis })
    }

    fn segments(&self, rank: u64, tp: u64) -> Result<Vec<Segment>> {
        let heads: u64 = self.parts.iter().map(|part| part.1).sum();
        let group_width = heads * self.width;
        if self.groups.is_multiple_of(tp) {
            let each = self.groups / tp * group_width;
            return Ok(vec![Segment { begin: rank * each, end: (rank + 1) * each }]);
        }
        if !tp.is_multiple_of(self.groups) {
            refuse!(
                "axis {} has {} groups of {}, which cannot be shared among {tp} ranks: use a --tp \
                 that divides {0}, or a multiple of it",
                self.axis,
                self.groups,
                sum(&self.parts)
            );
        }
        let (sharers, group) = (tp / self.groups, rank / (tp / self.groups));
        let sharer = rank % sharers;
        let mut begin = group * group_width;
        let mut segments = Vec::new();
        for (name, count) in &self.parts {
            let (first, taken) = self.share(name, *count, sharer, sharers)?;
            let at = begin + first * self.width;
            segments.push(Segment { begin: at, end: at + taken * self.width });
            begin += count * self.width;
        }
        Ok(segments)
    }

    /// Which of a part's heads in a group one of its ranks takes: the first, and how many.
    fn share(&self, name: &str, count: u64, sharer: u64, sharers: u64) -> Result<(u64, u64)> {
        if count.is_multiple_of(sharers) {
            return Ok((sharer * (count / sharers), count / sharers));
        }
        let may_replicate = self.may_replicate(name);
        if may_replicate && sharers.is_multiple_of(count) {
            return Ok((sharer / (sharers / count), 1));
        }
        let (ranks, axis) = (sharers * self.groups, self.axis);
        let whose = match (self.groups, &self.rule.parts) {
            (1, Parts::Elements(_)) => format!("{name} is {count}"),
            (1, _) => format!("{name} is {count} of {} elements each", self.width),
            (groups, _) => {
                format!("{name} is {count} of {} in each of {groups} groups", self.width)
            }
        };
        let mut remedy = format!("use a --tp that divides {}", count * self.groups);
        if may_replicate {
            let _ = write!(remedy, " or is a multiple of it");
        } else if sharers.is_multiple_of(count) && matches!(self.rule.parts, Parts::Heads(_)) {
            let _ = write!(remedy, ", or replicate_kv = true if these are key or value heads");
        }
        refuse!("axis {axis}: {whose}, which cannot be shared among {ranks} ranks: {remedy}");
    }

    fn may_replicate(&self, name: &str) -> bool {
        let is_kv = matches!(name, "k" | "v" | "key" | "value" | "kv");
        self.rule.replicate_kv && (is_kv || self.parts.len() == 1)
    }
}

/// As `q 32 + k 8 + v 8`.
fn sum(parts: &[(&str, u64)]) -> String {
    let parts: Vec<_> = parts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    parts.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::{CutRule, Segment};
    use crate::plan::text::{Plan, Rule, Values};

    fn rule(text: &str) -> CutRule {
        let text = format!("[tensors]\na = {{{text}}}");
        let plan = Plan::parse(&text, &Values::new(), &serde_json::Value::Null).unwrap();
        match plan.entries.into_iter().next().map(|entry| entry.rule) {
            Some(Rule::Cut(rule)) => rule,
            other => panic!("{other:?}"),
        }
    }

    fn ranks(text: &str, extent: u64, tp: usize) -> Vec<Vec<(u64, u64)>> {
        let cut = rule(text).cut(0, extent, tp).unwrap();
        let pair = |segment: &Segment| (segment.begin, segment.end);
        cut.ranks.iter().map(|segments| segments.iter().map(pair).collect()).collect()
    }

    fn refused(text: &str, extent: u64, tp: usize) -> String {
        rule(text).cut(0, extent, tp).unwrap_err().to_string()
    }

    #[test]
    fn equal_parts() {
        assert_eq!(ranks("rule = 'colwise'", 6, 3), [[(0, 2)], [(2, 4)], [(4, 6)]]);
        assert_eq!(ranks("rule = 'packed'", 8, 2), [[(0, 2), (4, 6)], [(2, 4), (6, 8)]]);
        assert_eq!(ranks("rule = 'colwise'", 0, 2), [[(0, 0)], [(0, 0)]]);
        let error = refused("rule = 'colwise'", 6, 4);
        assert!(error.contains('6') && error.contains("4 ranks"), "{error}");
        let error = refused("rule = 'packed', split_factor = 3", 8, 2);
        assert!(error.contains('8') && error.contains("3 equal parts"), "{error}");
    }

    #[test]
    fn heads_stay_in_one_piece() {
        assert_eq!(ranks("rule = 'colwise', heads = 4", 12, 2), [[(0, 6)], [(6, 12)]]);
        let error = refused("rule = 'colwise', heads = 12", 768, 8);
        assert!(
            ["12", "64", "8 ranks", "divides 12"].iter().all(|it| error.contains(it)),
            "{error}"
        );
        let error = refused("rule = 'colwise', heads = 5", 12, 1);
        assert!(error.contains("12") && error.contains("heads 5"), "{error}");
        let error = refused("rule = 'colwise', heads = 4, head_dim = 2", 12, 1);
        assert!(error.contains("3 wide") && error.contains("head_dim 2"), "{error}");
    }

    #[test]
    fn kv_heads_are_replicated_where_that_is_said() {
        let kv = "rule = 'colwise', heads = 2";
        assert_eq!(
            ranks(&format!("{kv}, replicate_kv = true"), 6, 4),
            [[(0, 3)], [(0, 3)], [(3, 6)], [(3, 6)]]
        );
        assert!(refused(kv, 6, 4).contains("replicate_kv = true"));
        assert!(refused(&format!("{kv}, replicate_kv = true"), 6, 3).contains("multiple"));
        // Never the queries.
        let fused = "rule = 'packed', parts = 'q:2,k:1,v:1', replicate_kv = true";
        assert_eq!(ranks(fused, 4, 2), [[(0, 1), (2, 3), (3, 4)], [(1, 2), (2, 3), (3, 4)]]);
        assert!(refused(fused, 4, 4).contains("q is 2"));
    }

    #[test]
    fn grouped_parts() {
        // Two groups of q q k v, each 1 wide.
        let fused = "rule = 'packed', layout = 'grouped', parts = 'q:4,k:2,v:2'";
        assert_eq!(ranks(fused, 8, 2), [[(0, 4)], [(4, 8)]]);
        assert!(refused(fused, 8, 4).contains("k is 1"));
        let replicated = format!("{fused}, replicate_kv = true");
        assert_eq!(
            ranks(&replicated, 8, 4),
            [
                [(0, 1), (2, 3), (3, 4)],
                [(1, 2), (2, 3), (3, 4)],
                [(4, 5), (6, 7), (7, 8)],
                [(5, 6), (6, 7), (7, 8)]
            ]
        );
        assert!(refused(&replicated, 8, 3).contains("2 groups"));
        let by_hand = "rule = 'packed', layout = 'grouped', groups = 1, parts = 'q:4,v:4,k:4'";
        assert_eq!(ranks(by_hand, 12, 2)[1], [(2, 4), (6, 8), (10, 12)]);
        let odd = "rule = 'packed', layout = 'grouped', parts = 'q:5,k:2,v:2'";
        assert!(refused(odd, 9, 1).contains("groups = N"));
    }

    #[test]
    fn the_whole_from_what_a_rank_has() {
        for (text, extent, tp) in [
            ("rule = 'colwise'", 12, 4),
            ("rule = 'packed'", 12, 2),
            ("rule = 'colwise', heads = 2, replicate_kv = true", 6, 4),
            ("rule = 'packed', parts = 'q:4,k:2,v:2', replicate_kv = true", 24, 4),
            (
                "rule = 'packed', parts = 'q:4,k:2,v:2', layout = 'grouped', replicate_kv = true",
                24,
                4,
            ),
        ] {
            let rule = rule(text);
            let local = rule.cut(0, extent, tp).unwrap().extent_of(tp - 1);
            assert_eq!(rule.whole_extent(0, local, tp).unwrap(), extent, "{text}");
        }
    }

    #[test]
    fn scales_follow_their_weight() {
        let cut = rule("rule = 'colwise'").cut(0, 8, 2).unwrap().of_scales(2, 4).unwrap();
        assert_eq!(cut.ranks, [[Segment { begin: 0, end: 2 }], [Segment { begin: 2, end: 4 }]]);
        let error = rule("rule = 'colwise'").cut(0, 8, 4).unwrap().of_scales(4, 2).unwrap_err();
        assert!(error.to_string().contains("cut at 2"), "{error}");
        // The last block may be smaller.
        let cut = rule("rule = 'packed', parts = 'a:2,b:2'").cut(0, 4, 1).unwrap();
        assert_eq!(cut.of_scales(3, 2).unwrap().ranks, [[Segment { begin: 0, end: 2 }]]);
    }
}
