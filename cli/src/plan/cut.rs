//! One axis among ranks.
//!
//! What lies along the axis are groups, in each of them the parts in turn, in each part its heads,
//! each so many elements wide. The layout `concat` is a single group. Ranks take whole groups; where
//! there are more ranks than groups, the ranks of a group share the heads of each part, or each have
//! the one head that there is, if that may be replicated. A part may be whole on every rank, and
//! zeros may follow the last head, so that the heads divide.

use super::text::{is_key_or_value, AxisRule, CutRule, Part, Parts};
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
    /// The extent of the axis, with the zeros that are added to it.
    pub extent: u64,
    /// The extent of the tensor itself.
    pub real: u64,
    pub ranks: Vec<Vec<Segment>>,
}

impl Cut {
    /// Equal parts of an axis, which is a multiple of them.
    pub fn equal(axis: usize, extent: u64, tp: usize) -> Self {
        let each = extent / tp as u64;
        let ranks =
            (0..tp as u64).map(|rank| vec![Segment { begin: rank * each, end: (rank + 1) * each }]);
        Self { axis, extent, real: extent, ranks: ranks.collect() }
    }

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
                    "its weight would be cut at {at} on axis {}, inside a block of {block} that \
                     shares one scale: use a --tp that gives each rank whole blocks",
                    self.axis
                );
            }
            Ok(Segment { begin: begin.div_ceil(block), end: end.div_ceil(block) })
        };
        let ranks = self.ranks.iter().map(|segments| segments.iter().map(scale).collect());
        let ranks = ranks.collect::<Result<_>>()?;
        Ok(Self { axis: self.axis, extent: self.extent.div_ceil(block), real: scales, ranks })
    }
}

impl CutRule {
    /// Whether the plan says which axis is cut.
    pub fn has_axis(&self) -> bool {
        matches!(self.axis, AxisRule::Given(_))
    }

    /// The axis that is cut of a tensor with so many axes, perhaps one whose name is weight.
    pub fn axis(&self, rank: usize, is_weight: bool) -> Result<Option<usize>> {
        match self.axis {
            AxisRule::Given(axis) => {
                let count = i64::try_from(rank).unwrap_or(i64::MAX);
                let found = if axis < 0 { axis.saturating_add(count) } else { axis };
                match usize::try_from(found) {
                    Ok(axis) if axis < rank => Ok(Some(axis)),
                    _ => refuse!(
                        "axis {axis} is out of range, as the tensor has {rank} axes: correct \
                         axis, or give the tensor its own pattern"
                    ),
                }
            }
            AxisRule::Out if rank == 2 || rank == 1 && !is_weight => Ok(Some(0)),
            AxisRule::In if rank == 2 => Ok(Some(1)),
            _ => refuse!(
                "{} cuts a weight [out, in] with 2 axes, and this tensor has {rank}: choose the \
                 axis with axis = N, or replicate the tensor",
                self.name
            ),
        }
    }

    /// The segments of each of 'tp' ranks, along an axis of this extent.
    pub fn cut(&self, axis: usize, extent: u64, tp: usize) -> Result<Cut> {
        let along = Along::new(self, axis, extent)?;
        let ranks = (0..tp as u64).map(|rank| along.segments(rank, tp as u64));
        let ranks = ranks.collect::<Result<_>>()?;
        Ok(Cut { axis, extent: along.extent(), real: extent, ranks })
    }

    /// Of what every rank has a part of its own: from where to where a rank's part goes, and how much the
    /// whole is without padding. In heads, or other units that are the same in tensors that are cut alike.
    pub fn shares(&self, axis: usize, extent: u64, tp: usize) -> Result<Vec<(u64, u64, u64)>> {
        let along = Along::new(self, axis, extent)?;
        let shares = (0..tp as u64).map(|rank| along.own_share(rank, tp as u64));
        shares.collect()
    }

    /// Elements of a head of what every rank has a part of its own, and how many such heads there are.
    pub fn heads(&self, axis: usize, extent: u64) -> Result<(u64, u64)> {
        let along = Along::new(self, axis, extent)?;
        let own = along.own();
        Ok((own.width, own.real * along.groups))
    }

    /// The extent of the whole axis, of which a rank has so much.
    pub fn whole_extent(&self, axis: usize, local: u64, tp: usize) -> Result<u64> {
        if self.pad_to.is_some_and(|multiple| multiple > 1) {
            refuse!(
                "pad_to: how much of axis {axis} is padding is not known without libsplit.json"
            );
        }
        let Parts::Heads(parts) = &self.parts else { return Ok(local.saturating_mul(tp as u64)) };
        let sizes = parts.iter().map(|part| part.heads.checked_mul(part.width.unwrap_or(1)));
        let sum = sizes.into_iter().try_fold(0_u64, |sum, size| sum.checked_add(size?));
        let Some(units) = sum else { refuse!("parts: the sizes overflow 64 bits") };
        let here = Self { head_dim: None, ..self.clone() }.cut(axis, units, tp)?.extent_of(0);
        if parts.iter().any(|part| part.width.is_some()) && local != here {
            refuse!("axis {axis} has an extent of {local}, but the parts in the plan give a rank {here}");
        }
        if !local.is_multiple_of(here) {
            refuse!(
                "axis {axis} has {local}, which is not a multiple of the {here} heads of a rank"
            );
        }
        Ok((local / here).saturating_mul(units))
    }
}

/// Heads of one part within a group.
struct Heads<'a> {
    name: &'a str,
    count: u64,
    /// How many of them are not padding.
    real: u64,
    /// Elements of a head.
    width: u64,
    is_whole: bool,
    may_replicate: bool,
}

/// What lies along an axis.
struct Along<'a> {
    rule: &'a CutRule,
    /// The parts of one group.
    parts: Vec<Heads<'a>>,
    groups: u64,
    axis: usize,
}

impl<'a> Along<'a> {
    fn new(rule: &'a CutRule, axis: usize, extent: u64) -> Result<Self> {
        let mut parts = match &rule.parts {
            Parts::Heads(parts) => heads_of(rule, parts, axis, extent)?,
            Parts::Elements(count) if extent.is_multiple_of(*count) => {
                let each = extent / count;
                let part = || Heads {
                    name: "part",
                    count: each,
                    real: each,
                    width: 1,
                    is_whole: false,
                    may_replicate: false,
                };
                (0..*count).map(|_| part()).collect()
            }
            Parts::Elements(count) => {
                refuse!(
                    "axis {axis} has {extent}, which does not divide into {count} equal parts: \
                     correct split_factor, or give parts"
                );
            }
        };
        let mut groups = 1;
        if rule.is_grouped {
            let fewest = parts.iter().map(|part| part.count).min().unwrap_or(1);
            groups = rule.groups.unwrap_or(fewest);
            for Heads { name, count, real, .. } in &mut parts {
                if !count.is_multiple_of(groups) {
                    refuse!(
                        "{name} has {count} heads, which do not divide into {groups} groups: give \
                         their number with groups = N"
                    );
                }
                *count /= groups;
                *real = *count;
            }
        }
        if let Some(multiple) = rule.pad_to {
            for part in &mut parts {
                let padded = part.count.checked_next_multiple_of(multiple);
                let padded = padded.filter(|count| count.checked_mul(part.width).is_some());
                let Some(padded) = padded else { refuse!("pad_to {multiple}: it is too large") };
                part.count = padded;
            }
        }
        Ok(Self { rule, parts, groups, axis })
    }

    /// Elements of a group.
    fn group(&self) -> u64 {
        self.parts.iter().map(|part| part.count * part.width).sum()
    }

    /// Elements along the axis, with the zeros that are added.
    fn extent(&self) -> u64 {
        self.groups * self.group()
    }

    /// The part of which every rank has heads of its own; the first, if there is none.
    fn own(&self) -> &Heads<'a> {
        let own = self.parts.iter().find(|part| !part.is_whole && !part.may_replicate);
        own.unwrap_or(&self.parts[0])
    }

    fn own_share(&self, rank: u64, tp: u64) -> Result<(u64, u64, u64)> {
        let part = self.own();
        let (group, first, taken) = if self.groups.is_multiple_of(tp) {
            let each = self.groups / tp;
            (rank * each, 0, each * part.count)
        } else {
            let sharers = tp / self.groups; // 'segments' has been called, which checks that
            let (first, taken) = self.share(part, rank % sharers, sharers)?;
            (rank / sharers, first, taken)
        };
        let begin = group * part.count + first;
        Ok((begin, begin + taken, part.real * self.groups))
    }

    fn segments(&self, rank: u64, tp: u64) -> Result<Vec<Segment>> {
        let group_width = self.group();
        let has_whole = self.parts.iter().any(|part| part.is_whole);
        if self.groups.is_multiple_of(tp) && !has_whole {
            let each = self.groups / tp * group_width;
            return Ok(vec![Segment { begin: rank * each, end: (rank + 1) * each }]);
        }
        if !tp.is_multiple_of(self.groups) {
            refuse!(
                "axis {} has {} groups of {}, which cannot be shared among {tp} ranks: use a --tp \
                 that divides {}, or a multiple of it",
                self.axis,
                self.groups,
                sum(&self.parts),
                self.groups
            );
        }
        let (sharers, group) = (tp / self.groups, rank / (tp / self.groups));
        let mut begin = group * group_width;
        let mut segments = Vec::new();
        for part in &self.parts {
            let (first, taken) = if part.is_whole {
                (0, part.count)
            } else {
                self.share(part, rank % sharers, sharers)?
            };
            let at = begin + first * part.width;
            // Neighbours stay apart: what two ranks both have is a segment of its own in both.
            segments.push(Segment { begin: at, end: at + taken * part.width });
            begin += part.count * part.width;
        }
        Ok(segments)
    }

    /// Which of a part's heads in a group one of its ranks takes: the first, and how many.
    fn share(&self, part: &Heads, sharer: u64, sharers: u64) -> Result<(u64, u64)> {
        let Heads { name, count, width, may_replicate, .. } = *part;
        if count.is_multiple_of(sharers) {
            return Ok((sharer * (count / sharers), count / sharers));
        }
        if may_replicate && sharers.is_multiple_of(count) {
            return Ok((sharer / (sharers / count), 1));
        }
        let (ranks, axis, all) = (sharers * self.groups, self.axis, count * self.groups);
        let whose = match (self.groups, &self.rule.parts) {
            (1, Parts::Elements(1)) => format!("its extent {count}"),
            (1, Parts::Elements(_)) => format!("the extent {count} of each part"),
            (1, _) => format!("{} (width {width})", heads_text(name, count)),
            (groups, _) => {
                format!("{} (width {width}) in each of {groups} groups", heads_text(name, count))
            }
        };
        let mut remedy = match all {
            1 => "replicate it".into(),
            all => format!("use a --tp that divides {all}"),
        };
        let is_heads = name == "heads" && self.rule.name == "colwise";
        if may_replicate {
            let _ = write!(remedy, " or is a multiple of it");
        } else if !self.rule.replicate_kv
            && sharers.is_multiple_of(count)
            && (is_key_or_value(name) || is_heads)
        {
            let _ = write!(remedy, ", or replicate_kv = true if these are key or value heads");
        } else if let Some(name) = &self.rule.pad_name {
            let _ = write!(remedy, ", or --set {name}={ranks} to add zeros");
        }
        refuse!("axis {axis}: {whose} cannot be shared equally among {ranks} ranks: {remedy}");
    }
}

/// The parts with the widths of their heads, which fill the axis.
fn heads_of<'a>(
    rule: &CutRule,
    parts: &'a [Part],
    axis: usize,
    extent: u64,
) -> Result<Vec<Heads<'a>>> {
    let count = parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.heads));
    let Some(count) = count else { refuse!("parts: the sizes overflow 64 bits") };
    let width = extent / count;
    let heads: Vec<_> = parts
        .iter()
        .map(|part| Heads {
            name: &part.name,
            count: part.heads,
            real: part.heads,
            width: part.width.unwrap_or(width),
            is_whole: part.is_whole,
            may_replicate: part.may_replicate,
        })
        .collect();
    let total = heads
        .iter()
        .try_fold(0_u64, |total, part| total.checked_add(part.count.checked_mul(part.width)?));
    if parts.iter().any(|part| part.width.is_some()) {
        if total != Some(extent) {
            refuse!(
                "axis {axis} has {extent}, and the parts {} take {}: correct parts",
                sum(&heads),
                total.map_or("more than 64 bits hold".into(), |total| total.to_string())
            );
        }
    } else if total != Some(extent) {
        refuse!(
            "axis {axis} has {extent}, which is not a multiple of {}: correct the number of heads",
            sum(&heads)
        );
    }
    if let Some(size) = rule.head_dim.filter(|size| heads.iter().any(|part| part.width != *size)) {
        refuse!(
            "axis {axis} has {extent}, so each of {} is {width} wide, but head_dim is {size}: \
             correct one of them",
            sum(&heads)
        );
    }
    Ok(heads)
}

/// As `8 heads`, or `8 heads of q`.
fn heads_text(name: &str, count: u64) -> String {
    match (name, count) {
        ("heads", 1) => "1 head".into(),
        ("heads", _) => format!("{count} heads"),
        (_, 1) => format!("1 head of {name}"),
        _ => format!("{count} heads of {name}"),
    }
}

/// As `32 heads of q + 8 heads of k`.
fn sum(parts: &[Heads]) -> String {
    let parts: Vec<_> = parts.iter().map(|part| heads_text(part.name, part.count)).collect();
    parts.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::{CutRule, Segment};
    use crate::config::Config;
    use crate::plan::numbers::Numbers;
    use crate::plan::text::{Plan, Rule, Values};

    fn rule(text: &str) -> CutRule {
        let plan = Plan::parse(&format!("[tensors]\na = {{{text}}}"), None).unwrap();
        let (given, config) = (Values::new(), Config::default());
        let mut numbers =
            Numbers { given: &given, plan: &plan, config: &config, tp: 2, used: Values::new() };
        match plan.entries[0].rule(&mut numbers).unwrap() {
            Rule::Cut(rule) => rule,
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
        assert!(error.contains("12") && error.contains("5 heads"), "{error}");
        let error = refused("rule = 'colwise', heads = 4, head_dim = 2", 12, 1);
        assert!(error.contains("3 wide") && error.contains("head_dim is 2"), "{error}");
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
        assert!(refused(fused, 4, 4).contains("2 heads of q"));
    }

    #[test]
    fn grouped_parts() {
        // Two groups of q q k v, each 1 wide.
        let fused = "rule = 'packed', layout = 'grouped', parts = 'q:4,k:2,v:2'";
        assert_eq!(ranks(fused, 8, 2), [[(0, 4)], [(4, 8)]]);
        assert!(refused(fused, 8, 4).contains("1 head of k"));
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
