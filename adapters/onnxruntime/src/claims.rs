//! Which Split nodes are worth taking from ONNX Runtime, judged by what the model says about them. This
//! file does not use ONNX Runtime, and measures nothing. Providers do not know how many threads a session
//! has, so every bound holds for one thread and for two.

use crate::tensor::axis_index;

// Each bound with what lies on both sides of it: whole runs of layers in which all pieces are read
// at once (`bench/models.py`), libsplit's time by ONNX Runtime's own, 1 thread / 2 threads. AMD Zen 5
// with 32 MiB of last cache, ONNX Runtime 1.31.1, November 2026. Two runs of the same differ by 0.02.

/// Where the pieces of a row are shorter on average, in bytes, ONNX Runtime's own kernel copies them
/// one by one, and libsplit is ahead: 8: 0.58 / 0.58, 64: 0.91 / 0.90, 113 (boxes): 0.93 / 0.90;
/// 128: 1.00 / 0.91 of 1 MiB, but up to 1.4 of 4 MiB with two threads, 256: 1.03 / 0.91, 1.10 / 0.99.
const SHORT_RUN: u64 = 128;
/// A piece so short makes up for others: pieces of four times that average. 16 and 496: 0.90 / 0.91, 12
/// and 500: 0.97 / 0.95; 4 and 1020: 0.97 / 1.0.
const TINY_RUN: u64 = 16;
const LONG_BESIDE_TINY: u64 = 4 * SHORT_RUN;
/// From as many pieces of rows on, which is more than the difference between two nodes. 576 of 32
/// bytes: 0.95 / 0.93; 384: 1.00 / 0.97, 192: 1.06 / 1.05; 384 of 16: 0.94 / 0.90.
const MANY_RUNS: u64 = 576;
/// Pieces of one element, which ONNX Runtime has a quicker way for, from as many rows on. 2 pieces of
/// 768: 0.98 / 0.98, of 512: 1.05 / 1.03, of 384: 1.09 / 1.07; 4 of 600: 0.98, of 100: 1.19; 64 of
/// 1024: 0.73 / 0.72, of 256: 0.82, of 32: 1.06 / 1.02.
const MANY_ROWS: u64 = 768;
/// Inputs of this size and larger, in bytes, are copied faster whatever their pieces: past the caches.
/// 18 MiB: 0.9 / 0.9, 36 MiB: 0.86 / 0.86; 12 MiB: 0.97 / 1.03, 4.5 MiB: 1.02 / 0.99.
const LARGE: u64 = 16 << 20;
/// Pieces of as many elements are copied faster among quantized values, too, although ONNX Runtime would then not
/// have to dequantize and quantize them: it copies each on its own. It has a quicker way for single ones, and with
/// longer ones there are fewer for as much to quantize.
const QUANTIZED_RUN: core::ops::RangeInclusive<u64> = 2..=3;
// Small nodes are left. They execute fewer instructions here, and chains of nothing else are faster by
// 0.03; but between others, whose data has taken the caches, each takes up to half a microsecond more.

/// The release from which on ONNX Runtime makes equal parts as the operator's document says, the last
/// of 0 too.
const MENDED: u32 = 32;
/// The longest extent of which it did before: it counted them in a float.
const FLOAT_EXTENT: u64 = 1 << 24;
/// ONNX Runtime refuses as many elements from the axis inward.
const TOO_MANY: u64 = 1 << 31;

/// What a model says about a Split node.
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
    /// What ONNX Runtime's optimizer does with the nodes around it, if the Split is ONNX Runtime's.
    pub crossed: Option<Crossed>,
    /// Which ONNX Runtime would run it: N of release 1.N.
    pub release: u32,
}

/// What ONNX Runtime's optimizer does across a Split of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Crossed {
    /// It moves quantization, and the transposes of quantized convolutions, past it.
    Quantized,
    /// It converts it to float32, with its neighbours.
    Cast,
    /// It makes an attention of it and of what comes after it.
    Attention,
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
        match self.crossed {
            Some(Crossed::Quantized) if !self.is_fast_among_quantized() => {
                return Claim::Left("ONNX Runtime moves quantization past it");
            }
            Some(Crossed::Cast) => {
                return Claim::Left("ONNX Runtime converts it to float32, with its neighbours");
            }
            Some(Crossed::Attention) => {
                return Claim::Left("ONNX Runtime may make an attention of it and its neighbours");
            }
            Some(Crossed::Quantized) | None => {}
        }
        if self.bytes().is_some_and(|bytes| bytes >= LARGE) {
            return Claim::Faster("the input does not fit in the caches");
        }
        let Some(row) = self.row() else {
            return Claim::Left("the model does not say how long the pieces of a row are");
        };
        let run = row / self.count();
        let long = if self.has_tiny() { LONG_BESIDE_TINY } else { SHORT_RUN };
        if run >= long {
            return Claim::Left("the pieces of a row are long");
        }
        if !self.are_many(run) {
            return Claim::Left("there is too little to copy");
        }
        Claim::Faster("many short pieces of rows")
    }

    /// Whether there are many pieces of rows, of so many bytes on average.
    fn are_many(&self, run: u64) -> bool {
        let are_single = self.inward() == Some(self.count());
        // Tiny ones, where the model does not tell how many, do not lose (1 to 128 rows of 3 × 8 bytes:
        // 0.98); single ones do, unless they are pixels: neither height nor width is known.
        let unknown = self.outer().iter().filter(|extent| known(**extent).is_none()).count();
        if run <= TINY_RUN && unknown > usize::from(are_single) {
            return true;
        }
        let (rows, count) = (self.least_rows(), self.count());
        if are_single {
            rows >= MANY_ROWS
        } else {
            rows.saturating_mul(count) >= MANY_RUNS
        }
    }

    /// Whether it gains more than moving quantization past it does.
    fn is_fast_among_quantized(&self) -> bool {
        self.inward().is_some_and(|elements| QUANTIZED_RUN.contains(&(elements / self.count())))
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
            return Some("ONNX Runtime refuses this many elements");
        }
        if self.counts_in_floats() && !self.has_good_parts() {
            return Some("ONNX Runtime refuses a last part of 0, and extents above 16,777,216");
        }
        None
    }

    /// Whether ONNX Runtime makes equal parts the way it did before release 1.32.
    fn counts_in_floats(&self) -> bool {
        self.release < MENDED && self.version >= 18 && !self.has_lengths
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

    /// The bytes of the input, if the model says how many there are.
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

    /// How many rows there are if every extent that is not known is 1.
    fn least_rows(&self) -> u64 {
        self.outer().iter().filter_map(|extent| known(*extent)).fold(1, u64::saturating_mul)
    }

    fn outer(&self) -> &[i64] {
        self.extents().map_or(&[], |(outer, _)| outer)
    }

    /// The extents before the axis, and those from it on.
    fn extents(&self) -> Option<(&[i64], &[i64])> {
        axis_index(self.axis, &self.shape).map(|axis| self.shape.split_at(axis))
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
