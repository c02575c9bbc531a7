//! The model's config.json: numbers by name, the model type and the quantization.

use crate::checkpoint::{read_text, what_it_is};
use crate::failure::invalid;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A whole number or a list of them, as config.json has it. Below 0 they mean something in few places.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Number {
    One(i64),
    List(Vec<i64>),
}

impl Number {
    /// Of JSON, if it is one: 2.0 is 2.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Array(values) => {
                Some(Self::List(values.iter().map(whole).collect::<Option<_>>()?))
            }
            value => whole(value).map(Self::One),
        }
    }
}

/// A whole number, which a floating-point number may be, too.
fn whole(value: &Value) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53
    let float = value.as_f64().filter(|it| it.fract() == 0.0 && it.abs() <= EXACT);
    #[allow(clippy::cast_possible_truncation)] // it is whole, and small enough
    value.as_i64().or_else(|| if value.is_f64() { float.map(|it| it as i64) } else { None })
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

    /// A value that is there is of the kind that is needed, or an error.
    fn is<T>(&self, name: &str, value: &Value, found: Option<T>, kind: &str) -> Result<T> {
        let Some(found) = found else {
            let path = self.path.as_deref().unwrap_or(Path::new("config.json"));
            invalid!("{}: {name} is {value}, which is not {kind}: correct it", path.display());
        };
        Ok(found)
    }

    /// What compressed-tensors says of the weights of each group of modules.
    fn weight_groups(&self) -> impl Iterator<Item = &Value> {
        let groups = self.quantization.get("config_groups").and_then(Value::as_object);
        groups.into_iter().flat_map(|groups| groups.values()).filter_map(|it| it.get("weights"))
    }

    /// A text by its name.
    pub fn text(&self, name: &str) -> Result<Option<String>> {
        let text =
            |value: &Value| self.is(name, value, value.as_str().map(str::to_owned), "a text");
        self.get(name).map(text).transpose()
    }

    /// True or false, by its name.
    fn flag(&self, name: &str, default: bool) -> Result<bool> {
        let flag = |value: &Value| self.is(name, value, value.as_bool(), "true or false");
        self.get(name).map_or(Ok(default), flag)
    }

    /// A number, or a list of them, by its name.
    pub fn number(&self, name: &str) -> Result<Option<Number>> {
        match name {
            "falcon_kv_heads" => self.falcon_kv_heads(),
            "deepseek_qk_head_dim" => self.sum(["qk_nope_head_dim", "qk_rope_head_dim"]),
            "deepseek_kv_head_dim" => self.sum(["qk_nope_head_dim", "v_head_dim"]),
            "num_key_value_heads" if self.get(name).is_none() => self.default_kv_heads(),
            _ => {
                let number = |value: &Value| {
                    let kind = format!("a whole number (--set {name}=N gives another)");
                    self.is(name, value, Number::of(value), &kind)
                };
                self.get(name).map(number).transpose()
            }
        }
    }

    /// The sum of numbers, if all are known.
    fn sum(&self, names: [&str; 2]) -> Result<Option<Number>> {
        Ok(match [self.number(names[0])?, self.number(names[1])?] {
            [Some(Number::One(one)), Some(Number::One(other))] => {
                one.checked_add(other).map(Number::One)
            }
            _ => None,
        })
    }

    /// Only these models have a key for each query where config.json does not say how many there are.
    /// In others the number has a default that is not in the file.
    fn default_kv_heads(&self) -> Result<Option<Number>> {
        let model = self.text("model_type")?;
        match model.as_deref() {
            Some("llama" | "granite" | "phi3") => self.number("num_attention_heads"),
            _ => Ok(None),
        }
    }

    /// Falcon's `num_kv_heads` counts only in its newer architecture.
    fn falcon_kv_heads(&self) -> Result<Option<Number>> {
        let first = |names: [&str; 2]| match self.number(names[0])? {
            None => self.number(names[1]),
            found => Ok(found),
        };
        let heads = first(["num_attention_heads", "n_head"])?;
        if self.flag("new_decoder_architecture", false)? {
            return Ok(first(["num_kv_heads", "n_head_kv"])?.or(heads));
        }
        if self.flag("multi_query", true)? {
            return Ok(heads.map(|_| Number::One(1)));
        }
        Ok(heads)
    }

    /// The name of the quantization. It says more than the method where that alone does not tell how
    /// the tensors lie.
    pub fn quantization(&self) -> Result<Option<String>> {
        if self.quantization.is_null() {
            return Ok(None);
        }
        let object = self.quantization.as_object();
        self.is("quantization_config", &self.quantization, object, "an object")?;
        let given = |key: &str| self.quantization.get(key).filter(|value| !value.is_null());
        let text = |key: &str| {
            let text = |value| self.is(key, value, Value::as_str(value), "a text");
            given(key).map(text).transpose()
        };
        let Some(method) = text("quant_method")? else {
            return Ok(Some("an unnamed method".into()));
        };
        let method = method.to_lowercase();
        let bits = ["bits", "w_bit"].into_iter().find_map(|key| Some((key, given(key)?)));
        let bits = bits.map(|(key, value)| self.is(key, value, whole(value), "a whole number"));
        let bits = bits.transpose()?.unwrap_or(4);
        let unusual = match method.as_str() {
            // 3 bits cross the words that they are packed in.
            "gptq" if ![2, 4, 8].contains(&bits) => Some(format!("{bits}-bit")),
            "gptq" => text("checkpoint_format")?
                .filter(|form| !form.starts_with("gptq"))
                .map(str::to_owned),
            "awq" if bits != 4 => Some(format!("{bits}-bit")),
            "awq" => text("version")?.map(str::to_lowercase).filter(|version| version != "gemm"),
            "compressed-tensors" => {
                let whole = ["float-quantized", "int-quantized", "naive-quantized"];
                let format = text("format")?.filter(|format| !whole.contains(format));
                format.or_else(|| self.blocks()).map(str::to_owned)
            }
            _ => None,
        };
        Ok(Some(unusual.map_or(method.clone(), |unusual| format!("{method}-{unusual}"))))
    }

    /// How compressed-tensors lays out scales that are neither for a whole weight nor for an output.
    fn blocks(&self) -> Option<&'static str> {
        let layout = |weights: &Value| match weights.get("strategy").and_then(Value::as_str) {
            None if weights.get("strategy").is_some_and(|it| !it.is_null()) => {
                (Some("group"), None)
            }
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

/// Python writes NaN, Infinity and -Infinity, which JSON does not have: they become texts, so that nobody
/// takes them for numbers.
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
        let quoted = part.replace("NaN", "\"NaN\"").replace("Infinity", "\"Infinity\"");
        quoted.replace("-\"Infinity\"", "\"-Infinity\"")
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
        let expected = r#"{"NaN": "a \" Infinity", "b": ["NaN", "-Infinity", "Infinity", 1]}"#;
        assert_eq!(without_infinities(text), expected);
    }

    #[test]
    fn the_text_models_numbers_come_first() {
        let config = config(json!({"text_config": {"heads": 4}, "heads": 16, "other": 3,
            "quantization_config": {"group_size": 128, "weight_block_size": [128, 64]}}));
        assert_eq!(config.number("heads").unwrap(), Some(Number::One(4)));
        assert_eq!(config.number("other").unwrap(), Some(Number::One(3)));
        assert_eq!(config.number("group_size").unwrap(), Some(Number::One(128)));
        assert_eq!(config.number("weight_block_size").unwrap(), Some(Number::List(vec![128, 64])));
        assert_eq!(config.number("none").unwrap(), None);
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
            assert_eq!(
                config(json!({"quantization_config": json})).quantization().unwrap().unwrap(),
                name
            );
        }
        assert_eq!(config(json!({})).quantization().unwrap(), None);
    }

    #[test]
    fn layouts_of_compressed_tensors() {
        let name = |groups: serde_json::Value| {
            config(json!({"quantization_config": {"quant_method": "compressed-tensors",
                "format": "float-quantized", "config_groups": groups}}))
            .quantization()
            .unwrap()
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
        let heads = |json| config(json).number("num_key_value_heads").unwrap();
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
        let heads = |json| config(json).number("falcon_kv_heads").unwrap();
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
