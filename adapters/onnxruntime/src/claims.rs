//! Which Split nodes are worth taking from ONNX Runtime, by what a model tells of them. Nothing of
//! ONNX Runtime is in here, and nothing is measured: how many threads a session has is not told to
//! its providers, so that every bound holds for one thread and for two.

// Each bound with what lies on both sides of it: whole runs of layers in which all pieces are read
// at once (`bench/models.py`), libsplit's time by ONNX Runtime's own, 1 thread / 2 threads. AMD Zen 5
// with 32 MiB of last cache, ONNX Runtime 1.31.1, November 2026. Two runs of the same differ by 0.02.

/// Where the pieces of a row are shorter on average, in bytes, ONNX Runtime's own kernel copies them
/// one by one, and libsplit is ahead: 8: 0.58 / 0.58, 64: 0.91 / 0.90, 113 (boxes): 0.99 / 0.7;
/// 128: 1.01 / 1.04, 256: 1.02 / 1.04.
const SHORT_RUN: u64 = 128;
/// A piece so short makes up for others that are twice as long: 16 and 320: 0.93 / 0.91.
const TINY_RUN: u64 = 16;
/// From as many pieces of rows on, which is more than the difference between two nodes. 768 of 32
/// bytes: 0.94 / 0.93; 512: 1.03 / 1.06, 256: 1.13 / 1.10.
const MANY_RUNS: u64 = 768;
/// Inputs of this size and larger, in bytes, are copied faster whatever their pieces: past the caches.
/// 18 MiB: 0.9 / 0.9, 36 MiB: 0.86 / 0.86; 12 MiB: 0.97 / 1.03, 4.5 MiB: 1.02 / 0.99.
const LARGE: u64 = 16 << 20;
// Small nodes are left. They execute fewer instructions here, and chains of nothing else are faster by
// 0.03; but between others, whose data has taken the caches, each takes up to half a microsecond more.

/// The longest extent of which ONNX Runtime makes equal parts: it counts them in a float.
const FLOAT_EXTENT: u64 = 1 << 24;
/// ONNX Runtime refuses as many elements from the axis inward.
const TOO_MANY: u64 = 1 << 31;

/// What a model tells of a Split node.
#[derive(Debug, Clone)]
pub struct Split {
    pub version: i32,
    /// Bytes of an element; 0 for strings.
    pub element: u64,
    /// The extents of the input, negative where unknown; empty where even their number is.
    pub shape: Vec<i64>,
    pub axis: i64,
    /// The length of each output, negative where unknown.
    pub lengths: Vec<i64>,
    /// Whether there is an output without a name.
    pub has_unused: bool,
    /// Whether there are lengths; else, the parts are equal.
    pub has_lengths: bool,
}

/// Why a node is taken, or left to ONNX Runtime.
#[derive(Debug, PartialEq)]
pub enum Claim {
    /// ONNX Runtime cannot run it, or not with every input.
    Needed(&'static str),
    /// It is faster.
    Faster(&'static str),
    /// It would not be faster.
    Left(&'static str),
}

impl Split {
    /// Whether to take the node.
    pub fn claim(&self) -> Claim {
        if let Some(why) = self.is_needed() {
            return Claim::Needed(why);
        }
        if self.element == 0 {
            return Claim::Left("strings are copied one by one in any case");
        }
        if self.bytes().is_some_and(|bytes| bytes >= LARGE) {
            return Claim::Faster("more than caches hold");
        }
        let Some(row) = self.row() else {
            return Claim::Left("the model does not tell how long the pieces of a row are");
        };
        let run = row / self.count();
        let long = if self.has_tiny() { 2 * SHORT_RUN } else { SHORT_RUN };
        if run >= long {
            return Claim::Left("the pieces of a row are long");
        }
        // Pixels and the like: where the model does not tell how many, they are many.
        let are_many = run <= TINY_RUN && self.rows().is_none();
        if !are_many && self.runs() < MANY_RUNS {
            return Claim::Left("there is too little to copy");
        }
        Claim::Faster("many short pieces of rows")
    }

    /// Why ONNX Runtime could not run the node, or would crash.
    fn is_needed(&self) -> Option<&'static str> {
        if self.version == 1 {
            return Some("ONNX Runtime has no kernel for Split-1");
        }
        if self.has_unused {
            return Some("ONNX Runtime crashes on outputs without a name");
        }
        if self.inward().is_some_and(|elements| elements >= TOO_MANY) {
            return Some("ONNX Runtime refuses so many elements");
        }
        if self.version >= 18 && !self.has_lengths && !self.has_good_parts() {
            return Some("ONNX Runtime refuses a last part of 0, and extents above 16,777,216");
        }
        None
    }

    /// Whether ONNX Runtime makes equal parts of the extent. One that is not known may leave nothing for
    /// the last of three parts or more; of two, only extents of 0 and 1 do.
    fn has_good_parts(&self) -> bool {
        let extent = self.extents().and_then(|(_, inner)| known(*inner.first()?));
        extent.map_or(self.count() <= 2, |extent| {
            let others = extent.div_ceil(self.count()).checked_mul(self.count() - 1);
            extent <= FLOAT_EXTENT && others.is_some_and(|others| others < extent)
        })
    }

    /// Bytes of the input, if the model tells.
    pub fn bytes(&self) -> Option<u64> {
        self.rows()?.checked_mul(self.row()?)
    }

    /// Bytes of a row, which are those from the axis inward.
    fn row(&self) -> Option<u64> {
        self.inward()?.checked_mul(self.element)
    }

    /// Elements from the axis inward.
    fn inward(&self) -> Option<u64> {
        product(self.extents()?.1)
    }

    fn rows(&self) -> Option<u64> {
        product(self.extents()?.0)
    }

    /// How many pieces of rows there are if every extent that is not known is 1.
    fn runs(&self) -> u64 {
        let outer = self.extents().map_or(&[][..], |(outer, _)| outer);
        let rows = outer.iter().filter_map(|extent| known(*extent)).fold(1, u64::saturating_mul);
        rows.saturating_mul(self.count())
    }

    /// The extents before the axis, and those from it on.
    fn extents(&self) -> Option<(&[i64], &[i64])> {
        let rank = i64::try_from(self.shape.len()).ok()?;
        let axis = if self.axis < 0 { self.axis.checked_add(rank)? } else { self.axis };
        self.shape.split_at_checked(axis.try_into().ok()?).filter(|(_, inner)| !inner.is_empty())
    }

    /// Whether there is a tiny piece in every row.
    fn has_tiny(&self) -> bool {
        let inner = self.extents().and_then(|(_, inner)| product(inner.get(1..)?));
        let run = |length: &i64| known(*length)?.checked_mul(inner?)?.checked_mul(self.element);
        self.lengths.iter().filter_map(run).any(|run| run <= TINY_RUN)
    }

    fn count(&self) -> u64 {
        u64::try_from(self.lengths.len()).unwrap_or(u64::MAX).max(1)
    }
}

fn known(extent: i64) -> Option<u64> {
    extent.try_into().ok()
}

fn product(extents: &[i64]) -> Option<u64> {
    extents.iter().try_fold(1, |product: u64, extent| product.checked_mul(known(*extent)?))
}
