//! `skill`: a project's instructions for one kind of task, in full.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use workspace::Workspace;
use workspace::discovery::is_skill_name;

use super::input::{ToolInput, parse_and_run};
use super::{Plan, TEXT_BYTES_MAX, Tool, ToolEffect, ToolError, ToolFacts, ToolOutcome, input};

pub(crate) const NAME: &str = "skill";

pub(super) struct SkillTool;

#[derive(Debug, Deserialize)]
struct SkillInput {
    name: String,
}

impl ToolInput for SkillInput {
    const EXAMPLE: &'static str = r#"{"name": "release-notes"}"#;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The name of the skill."}},
            "required": ["name"],
            "additionalProperties": false,
        })
    }

    fn readable_texts(&self) -> Vec<(&'static str, &str)> {
        // Only a name that is known names a file.
        Vec::new()
    }
}

#[async_trait]
impl Tool for SkillTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            display_name: "Skill",
            description: "Reads a skill: instructions for one kind of task. Call it before you do something a skill is there for.",
            effect: ToolEffect::Reads,
            kind: Some("read"),
        }
    }

    fn parameters(&self) -> Value {
        SkillInput::schema()
    }

    async fn plan(&self, input: &Value, _workspace: &Workspace) -> Result<Plan, ToolError> {
        let SkillInput { name } = input::parse(input)?;
        let summary = if is_skill_name(&name) {
            format!("Read the skill {name}")
        } else {
            "Read a skill".to_owned()
        };
        Ok(Plan { summary, ..Plan::default() })
    }

    async fn run(
        &self,
        input: &Value,
        workspace: &Workspace,
        _output: &mpsc::Sender<String>,
    ) -> Result<ToolOutcome, ToolError> {
        parse_and_run(input, workspace, |input: &SkillInput, workspace, _| {
            read(&input.name, workspace)
        })
        .await
    }
}

fn read(name: &str, workspace: &Workspace) -> Result<ToolOutcome, ToolError> {
    let body = workspace.read_skill(name, TEXT_BYTES_MAX)?;
    let mut text = format!("<skill_content name=\"{name}\">{}</skill_content>", body.text);
    if body.has_other_files {
        let directory = &body.directory;
        text.push_str(&format!("\n[other files of this skill are in {directory}]"));
    }
    Ok(ToolOutcome {
        text,
        summary: format!("Read the skill {name}"),
        success: true,
        ..ToolOutcome::default()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn open(root: &Path) -> Workspace {
        let uri = wire::file_uri::uri_of(root.as_os_str().as_bytes());
        Workspace::open(&[uri], &workspace::Confinement::none()).unwrap()
    }

    async fn call(workspace: &Workspace, name: &str) -> Result<String, String> {
        let input = json!({"name": name});
        let plan = SkillTool.plan(&input, workspace).await.unwrap();
        assert!(plan.summary.starts_with("Read "), "{}", plan.summary);
        let (output, _) = mpsc::channel(1);
        let ran = SkillTool.run(&input, workspace, &output).await;
        ran.map(|outcome| outcome.text).map_err(|error| error.0)
    }

    #[tokio::test]
    async fn a_skill_is_returned_in_full_and_the_same_the_second_time() {
        let root = tempfile::tempdir().unwrap();
        let file = ".agents/skills/tables/SKILL.md";
        write(root.path(), file, "---\nname: tables\n---\n\nUse rules.\n");
        let workspace = open(root.path());
        let text = "<skill_content name=\"tables\">Use rules.</skill_content>";
        assert_eq!(call(&workspace, "tables").await.unwrap(), text);
        write(root.path(), file, "---\nname: tables\n---\nOther rules.");
        assert_eq!(call(&workspace, "tables").await.unwrap(), text);
        let other = call(&open(root.path()), "tables").await.unwrap();
        assert!(other.contains("Other rules."));
    }

    #[tokio::test]
    async fn an_unknown_skill_is_refused_with_the_known_ones() {
        let root = tempfile::tempdir().unwrap();
        let none = call(&open(root.path()), "x").await.unwrap_err();
        assert!(none.contains("there are none"), "{none}");
        write(root.path(), ".agents/skills/a/SKILL.md", "# A");
        write(root.path(), ".claude/skills/b/SKILL.md", "# B");
        for name in ["c", "../../a", "a\nb", ""] {
            let text = call(&open(root.path()), name).await.unwrap_err();
            assert!(text.contains("there are: a, b"), "{text}");
        }
    }

    #[tokio::test]
    async fn a_skill_has_other_files_and_a_bound() {
        let root = tempfile::tempdir().unwrap();
        let long = format!("---\nname: long\n---\n{}", "é".repeat(60 * 1_024));
        write(root.path(), ".agents/skills/long/SKILL.md", &long);
        write(root.path(), ".agents/skills/long/script.py", "");
        let text = call(&open(root.path()), "long").await.unwrap();
        assert!(text.len() < TEXT_BYTES_MAX + 1_024 && !text.contains('\u{fffd}'));
        assert!(
            text.contains("é\n[there is more in .agents/skills/long/SKILL.md]</skill_content>")
        );
        assert!(text.ends_with("[other files of this skill are in .agents/skills/long]"));
    }
}
