//! The model's config.json: numbers by name, the model type and the quantization.

use crate::checkpoint::{read_text, what_it_is};
use crate::failure::invalid;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A number or a list of them, as config.json has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    One(u64),
    List(Vec<u64>),
}

/// What a directory says of its model; empty where there is no config.json.
#[derive(Default)]
pub struct Config {
    path: Option<PathBuf>,
    json: Value,
    /// What says how the weights are quantized.
    quantization: Value,
}

/// Where the numbers of the text model are, if not at the top: they come first, as there may be a
/// vision model with numbers of the same names.
const TEXT_MODELS: [&str; 3] = ["text_config", "language_config", "llm_config"];

impl Config {
    /// Reads that of a directory, and the files in which older checkpoints describe a quantization.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join("config.json");
        let json = read(&path)?;
        let places = ["quantization_config", "compression_config"];
        let within = |json: &Value| {
            let mut found = places.iter().filter_map(|place| json.get(place));
            found.find(|found| !found.is_null()).cloned()
        };
        let text = TEXT_MODELS.iter().filter_map(|place| json.get(place)).find_map(within);
        let mut quantization = within(&json).or(text).unwrap_or_default();
        for (name, method) in [
            ("quantize_config.json", "gptq"),
            ("quant_config.json", "awq"),
            ("hf_quant_config.json", "modelopt"),
        ] {
            if quantization.is_null() {
                quantization = read(&directory.join(name))?;
                if let Value::Object(object) = &mut quantization {
                    object.entry("quant_method").or_insert(method.into());
                }
            }
        }
        let path = (!json.is_null()).then_some(path);
        Ok(Self { path, json, quantization })
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let text = TEXT_MODELS.iter().filter_map(|place| self.json.get(place));
        let groups = self.weight_groups();
        let places = text.chain([&self.json, &self.quantization]).chain(groups);
        places.filter_map(|place| place.get(name)).find(|value| !value.is_null())
    }

    /// What compressed-tensors says of the weights of each group of modules.
    fn weight_groups(&self) -> impl Iterator<Item = &Value> {
        let groups = self.quantization.get("config_groups").and_then(Value::as_object);
        groups.into_iter().flat_map(|groups| groups.values()).filter_map(|it| it.get("weights"))
    }

    /// A text by its name.
    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name)?.as_str().map(str::to_owned)
    }

    /// A number, or a list of them, by its name.
    pub fn number(&self, name: &str) -> Option<Number> {
        match name {
            "falcon_kv_heads" => self.falcon_kv_heads(),
            "num_key_value_heads" if self.get(name).is_none() => self.default_kv_heads(),
            _ => serde_json::from_value(self.get(name)?.clone()).ok(),
        }
    }

    /// Only these models have a key for each query where config.json does not say how many there are.
    /// In others the number has a default that is not in the file.
    fn default_kv_heads(&self) -> Option<Number> {
        let model = self.text("model_type")?;
        let has_all = ["llama", "granite", "phi3"].contains(&model.as_str());
        has_all.then(|| self.number("num_attention_heads")).flatten()
    }

    /// Falcon's `num_kv_heads` counts only in its newer architecture.
    fn falcon_kv_heads(&self) -> Option<Number> {
        let is =
            |name: &str, default: bool| self.get(name).and_then(Value::as_bool).unwrap_or(default);
        let heads = || self.number("num_attention_heads").or_else(|| self.number("n_head"));
        if is("new_decoder_architecture", false) {
            return self.number("num_kv_heads").or_else(|| self.number("n_head_kv")).or_else(heads);
        }
        if is("multi_query", true) {
            return heads().map(|_| Number::One(1));
        }
        heads()
    }

    /// The name of the quantization. It says more than the method where that alone does not tell how
    /// the tensors lie.
    pub fn quantization(&self) -> Option<String> {
        if self.quantization.is_null() {
            return None;
        }
        let text = |key: &str| self.quantization.get(key).and_then(Value::as_str);
        let Some(method) = text("quant_method") else { return Some("an unnamed method".into()) };
        let method = method.to_lowercase();
        let bits = ["bits", "w_bit"].iter().find_map(|key| self.quantization.get(key)?.as_u64());
        let bits = bits.unwrap_or(4);
        let unusual = match method.as_str() {
            // 3 bits cross the words that they are packed in.
            "gptq" if ![2, 4, 8].contains(&bits) => Some(format!("{bits}-bit")),
            "gptq" => text("checkpoint_format")
                .filter(|form| !form.starts_with("gptq"))
                .map(str::to_owned),
            "awq" if bits != 4 => Some(format!("{bits}-bit")),
            "awq" => text("version").map(str::to_lowercase).filter(|version| version != "gemm"),
            "compressed-tensors" => {
                let whole = ["float-quantized", "int-quantized", "naive-quantized"];
                let format = text("format").filter(|format| !whole.contains(format));
                format.or_else(|| self.blocks()).map(str::to_owned)
            }
            _ => None,
        };
        Some(unusual.map_or(method.clone(), |unusual| format!("{method}-{unusual}")))
    }

    /// How compressed-tensors lays out scales that are neither for a whole weight nor for an output.
    fn blocks(&self) -> Option<&'static str> {
        let layout = |weights: &Value| match weights.get("strategy").and_then(Value::as_str) {
            None | Some("tensor" | "channel") => (None, None),
            Some("block") => (Some("block"), weights.get("block_structure").cloned()),
            Some(_) => (Some("group"), None),
        };
        let mut layouts = self.weight_groups().map(layout);
        let first = layouts.next()?;
        if layouts.all(|other| other == first) {
            first.0
        } else {
            Some("mixed")
        }
    }
}

/// The JSON of a file; null if there is none.
fn read(path: &Path) -> Result<Value> {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Value::Null),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    if let Some(what) = what_it_is(text.as_bytes()) {
        invalid!("{}: {what}", path.display());
    }
    match serde_json::from_str(&without_infinities(&text)) {
        Ok(json) => Ok(json),
        Err(error) => invalid!("{}: {error}", path.display()),
    }
}

/// Python writes NaN, Infinity and -Infinity, which JSON does not have: they become null.
fn without_infinities(text: &str) -> String {
    let mut parts = Vec::new();
    let (mut is_string, mut is_escaped, mut begin) = (false, false, 0);
    for (at, character) in text.char_indices() {
        let ends = character == '"' && !is_escaped;
        is_escaped = is_string && character == '\\' && !is_escaped;
        if ends {
            parts.push((is_string, &text[begin..at]));
            (is_string, begin) = (!is_string, at);
        }
    }
    parts.push((is_string, &text[begin..]));
    let outside = |part: &str| {
        ["-Infinity", "Infinity", "NaN"]
            .iter()
            .fold(part.to_owned(), |text, word| text.replace(word, "null"))
    };
    parts
        .iter()
        .map(|(is_string, part)| if *is_string { (*part).into() } else { outside(part) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{without_infinities, Config, Number};
    use serde_json::json;

    fn config(json: serde_json::Value) -> Config {
        let quantization = json["quantization_config"].clone();
        Config { path: None, json, quantization }
    }

    #[test]
    fn what_python_writes_becomes_json() {
        let text = r#"{"NaN": "a \" Infinity", "b": [NaN, -Infinity, Infinity, 1]}"#;
        let expected = r#"{"NaN": "a \" Infinity", "b": [null, null, null, 1]}"#;
        assert_eq!(without_infinities(text), expected);
    }

    #[test]
    fn the_text_models_numbers_come_first() {
        let config = config(json!({"text_config": {"heads": 4}, "heads": 16, "other": 3,
            "quantization_config": {"group_size": 128, "weight_block_size": [128, 64]}}));
        assert_eq!(config.number("heads"), Some(Number::One(4)));
        assert_eq!(config.number("other"), Some(Number::One(3)));
        assert_eq!(config.number("group_size"), Some(Number::One(128)));
        assert_eq!(config.number("weight_block_size"), Some(Number::List(vec![128, 64])));
        assert_eq!(config.number("none"), None);
    }

    #[test]
    fn quantizations_by_name() {
        for (json, name) in [
            (json!({"quant_method": "fp8"}), "fp8"),
            (json!({"quant_method": "gptq", "bits": 4}), "gptq"),
            (json!({"quant_method": "gptq", "bits": 3}), "gptq-3-bit"),
            (json!({"quant_method": "gptq", "checkpoint_format": "marlin"}), "gptq-marlin"),
            (json!({"quant_method": "awq", "version": "GEMM"}), "awq"),
            (json!({"quant_method": "awq", "version": "gemv"}), "awq-gemv"),
            (
                json!({"quant_method": "compressed-tensors", "format": "pack-quantized"}),
                "compressed-tensors-pack-quantized",
            ),
            (json!({"quant_method": "awq", "w_bit": 8}), "awq-8-bit"),
            (json!({"bits": 4}), "an unnamed method"),
        ] {
            assert_eq!(config(json!({"quantization_config": json})).quantization().unwrap(), name);
        }
        assert_eq!(config(json!({})).quantization(), None);
    }

    #[test]
    fn layouts_of_compressed_tensors() {
        let name = |groups: serde_json::Value| {
            config(json!({"quantization_config": {"quant_method": "compressed-tensors",
                "format": "float-quantized", "config_groups": groups}}))
            .quantization()
            .unwrap()
        };
        let block = json!({"weights": {"strategy": "block", "block_structure": [128, 128]}});
        let other = json!({"weights": {"strategy": "block", "block_structure": [64, 64]}});
        let channel = json!({"weights": {"strategy": "channel"}});
        assert_eq!(name(json!({"a": channel, "b": channel})), "compressed-tensors");
        assert_eq!(name(json!({"a": block, "b": block})), "compressed-tensors-block");
        assert_eq!(
            name(json!({"a": {"weights": {"strategy": "group"}}})),
            "compressed-tensors-group"
        );
        assert_eq!(name(json!({"a": block, "b": other})), "compressed-tensors-mixed");
        assert_eq!(name(json!({"a": channel, "b": block})), "compressed-tensors-mixed");
    }

    #[test]
    fn key_heads_are_never_guessed() {
        let heads = |json| config(json).number("num_key_value_heads");
        for (model, expected) in
            [("llama", Some(Number::One(8))), ("mistral", None), ("gemma3_text", None)]
        {
            assert_eq!(
                heads(json!({"model_type": model, "num_attention_heads": 8})),
                expected,
                "{model}"
            );
            let json =
                json!({"model_type": model, "num_attention_heads": 8, "num_key_value_heads": 2});
            assert_eq!(heads(json), Some(Number::One(2)));
        }
    }

    #[test]
    fn heads_of_falcon() {
        let heads = |json| config(json).number("falcon_kv_heads");
        let base = json!({"num_attention_heads": 8, "num_kv_heads": 4});
        assert_eq!(heads(base.clone()), Some(Number::One(1)));
        let with = |key: &str, value: bool| {
            let mut json = base.clone();
            json[key] = value.into();
            heads(json)
        };
        assert_eq!(with("new_decoder_architecture", true), Some(Number::One(4)));
        assert_eq!(with("multi_query", false), Some(Number::One(8)));
    }
}
