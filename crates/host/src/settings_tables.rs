//! The keys of the tables that a settings file may have several of, with what they do, for its template.
//!
//! Must not know: what the settings are used for.

/// A key, what it does, and what it may look like if its default is to have none.
pub(crate) type Setting = (&'static str, &'static str, Option<&'static str>);

/// The keys of a `[[models]]` table.
pub(crate) const MODEL_SETTINGS: &[Setting] = &[
    ("id", "What clients and the server call it.", Some("\"qwen3\"")),
    ("base_url", "Any server that speaks Chat Completions.", Some("\"http://localhost:11434/v1\"")),
    (
        "api",
        "How the server is asked: \"chat\" (Chat Completions), \"anthropic\", \"responses\" or \"gemini\".",
        Some("\"chat\""),
    ),
    ("name", "What people see, if not the id.", Some("\"Qwen 3\"")),
    ("model", "What the server calls it, if not the id.", Some("\"qwen3:latest\"")),
    (
        "key_env",
        "The variable of the host's environment that holds the key. Keys are never in this file.",
        Some("\"MY_API_KEY\""),
    ),
    ("key_file", "Or the file that holds it.", Some("\"/path/to/key\"")),
    ("key_command", "Or the command that prints it.", Some("[\"pass\", \"show\", \"my-key\"]")),
    (
        "key_header",
        "The header that carries the key, if it is no bearer token.",
        Some("\"x-api-key\""),
    ),
    ("query", "Query parameters of requests.", Some("{ api-version = \"1\" }")),
    ("headers", "Further headers of requests.", Some("{ X-Team = \"mine\" }")),
    (
        "known_as",
        "The known model that it is, where its server has another name for it.",
        Some("\"gpt-5.5\""),
    ),
    ("context_tokens", "The size of its context window, in tokens.", Some("32768")),
    ("output_tokens", "The longest answer, in tokens.", Some("8192")),
    ("vision", "Whether it accepts images.", Some("false")),
    ("pdf", "Whether it accepts PDFs.", Some("false")),
    ("pdf_pages", "The most pages of a PDF.", Some("100")),
    ("pdf_bytes", "The largest PDF.", Some("32000000")),
    ("pdf_encrypted", "Whether it can open an encrypted PDF.", Some("false")),
    ("audio", "Whether it accepts audio.", Some("false")),
    ("video", "Whether it accepts video.", Some("false")),
    ("tools", "Whether it can call tools.", Some("true")),
    (
        "efforts",
        "The levels of reasoning effort that it offers, as its server names them.",
        Some("[\"low\", \"high\"]"),
    ),
    (
        "settings",
        "Settings that messages may give it, as JSON Schema.",
        Some("{ temperature = { type = \"number\" } }"),
    ),
    (
        "server_tools",
        "Tools that the server carries out itself, as its API names them.",
        Some("[{ type = \"web_search\" }]"),
    ),
    ("stall_s", "Seconds for which the server may be silent.", Some("300")),
    ("prices", "Dollars per million tokens.", Some("{ input = 0.5, output = 1.5 }")),
];

/// The keys of an `[[agents]]` table.
pub(crate) const AGENT_SETTINGS: &[Setting] = &[
    (
        "id",
        "What it is called on the command line: small letters, digits and `-`.",
        Some("\"claude\""),
    ),
    (
        "preset",
        "What the rest is taken from: claude, codex, gemini, opencode, qwen, goose or copilot; the id, if it is one of them.",
        Some("\"claude\""),
    ),
    ("name", "What people see.", Some("\"Claude Code\"")),
    (
        "command",
        "The program: a name that is looked for on PATH, or a whole path. No shell.",
        Some("\"claude-agent-acp\""),
    ),
    ("args", "Its arguments.", Some("[]")),
    (
        "env",
        "Variables of its environment. It gets PATH, HOME and the like, and no keys of the host.",
        Some("{ ANTHROPIC_BASE_URL = \"http://localhost:8080\" }"),
    ),
    (
        "env_from",
        "Variables that it gets from the host's environment, or from files: { NAME = { file = \"/path\" } }.",
        Some("[\"ANTHROPIC_API_KEY\"]"),
    ),
    (
        "auth",
        "The method of its own by which it is signed in when it says that it is not.",
        Some("{ method = \"api-key\" }"),
    ),
    (
        "share",
        "Who shares a process: \"directory\", all chats there; \"chat\", nobody.",
        Some("\"directory\""),
    ),
    (
        "mcp",
        "Whether it gets the MCP servers that are configured here: \"hand-over\" or \"none\".",
        Some("\"hand-over\""),
    ),
    ("fs", "Whether it reads and writes files through the host.", Some("false")),
    (
        "trust",
        "Whether you are asked before it starts in a directory that is not trusted: \"ask\", \"always\" (it starts), \"never\".",
        Some("\"ask\""),
    ),
    ("idle_s", "Seconds without a turn after which its process is stopped.", Some("900")),
    ("start_timeout_s", "Seconds that it may take to start.", Some("60")),
];

/// The keys of an `[[mcp]]` table.
pub(crate) const MCP_SETTINGS: &[Setting] = &[
    ("name", "Its name, with which the names of its tools begin.", Some("\"files\"")),
    (
        "command",
        "The program: a name that is looked for on PATH, or a whole path. No shell.",
        Some("\"npx\""),
    ),
    (
        "args",
        "Its arguments.",
        Some("[\"-y\", \"@modelcontextprotocol/server-filesystem\", \"${workspaceFolder}\"]"),
    ),
    (
        "env",
        "Variables of its environment; \"${env:NAME}\" is one of the host's. It gets PATH, HOME and the like, and no keys.",
        Some("{ API_KEY = \"${env:API_KEY}\" }"),
    ),
    ("cwd", "Where it works; the session's first directory without it.", Some("\"/srv\"")),
    (
        "url",
        "Instead of a command: a server that speaks streamable HTTP.",
        Some("\"https://mcp.example.com/mcp\""),
    ),
    ("headers", "Headers of requests to it.", Some("{ Authorization = \"Bearer ${env:TOKEN}\" }")),
    (
        "transport",
        "\"stdio\" for a command, \"http\" for a URL; follows from which of them is there.",
        Some("\"stdio\""),
    ),
    ("tools", "Tools offered to models (default: all).", Some("[\"read_file\"]")),
    ("timeout_s", "Seconds that a call may go without a sign of life.", Some("120")),
    (
        "trust_hints",
        "Whether a tool that the server calls read-only and closed to the outside runs without asking.",
        Some("false"),
    ),
    (
        "oauth",
        "The client that you registered at the server's authorisation server, if it registers none by itself; with \
         `issuer`, `client_secret_file` and `share_secret = true` if it has a secret, which clients are told then and which is sent \
         to that issuer alone.",
        Some("{ client_id = \"..\" }"),
    ),
    ("disabled", "Whether it is left out.", Some("false")),
];

/// The keys of a `[[spaces]]` table.
pub(crate) const SPACE_SETTINGS: &[Setting] = &[
    ("name", "Small letters, digits and `-`.", Some("\"team-a\"")),
    (
        "data",
        "The directory that holds all it has, its token too.",
        Some("\"/srv/greenroom/team-a\""),
    ),
    (
        "workspaces",
        "Directories that its sessions may work in; those of the host if absent.",
        Some("[\"/srv/team-a\"]"),
    ),
];

/// The keys of a `[[mounts]]` table.
pub(crate) const MOUNT_SETTINGS: &[Setting] = &[
    ("label", "What spaces call it: small letters, digits and `-`.", Some("\"src\"")),
    (
        "path",
        "The directory, at the same path on every node that offers the label.",
        Some("\"/srv/src\""),
    ),
];
