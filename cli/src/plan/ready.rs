//! The plans that come with the tool, and the models that they are for.

use crate::config::Config;
use crate::failure::refuse;
use anyhow::{Context, Result};
use std::fs;

/// A plan's name, its text, and the model types of config.json that it is for.
const READY: [(&str, &str, &[&str]); 7] = [
    (
        "llama",
        include_str!("../../plans/llama.toml"),
        &[
            "llama",
            "mistral",
            "ministral",
            "mixtral",
            "qwen2",
            "qwen2_moe",
            "qwen3",
            "qwen3_moe",
            "gemma",
            "gemma2",
            "gemma3",
            "gemma3_text",
            "granite",
            "smollm3",
            "seed_oss",
        ],
    ),
    ("phi", include_str!("../../plans/phi.toml"), &["phi3"]),
    ("gpt-neox", include_str!("../../plans/gpt-neox.toml"), &["gpt_neox"]),
    ("falcon", include_str!("../../plans/falcon.toml"), &["falcon"]),
    (
        "deepseek",
        include_str!("../../plans/deepseek.toml"),
        &["deepseek_v2", "deepseek_v3", "kimi_k2"],
    ),
    ("gpt-oss", include_str!("../../plans/gpt-oss.toml"), &["gpt_oss"]),
    ("gpt2", include_str!("../../plans/gpt2.toml"), &["gpt2"]),
];

/// Returns a ready plan, by its own name or by a model type.
pub fn ready(name: &str) -> Option<&'static str> {
    let named = READY.iter().find(|plan| plan.0 == name).map(|plan| plan.1);
    named.or_else(|| for_model(name))
}

fn for_model(model_type: &str) -> Option<&'static str> {
    READY.iter().find(|plan| plan.2.contains(&model_type)).map(|plan| plan.1)
}

/// The names of all ready plans.
pub fn names() -> String {
    READY.map(|(name, ..)| name).join(", ")
}

/// Finds the text of a plan, and whether it is a ready one: the one for the model, a ready one by its name,
/// or a file. A ready plan is refused for models that are known to be others.
pub fn plan_text(plan: &str, config: &Config) -> Result<(String, bool)> {
    let named = ready(plan);
    if plan != "auto" && named.is_none() {
        let text = fs::read_to_string(plan).with_context(|| {
            format!("--plan {plan} is neither a ready plan (auto, {}) nor a file", names())
        })?;
        return Ok((text, false));
    }
    let model = config.text("model_type")?;
    let text = match &model {
        Some(model) => for_model(model).filter(|text| named.is_none_or(|named| named == *text)),
        None => named,
    };
    if let Some(text) = text {
        return Ok((text.into(), true));
    }
    let all = names();
    let Some(path) = config.path() else {
        refuse!("--plan auto: there is no config.json beside the model: name a plan, one of {all}");
    };
    let Some(model) = model else {
        refuse!("--plan auto: {} has no model_type: name a plan, one of {all}", path.display());
    };
    let which = if named.is_some() { "this plan" } else { "any ready plan" };
    refuse!(
        "--plan {plan}: {} has the model type {model:?}, which is not one that {which} is for: write your \
         own, starting from the most similar one ('libsplit plan NAME' prints {all})",
        path.display()
    );
}

#[cfg(test)]
mod tests {
    use super::READY;
    use crate::plan::Plan;

    #[test]
    fn ready_plans_are_plans() {
        for (name, text, _) in READY {
            let plan = Plan::parse(text, None).unwrap();
            assert!(plan.entries.len() > 4, "{name}");
            assert!(Plan::parse(text, Some("none")).is_err());
        }
    }
}
