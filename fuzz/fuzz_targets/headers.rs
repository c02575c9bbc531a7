//! Headers of .npy and .safetensors files, as the command-line tool reads them. Whatever the bytes
//! are, reading ends soon and without a panic; what is accepted is written so that it reads the
//! same again, and for safetensors it is what the reference library reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use libsplit_formats::{npy, safetensors};

fuzz_target!(|bytes: &[u8]| {
    if let Some((length, text)) = bytes.split_first_chunk() {
        check_safetensors(text, u16::from_le_bytes(*length).into());
    }
    check_npy(bytes);
});

fn check_npy(file: &[u8]) {
    let Ok((header, size)) = npy::Header::parse(file) else { return };
    assert!(size <= file.len());
    let piece = header.of_piece(&header.shape);
    let (again, size) = npy::Header::parse(&piece).unwrap();
    assert_eq!((size, size % 64), (piece.len(), 0));
    assert_eq!((&again.descr, &again.code), (&header.descr, &header.code));
    assert_eq!((&again.shape, again.size), (&header.shape, header.size));
    assert_eq!(again.bytes(&again.shape).ok(), header.bytes(&header.shape).ok());
    assert!(!again.fortran);
}

/// A header of a file with so many bytes after it.
fn check_safetensors(text: &[u8], data_bytes: u64) {
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    assert_eq!(
        safetensors::text_length(file[..].try_into().unwrap(), 8 + text.len() as u64).unwrap(),
        text.len() as u64
    );
    file.extend(text);
    file.resize(file.len() + data_bytes as usize, 0);
    let theirs = ::safetensors::SafeTensors::deserialize(&file);
    let ours = match safetensors::Header::parse(text, data_bytes) {
        Ok(ours) => ours,
        Err(error) => {
            // They let a later name win over an earlier one, and put spaces at the start of the
            // header.
            let error = error.to_string();
            let is_stricter = error.contains("twice") || error.contains("begin with");
            assert!(theirs.is_err() || is_stricter, "{error}");
            return;
        }
    };
    let theirs = theirs.unwrap();
    assert_eq!(theirs.len(), ours.tensors.len());
    for tensor in &ours.tensors {
        let view = theirs.tensor(&tensor.name).unwrap();
        let shape: Vec<_> = view.shape().iter().map(|extent| *extent as u64).collect();
        assert_eq!(
            (shape, view.dtype().bitsize() as u64),
            (tensor.shape.clone(), tensor.dtype.bits)
        );
        assert_eq!(view.data().len() as u64, tensor.end - tensor.begin);
    }
    let Ok(bytes) = ours.to_bytes() else { return };
    assert_eq!(bytes.len() % 8, 0);
    assert_eq!(safetensors::Header::parse(&bytes[8..], data_bytes).unwrap(), ours);
}
