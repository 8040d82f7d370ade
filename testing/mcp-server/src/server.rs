//! What the server answers to requests.
#![allow(deprecated, reason = "servers of today still log and ask for roots")]

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CompletionInfo,
    ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    Prompt, PromptArgument, PromptMessage, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Role,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};

use crate::{Switches, tools};

/// Tools on one page of a list.
const PAGE: usize = 1_000;

/// How often a server that is never at rest says that its tools changed.
const RESTLESS_EVERY: Duration = Duration::from_millis(5);

/// The server, one for each connection.
#[derive(Debug, Clone)]
pub struct TestServer {
    switches: Arc<Switches>,
    /// Whether the tool `extra` is there: the list changed.
    pub(crate) has_extra: Arc<AtomicBool>,
    /// How often its tools were listed.
    listed: Arc<AtomicUsize>,
}

impl TestServer {
    pub fn new(switches: Switches) -> Self {
        Self { switches: Arc::new(switches), has_extra: Arc::default(), listed: Arc::default() }
    }
}

impl ServerHandler for TestServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_completions()
            .enable_logging()
            .build();
        let mut config = ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("test-server", "1.2.3"))
            .with_instructions("Call `echo` to hear yourself.");
        if self.switches.newest {
            config.protocol_version = ProtocolVersion::NO_INITIALIZE;
        }
        config
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        if self.switches.newest {
            Cow::Borrowed(&[ProtocolVersion::NO_INITIALIZE])
        } else {
            Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
        }
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if let Some(words) = &self.switches.refuses {
            return Err(ErrorData::internal_error(words.clone(), None));
        }
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if !self.switches.restless {
            return; // it is at rest
        }
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(RESTLESS_EVERY);
            while context.peer.notify_tool_list_changed().await.is_ok() {
                ticks.tick().await;
            }
        });
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        eprintln!("the roots changed");
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let page: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let mut list = Vec::new();
        if page == 0 {
            list = tools::named();
            if self.has_extra.load(Ordering::SeqCst) {
                list.push(tools::extra());
            }
        }
        let (first, all) = (page * PAGE, self.switches.tools);
        list.extend((first..all.min(first + PAGE)).map(tools::numbered));
        if self.switches.endless {
            list.push(tools::numbered(page));
        }
        if self.switches.restless {
            let listed = self.listed.fetch_add(1, Ordering::SeqCst);
            list.push(tools::listed(listed));
        }
        let mut result = ListToolsResult::with_all_items(list);
        if all > first + PAGE || self.switches.endless {
            result.next_cursor = Some((page + 1).to_string());
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = tools::call(self, &request.name, &arguments, &context).await?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments =
            vec![PromptArgument::new("file").with_required(true), PromptArgument::new("focus")];
        let review = Prompt::new("review", Some("Reviews a file"), Some(arguments));
        Ok(ListPromptsResult::with_all_items(vec![review]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let named = |name: &str| arguments.get(name).and_then(|text| text.as_str()).unwrap_or("-");
        let text = format!("Review {} with {}", named("file"), named("focus"));
        let embedded = ContentBlock::embedded_text("test://guide", "Be kind.");
        Ok(GetPromptResult::new(vec![
            PromptMessage::new_text(Role::User, text),
            PromptMessage::new(Role::User, embedded),
            PromptMessage::new_text(Role::Assistant, "I will."),
        ])
        .into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let guide = Resource::new("test://guide", "guide").with_description("How to review");
        let mut resources = vec![guide];
        if self.has_extra.load(Ordering::SeqCst) {
            resources.push(Resource::new("test://extra", "extra"));
        }
        let many = (0..self.switches.resources)
            .map(|number| Resource::new(format!("test://many/{number}"), "one of many"));
        resources.extend(many);
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let page = ResourceTemplate::new("test://page/{name}", "page");
        Ok(ListResourceTemplatesResult::with_all_items(vec![page]))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let before = request.context.and_then(|context| context.arguments);
        let file = before.and_then(|before| before.get("file").cloned());
        let known = match (request.argument.name.as_str(), file) {
            ("file", _) => vec!["main.rs".to_owned(), "my notes.md".to_owned()],
            ("focus", Some(file)) => vec![format!("style of {file}")],
            ("name", _) => vec!["one".to_owned(), "two".to_owned()],
            _ => Vec::new(),
        };
        let values = known.into_iter().filter(|value| value.starts_with(&request.argument.value));
        let info = CompletionInfo::new(values.collect())
            .map_err(|error| ErrorData::internal_error(error, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match request.uri.as_str() {
            "test://guide" => {
                let text = ResourceContents::text("Be kind.", "test://guide");
                Ok(ReadResourceResult::new(vec![text]).into())
            }
            "test://page/one" => {
                let text = ResourceContents::text("The first page.", "test://page/one");
                Ok(ReadResourceResult::new(vec![text]).into())
            }
            "test://pixel" => {
                let picture = ResourceContents::blob(tools::PIXEL, "test://pixel")
                    .with_mime_type("image/png");
                Ok(ReadResourceResult::new(vec![picture]).into())
            }
            other => Err(ErrorData::resource_not_found(format!("no {other}"), None)),
        }
    }
}
