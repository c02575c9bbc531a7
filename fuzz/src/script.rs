//! The fuzzer's bytes as a call, with every number in one fixed order. The same function reads and
//! writes them, so that seeds can be made.

/// A call. Fields that are missing at the end of the bytes are 0.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Which groups of numbers are taken as they are ([`wild`]); the others are made valid.
    pub wild: i64,
    pub op: i64,
    pub opset: i64,
    pub axis: i64,
    pub num_outputs: i64,
    pub keepdims: i64,
    pub flags: i64,
    pub input: Tensor,
    pub rank: i64,
    pub shape: [i64; 8],
    /// How lengths are given: see [`crate::call`].
    pub lengths: i64,
    pub list: Tensor,
    pub list_rank: i64,
    pub list_len: i64,
    pub list_step: i64,
    pub values: [i64; 8],
    /// The `num_outputs` argument, if it is wild.
    pub given: i64,
    /// Which pointer or structure is spoilt, and how.
    pub fault: i64,
    pub fault_size: i64,
    /// How the copy is run.
    pub executor: i64,
    pub max_tasks: i64,
    pub seed: i64,
    /// Descriptors of outputs, used in turn.
    pub outputs: [Tensor; 4],
}

/// A descriptor's numbers.
#[derive(Debug, Clone, Default)]
pub struct Tensor {
    pub dtype: i64,
    /// 0 no strides, 1 packed ones, 2 any order, gaps and directions, 3 as they are.
    pub layout: i64,
    pub steps: [i64; 8],
    pub bit_offset: i64,
    /// Bytes before the data, or an address.
    pub lead: i64,
    pub data_bytes: i64,
    /// What is wrong with it.
    pub fault: i64,
}

/// Bits of [`Script::wild`].
pub mod wild {
    pub const OPERATOR: i64 = 1;
    pub const SHAPE: i64 = 2;
    pub const LENGTHS: i64 = 4;
    pub const LAYOUT: i64 = 8;
    pub const OUTPUTS: i64 = 16;
    pub const POINTERS: i64 = 32;
}

/// Numbers of one byte reach from -16 to 223; the next bytes have these values.
const HOSTILE: [i64; 15] = [
    i64::MIN,
    i64::MIN + 1,
    -(1 << 32) - 1,
    i32::MIN as i64,
    i32::MAX as i64,
    1 << 31,
    u32::MAX as i64,
    1 << 32,
    (1 << 32) + 2,
    1 << 40,
    1 << 59,
    1 << 60,
    1 << 61,
    1 << 62,
    i64::MAX,
];

/// Reads or writes one number after the other.
trait Coder {
    fn number(&mut self, number: &mut i64);
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&16, &[]));
        self.0 = rest;
        *first
    }
}

impl Coder for Reader<'_> {
    fn number(&mut self, number: &mut i64) {
        *number = match self.byte() {
            small @ 0..=239 => i64::from(small) - 16,
            place @ 240..=254 => HOSTILE[usize::from(place) - 240],
            255 => i64::from_le_bytes([(); 8].map(|()| self.byte())),
        };
    }
}

struct Writer(Vec<u8>);

impl Coder for Writer {
    fn number(&mut self, number: &mut i64) {
        if let Some(place) = HOSTILE.iter().position(|hostile| hostile == number) {
            self.0.push(240 + place as u8);
        } else if let -16..=223 = number {
            self.0.push((*number + 16) as u8);
        } else {
            self.0.push(255);
            self.0.extend(number.to_le_bytes());
        }
    }
}

impl Tensor {
    fn code(&mut self, coder: &mut impl Coder) {
        let Self { dtype, layout, steps, bit_offset, lead, data_bytes, fault } = self;
        for number in [dtype, layout, bit_offset, lead, data_bytes, fault] {
            coder.number(number);
        }
        for step in steps {
            coder.number(step);
        }
    }
}

impl Script {
    fn code(&mut self, coder: &mut impl Coder) {
        for number in [&mut self.wild, &mut self.op, &mut self.opset, &mut self.axis] {
            coder.number(number);
        }
        for number in [&mut self.num_outputs, &mut self.keepdims, &mut self.flags, &mut self.rank] {
            coder.number(number);
        }
        for extent in &mut self.shape {
            coder.number(extent);
        }
        self.input.code(coder);
        for number in [&mut self.lengths, &mut self.list_rank, &mut self.list_len] {
            coder.number(number);
        }
        for value in &mut self.values {
            coder.number(value);
        }
        coder.number(&mut self.list_step);
        self.list.code(coder);
        for number in [&mut self.given, &mut self.fault, &mut self.fault_size] {
            coder.number(number);
        }
        for number in [&mut self.executor, &mut self.max_tasks, &mut self.seed] {
            coder.number(number);
        }
        for output in &mut self.outputs {
            output.code(coder);
        }
    }

    pub fn read(bytes: &[u8]) -> Self {
        let mut script = Self::default();
        script.code(&mut Reader(bytes));
        script
    }

    /// Returns the bytes from which [`Script::read`] makes this script, without the zeros at their
    /// end.
    pub fn write(&self) -> Vec<u8> {
        let mut writer = Writer(vec![]);
        self.clone().code(&mut writer);
        let used = writer.0.iter().rposition(|byte| *byte != 16).map_or(0, |last| last + 1);
        writer.0.truncate(used);
        writer.0
    }

    pub fn is_wild(&self, group: i64) -> bool {
        self.wild & group != 0
    }
}
