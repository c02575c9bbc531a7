//! The plans that come with the tool, and the models that they are for.

use crate::config::Config;
use crate::failure::refuse;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

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

/// Finds the text of a plan: the one for the model, a ready one by its name, or a file.
pub fn plan_text(plan: &str, config: &Config) -> Result<String> {
    let model = config.text("model_type");
    let shown = config.path().unwrap_or(Path::new("config.json")).display();
    let found = match (plan, &model) {
        ("auto", None) if config.path().is_none() => refuse!(
            "--plan auto needs a config.json beside the model: name a plan instead, one of {}",
            names()
        ),
        ("auto", None) => refuse!(
            "--plan auto: {shown} has no model_type: name a plan instead, one of {}",
            names()
        ),
        ("auto", Some(model)) => for_model(model),
        (name, _) => match ready(name) {
            Some(text) => {
                Some(text).filter(|_| model.as_deref().is_none_or(|it| for_model(it) == Some(text)))
            }
            None => {
                let text = fs::read_to_string(plan);
                return text.with_context(|| {
                    format!("--plan {plan} is neither a ready plan (auto, {}) nor a file", names())
                });
            }
        },
    };
    let Some(text) = found else {
        refuse!(
            "--plan {plan}: {shown} gives the model type {:?}, for which this is not a ready plan: \
             write one of your own, beginning with the most similar ('libsplit plan NAME' prints \
             {})",
            model.unwrap_or_default(),
            names()
        );
    };
    Ok(text.into())
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
