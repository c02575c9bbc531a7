//! Bits in byte arrays.

/// Bits of the elements by dtype number, from the ONNX documents.
const BITS: [usize; 27] = [
    0, 32, 8, 8, 16, 16, 32, 64, 128, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4, 4, 8, 2, 2,
];

pub fn bits_of(dtype: i32) -> usize {
    BITS[usize::try_from(dtype).unwrap()]
}

fn bit(bytes: &[u8], at: usize) -> bool {
    bytes[at / 8] >> (at % 8) & 1 == 1
}

pub fn set_bit(bytes: &mut [u8], at: usize, value: bool) {
    bytes[at / 8] = bytes[at / 8] & !(1 << (at % 8)) | u8::from(value) << (at % 8);
}

/// Copies one element of `bits` from bit `from` to bit `to`.
pub fn set_element(target: &mut [u8], to: usize, source: &[u8], from: usize, bits: usize) {
    for i in 0..bits {
        set_bit(target, to + i, bit(source, from + i));
    }
}

/// Bytes that look random (xorshift).
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32).to_le_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

pub fn usize_of(number: i64) -> usize {
    usize::try_from(number).unwrap()
}
