//! What measurements call in place instead of over a socket: every name of the host's own crates that a row uses.
//!
//! The same rows measure two versions of the host. Where a type or a function has another name in one of them, only
//! this file differs.
//! Must not know: what is measured.

/// The WebSocket side of the host, which the bare server shares.
pub(crate) mod net {
    pub(crate) use host::ServerLimits;
    pub(crate) use host::kernel_queue::QueuedInput;
    pub(crate) use host::net::{Admission, Link, serve};
    pub(crate) use kernel::{Frame, Input, PeerId};
}

/// The journal and its records.
pub(crate) mod journal {
    pub(crate) use host::journal::{Journal, LocalJournal, Sqlite};
    pub(crate) use kernel::{Batch, ChannelId, Head, Record, Seq, StoredKind, SummaryRecord};

    use kernel::{BootWork, ChannelRecord};
    use wire::ChannelUri;

    /// What a row says of a channel it writes.
    pub(crate) struct ChannelFields {
        pub id: ChannelId,
        pub uri: ChannelUri,
        pub kind: StoredKind,
        pub parent: Option<ChannelId>,
        pub head: Head,
        pub head_seq: Seq,
        pub private: Vec<u8>,
    }

    /// A channel for which there is nothing to do when a host starts.
    pub(crate) fn channel_record(fields: ChannelFields) -> Record {
        Record::Channel(ChannelRecord {
            id: fields.id,
            uri: fields.uri,
            kind: fields.kind,
            parent: fields.parent,
            head: fields.head,
            head_seq: fields.head_seq,
            boot_work: BootWork::default(),
            private: fields.private.into(),
        })
    }
}

/// Spaces in a database, and who may come in.
pub(crate) mod spaces {
    pub(crate) use host::accounts::{AccountAdmin, NewToken, Role};
    pub(crate) use host::journal::{JournalHandle, PostgresNode, PostgresSettings};
}

/// What becomes of a message before it is recorded.
pub(crate) mod messages {
    use std::path::Path;

    use anyhow::{Result, anyhow, ensure};
    use host::blobs::FileBlobs;
    use host::compose::{KnownNames, compose_and_store};
    use kernel::{ComposeTask, MessageContext};
    use wire::{Object, Timestamp};

    /// The host's way of a message with attachments to its blob store.
    pub(crate) struct MessageStore {
        blobs: FileBlobs,
        known: KnownNames,
    }

    impl MessageStore {
        pub(crate) fn open(data: &Path) -> Result<Self> {
            Ok(Self { blobs: FileBlobs::open(data)?, known: KnownNames::default() })
        }

        /// Composes a message; bodies above `inline_bytes` are decoded, hashed, stored and synced when this returns.
        pub(crate) fn compose(&self, message: Object, inline_bytes: usize) -> Result<()> {
            let compose = ComposeTask {
                context: MessageContext::default(),
                message,
                detached: Vec::new(),
                client_files: Vec::new(),
                working_directories: Vec::new(),
                each_bytes: inline_bytes,
                left_bytes: 20 * inline_bytes,
            };
            let composed = compose_and_store(&self.blobs, &self.known, compose, Timestamp(0))
                .map_err(|failed| anyhow!(failed.0))?;
            ensure!(composed.inline_bytes == 0, "a body stayed in its message");
            Ok(())
        }
    }
}

/// Composing and lowering.
pub(crate) mod compositor {
    pub(crate) use compositor::compose::{AttachmentBudget, Composed};
    pub(crate) use compositor::lower::{Capabilities, Target, lower};
    pub(crate) use compositor::resolve::{FileRead, ImageLimits, Sources, WhyUnavailable};
    pub(crate) use compositor::{Catalogue, Environment, Part, SubmittedMessage, compose};
}

/// What makes trees and runs, without anything around it.
pub(crate) mod rendering {
    use anyhow::Result;
    use markup::highlight::{Language, highlight};

    pub(crate) fn parse_alone(text: &str) -> Result<()> {
        std::hint::black_box(markup::markdown::parse(text)?);
        Ok(())
    }

    pub(crate) fn colour_alone(code: &str) -> Result<()> {
        std::hint::black_box(highlight(code, Language::Rust, &mut || false)?);
        Ok(())
    }
}

/// Completions over the paths of a workspace.
pub(crate) mod completion {
    pub(crate) use host::complete::items_from_memory;
    pub(crate) use workspace::completion::{PathKind, Paths};
    pub(crate) use workspace::discovery::{Discovered, DiscoveryCache, discover};
    pub(crate) use workspace::{Confinement, UserDirectories};
}

/// A system prompt with something in every section.
pub(crate) mod prompt {
    pub(crate) use agent_api::Section;
    pub(crate) use agents::prompt::Prompt;

    use agents::prompt::{CustomInstructions, EnvironmentContext, ToolInstructions};
    use workspace::{GitHead, GitState, InstructionFile};

    pub(crate) fn example() -> Prompt {
        let text = "Use tabs. Test what you change. ".repeat(64);
        Prompt {
            agent_name: "Greenroom".to_owned(),
            environment_context: EnvironmentContext {
                directories: vec!["/home/user/project".to_owned()],
                os: "linux".to_owned(),
                date: "2026-11-15".to_owned(),
                git: Some(GitState { head: GitHead::Branch("main".to_owned()), operation: None }),
            },
            tool_instructions: ToolInstructions {
                servers: Vec::new(),
                tools: ["read", "list", "grep", "write", "edit", "bash"]
                    .map(str::to_owned)
                    .to_vec(),
                skills: Vec::new(),
            },
            custom_instructions: CustomInstructions {
                listed: Vec::new(),
                files: vec![InstructionFile { path: "AGENTS.md".to_owned(), text }],
            },
            ..Prompt::default()
        }
    }
}

/// Agents over ACP.
pub(crate) mod acp {
    pub(crate) use agents::acp::LineMapper;
}

/// MCP servers as the native agent uses them.
pub(crate) mod mcp {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use agents::mcp::{
        CallHost, Elicitation, ElicitationAnswer, McpConnection, McpContent, McpDeclaration,
        McpTransport, ServerDirectories,
    };
    use anyhow::Result;
    use async_trait::async_trait;
    use serde_json::{Map, Value};

    /// A server over pipes.
    pub(crate) struct PipedServer(McpConnection);

    /// A call that nobody looks at.
    pub(crate) struct SilentCaller;

    #[async_trait]
    impl CallHost for SilentCaller {
        async fn show_progress(&self, _line: String) {}

        async fn elicit(&self, _elicitation: Elicitation) -> ElicitationAnswer {
            ElicitationAnswer::Cancel
        }

        async fn withdraw(&self) {}
    }

    impl PipedServer {
        pub(crate) async fn open(
            program: &Path,
            args: &[&str],
            directory: PathBuf,
        ) -> Result<Self> {
            let declaration = McpDeclaration {
                name: "bench".to_owned(),
                transport: McpTransport::Process {
                    command: program.display().to_string(),
                    args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                    env: BTreeMap::new(),
                    cwd: None,
                },
                program: None,
                tools: None,
                timeout: None,
                trust_hints: false,
                oauth: None,
            };
            let place = ServerDirectories { directory, roots: Vec::new() };
            Ok(Self(McpConnection::open(&declaration, &place, None).await?))
        }

        /// Calls a tool; how long the text is that it answers with.
        pub(crate) async fn call(
            &self,
            tool: &str,
            arguments: Map<String, Value>,
            caller: &SilentCaller,
        ) -> Result<usize> {
            let result = self.0.call(tool, arguments, caller).await?;
            let texts = result.content.iter().map(|content| match content {
                McpContent::Text(text) => text.len(),
                _ => 0,
            });
            Ok(texts.sum())
        }
    }
}
