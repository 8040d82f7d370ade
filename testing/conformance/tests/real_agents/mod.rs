//! Agents that others make, as `xtask interop` installed them: where they are, and what each must be told to talk to the model server
//! of the test kit instead of its maker's.

pub(crate) mod model;
pub(crate) mod processes;

use std::path::Path;

use serde_json::json;

/// One agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RealAgent {
    /// The preset, and the directory it is installed in.
    pub name: &'static str,
    /// The script that starts it, from that directory.
    program: &'static str,
    /// Variables; `{url}` is the server's address, `{home}` the agent's own home.
    env: &'static [(&'static str, &'static str)],
    /// Files of that home.
    files: &'static [(&'static str, &'static str)],
    /// Lines of its table in the settings file.
    entry: &'static str,
    /// Settings of the session in which it asks before it runs a command.
    pub config: &'static [(&'static str, &'static str)],
}

pub(crate) const CLAUDE: RealAgent = RealAgent {
    name: "claude",
    program: "node_modules/.bin/claude-agent-acp",
    env: &[
        ("ANTHROPIC_BASE_URL", "{url}"),
        ("ANTHROPIC_API_KEY", "sk-ant-of-the-tests"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        // It refuses to work as root otherwise.
        ("IS_SANDBOX", "1"),
    ],
    files: &[],
    entry: "",
    config: &[],
};

pub(crate) const GEMINI: RealAgent = RealAgent {
    name: "gemini",
    program: "node_modules/.bin/gemini",
    env: &[
        ("GEMINI_API_KEY", "key-of-the-tests"),
        ("GOOGLE_GEMINI_BASE_URL", "{url}"),
        ("GEMINI_MODEL", "gemini-2.5-flash"),
    ],
    files: &[(
        ".gemini/settings.json",
        r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"disableAutoUpdate": true}}"#,
    )],
    entry: "",
    config: &[],
};

pub(crate) const OPENCODE: RealAgent = RealAgent {
    name: "opencode",
    program: "node_modules/.bin/opencode",
    env: &[],
    files: &[(
        ".config/opencode/opencode.json",
        r#"{"model": "fake/fake-model", "permission": {"bash": "ask"}, "provider": {"fake": {
            "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "{url}/v1", "apiKey": "key-of-the-tests"},
            "models": {"fake-model": {"limit": {"context": 100000, "output": 1000}}}}}}"#,
    )],
    entry: "",
    config: &[],
};

pub(crate) const CODEX: RealAgent = RealAgent {
    name: "codex",
    program: "node_modules/.bin/codex-acp",
    env: &[("CODEX_HOME", "{home}/.codex"), ("OPENAI_API_KEY", "key-of-the-tests")],
    files: &[(
        ".codex/config.toml",
        "model = \"fake-model\"\nmodel_provider = \"fake\"\n\n[model_providers.fake]\nname = \"fake\"\n\
         base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n",
    )],
    entry: "auth = { method = \"api-key\" }",
    config: &[("agent_mode", "read-only")],
};

pub(crate) const QWEN: RealAgent = RealAgent {
    name: "qwen",
    program: "node_modules/.bin/qwen",
    env: &[
        ("OPENAI_API_KEY", "key-of-the-tests"),
        ("OPENAI_BASE_URL", "{url}/v1"),
        ("OPENAI_MODEL", "fake-model"),
    ],
    files: &[(
        ".qwen/settings.json",
        r#"{"security": {"auth": {"selectedType": "openai"}}, "general": {"disableAutoUpdate": true}}"#,
    )],
    entry: "",
    config: &[("agent_mode", "default")],
};

impl RealAgent {
    /// Its table in the settings file, over its preset; its home is made.
    pub(crate) fn table(&self, place: &Path, home: &Path, url: &str) -> String {
        let fill = |text: &str| {
            let home = home.display().to_string();
            text.replace("{url}", url).replace("{home}", &home)
        };
        for (path, text) in self.files {
            let path = home.join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            std::fs::write(path, fill(text)).expect("a file");
        }
        let bin = |name: &str| place.join(name).display().to_string();
        let path = format!(
            "{}:{}",
            bin("../node/node_modules/node/bin"),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut env = vec![format!("PATH = {}", json!(path)), format!("HOME = {}", json!(home))];
        env.extend(self.env.iter().map(|(name, value)| format!("{name} = {}", json!(fill(value)))));
        format!(
            "command = {}\ntrust = \"always\"\n{}\nenv = {{ {} }}",
            json!(place.join(self.program)),
            self.entry,
            env.join(", ")
        )
    }
}
