//! Writes the seeds: ONNX's cases as scripts, and a few calls of every other kind. Run it in
//! `fuzz/`.

use libsplit_fuzz::rules::{
    ONNX_SPLIT, OPENVINO_SPLIT, SPLIT_TO_SEQUENCE, VARIADIC_SPLIT, VERSIONS,
};
use libsplit_fuzz::script::{wild, Script, Tensor};
use serde_json::Value;
use std::fs;
use std::io;

fn number(case: &Value, field: &str) -> Option<i64> {
    case[field].as_i64()
}

/// Returns the numbers of a JSON list; those not known yet are -1.
fn list(value: &Value) -> Option<Vec<i64>> {
    Some(value.as_array()?.iter().map(|entry| entry.as_i64().unwrap_or(-1)).collect())
}

fn fill(slots: &mut [i64; 8], numbers: &[i64]) {
    for (slot, number) in slots.iter_mut().zip(numbers) {
        *slot = *number;
    }
}

/// A case of ONNX's, as it is written there.
fn script_of(case: &Value) -> Script {
    let op = if case["op"] == "Split" { ONNX_SPLIT } else { SPLIT_TO_SEQUENCE };
    let opset = number(case, "opset").unwrap_or(1);
    let shape = list(&case["input_shape"]).unwrap_or_default();
    let mut script = Script {
        wild: wild::OPERATOR | wild::SHAPE | wild::LENGTHS,
        op,
        opset,
        axis: number(case, "axis").unwrap_or(0),
        num_outputs: number(case, "num_outputs").unwrap_or(0),
        keepdims: number(case, "keepdims").unwrap_or(1),
        rank: shape.len() as i64,
        ..Script::default()
    };
    script.input.dtype = if case["dtype"] == "float64" { 11 } else { 1 };
    fill(&mut script.shape, &shape);
    script.list.dtype = if case["split_dtype"] == "int32" { 6 } else { 7 };
    match (list(&case["split"]), number(case, "split")) {
        (Some(values), _) => {
            (script.lengths, script.list_rank) = (1, 1);
            script.list_len = values.len() as i64;
            fill(&mut script.values, &values);
        }
        (None, Some(value)) => {
            script.lengths = 2;
            script.values[0] = value;
        }
        (None, None) if op == ONNX_SPLIT && opset < 18 && script.num_outputs == 0 => {
            script.num_outputs = case["outputs"].as_array().map_or(0, Vec::len) as i64;
        }
        (None, None) => {}
    }
    script
}

/// Valid calls, one for each way to lay out tensors, to run, and to be wild.
fn made_up() -> Vec<(String, Script)> {
    let mut all = vec![];
    for op in [ONNX_SPLIT, SPLIT_TO_SEQUENCE, VARIADIC_SPLIT, OPENVINO_SPLIT] {
        for variant in 0..8 {
            let mut script = Script {
                wild: if variant == 7 { 63 & !wild::OPERATOR } else { 0 },
                op: op - 1,
                axis: 2 + variant,
                num_outputs: variant,
                keepdims: variant & 1,
                rank: 1 + variant % 3,
                shape: [6, 30 + variant, 5, 4, 3, 2, 1, 1],
                lengths: variant % 3,
                list_len: variant,
                values: [2, 1, 3, 0, 5, 1, 1, 1],
                executor: variant % 4,
                seed: variant,
                ..Script::default()
            };
            script.input = Tensor {
                dtype: variant * 5 + op,
                layout: variant % 4,
                steps: [variant, 2 * variant, 20, 7, 0, 1, 2, 3],
                bit_offset: variant,
                lead: 3 * variant,
                ..Tensor::default()
            };
            for output in &mut script.outputs {
                output.layout = variant % 3;
                output.steps = [variant, 4, 18, 1, 0, 1, 2, 3];
                output.fault = i64::from(variant == 3);
            }
            if variant == 5 {
                script.shape = [100, 60, 50, 4, 3, 2, 1, 1];
            }
            all.push((format!("made-up-{op}-{variant}"), script));
        }
    }
    all
}

/// Nodes of every operator of the adapter for ONNX Runtime, with every way to give lengths, with
/// `num_outputs` and without.
fn nodes() -> Vec<(String, Script)> {
    const CUSTOM: [(&str, i64); 2] = [("Split", 2), ("VariadicSplit", 3)];
    let versions = VERSIONS.into_iter().filter(|(op, ..)| *op == ONNX_SPLIT);
    let versions = versions.map(|(_, version, _)| (format!("Split-{version}"), 1, version));
    let custom = CUSTOM.map(|(name, op)| (format!("libsplit.{name}"), op, 0));
    let mut all = vec![];
    for (name, op, opset) in versions.chain(custom) {
        for (variant, way) in [0, 1, 2, 3, 4, 5, 0, 1].into_iter().enumerate() {
            let mut script = Script {
                op,
                opset,
                axis: 3,
                num_outputs: if variant < 6 { 0 } else { 3 },
                rank: 2,
                shape: [5, 9, 0, 0, 0, 0, 0, 0],
                lengths: way,
                list_len: 3,
                values: [2, if op == 3 { -1 } else { 4 }, 3, 0, 0, 0, 0, 0],
                given: 2,
                ..Script::default()
            };
            script.input.dtype = 10;
            script.outputs[1].fault = way % 2; // not used
            all.push((format!("{name}-{variant}"), script));
        }
    }
    all
}

/// Headers of both formats that the command-line tool reads; those of safetensors begin with the
/// number of bytes that follow.
fn headers() -> Vec<(String, Vec<u8>)> {
    const NPY: [(u8, &str); 4] = [
        (1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n"),
        (1, "{'descr': [('a', '<i2', (2,)), ('b', '|S3')], 'fortran_order': True, 'shape': (5,)}"),
        (2, "{'shape': (), 'fortran_order': False, 'descr': ('<U2', 3)}"),
        (3, "{'descr': [('größe', '|u1')], 'fortran_order': False, 'shape': (0, 7), }"),
    ];
    const SAFETENSORS: [(u16, &str); 4] = [
        (0, "{}"),
        (12, r#"{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}  "#),
        (
            7,
            r#"{"a":{"dtype":"F4","shape":[2,3],"data_offsets":[4,7]},
            "b":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}"#,
        ),
        (
            0,
            r#"{"__metadata__":{"format":"pt"},"e":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}}"#,
        ),
    ];
    let npy = NPY.iter().enumerate().map(|(place, (version, text))| {
        let length = text.len().to_le_bytes();
        let length = &length[..if *version == 1 { 2 } else { 4 }];
        let header = [b"\x93NUMPY", &[*version, 0][..], length, text.as_bytes()].concat();
        (format!("npy-{place}"), header)
    });
    let safetensors = SAFETENSORS.iter().enumerate().map(|(place, (bytes, text))| {
        (format!("safetensors-{place}"), [&bytes.to_le_bytes(), text.as_bytes()].concat())
    });
    npy.chain(safetensors).collect()
}

fn main() -> io::Result<()> {
    let (mut seeds, mut nodes) = (made_up(), nodes());
    let sub_byte = seeds.iter().filter(|(_, script)| script.op >= 2).cloned();
    let sub_byte: Vec<_> = sub_byte.collect();
    for file in ["onnx.json", "onnx_shape.json"] {
        let text = fs::read_to_string(format!("../tests/cases/{file}"))?;
        let cases: Vec<Value> = serde_json::from_str(&text)?;
        for (place, case) in cases.iter().enumerate() {
            let (name, script) = (format!("{file}-{place:02}"), script_of(case));
            if script.op == ONNX_SPLIT {
                let outputs = case["outputs"].as_array().map_or(0, Vec::len) as i64;
                nodes.push((name.clone(), Script { given: outputs - 1, ..script.clone() }));
            }
            seeds.push((name, script));
        }
    }
    for (target, seeds) in [("split", seeds), ("sub_byte", sub_byte), ("onnxruntime", nodes)] {
        let written = seeds.into_iter().map(|(name, script)| (name, script.write()));
        save(target, written.collect())?;
    }
    save("headers", headers())
}

fn save(target: &str, seeds: Vec<(String, Vec<u8>)>) -> io::Result<()> {
    fs::create_dir_all(format!("corpus/{target}"))?;
    for (name, bytes) in seeds {
        fs::write(format!("corpus/{target}/{name}"), bytes)?;
    }
    Ok(())
}
