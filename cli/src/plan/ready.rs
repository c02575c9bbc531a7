//! The plans that come with the tool, and the models that they are for.

use crate::config::Config;
use crate::failure::refuse;
use anyhow::Result;

/// A plan's name, its text, and the model types of config.json that it is for.
const READY: [(&str, &str, &[&str]); 7] = [
    (
        "llama",
        include_str!("../../plans/llama.toml"),
        &[
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
    ("falcon", include_str!("../../plans/falcon.toml"), &[]),
    (
        "deepseek",
        include_str!("../../plans/deepseek.toml"),
        &["deepseek_v2", "deepseek_v3", "kimi_k2"],
    ),
    ("gpt-oss", include_str!("../../plans/gpt-oss.toml"), &["gpt_oss"]),
    ("gpt2", include_str!("../../plans/gpt2.toml"), &[]),
];

/// The text of a ready plan, by its own name or that of a model type.
pub fn ready(name: &str) -> Option<&'static str> {
    let is_it = |plan: &&(&str, _, &[&str])| plan.0 == name || plan.2.contains(&name);
    READY.iter().find(is_it).map(|plan| plan.1)
}

/// The names of all ready plans.
pub fn names() -> String {
    READY.map(|(name, ..)| name).join(", ")
}

/// The ready plan for the model that a config.json describes.
pub fn automatic(config: &Config) -> Result<&'static str> {
    let Some(path) = config.path() else {
        refuse!(
            "--plan auto needs a config.json beside the model: name a plan, one of {}",
            names()
        );
    };
    let Some(model) = config.text("model_type") else {
        refuse!("--plan auto: {} has no model_type: name a plan", path.display());
    };
    match ready(&model) {
        Some(text) => Ok(text),
        None => refuse!(
            "--plan auto: there is no ready plan for the model type {model:?} of {}: write one, \
             beginning with one of {}",
            path.display(),
            names()
        ),
    }
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
