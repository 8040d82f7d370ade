//! The tools that a model is offered in one round: the agent's own, those of MCP servers (MC-6), and those of the active
//! clients (G-73).
//!
//! Promises: every name is one that model servers take, and means one tool; an agent's own tool wins over a server's,
//! and that over a client's of the same name; what is too large for a request is left out, and said.
//! Must not know: which client offers a tool, how servers are spoken to.

use std::borrow::Cow;
use std::fmt::Write;

use agent_api::{ClientToolOffer, ToolExecutor, ToolStart};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wire::Object;
use wire::meta::TOOL_KIND;
use wire::published::state::{ToolCallContributor, ToolCallMcpContributor};

use super::consent::PermissionMode;
use super::exit_plan;
use super::tool_scope::ToolScope;
use crate::mcp::SessionTool;
use crate::provider::ToolSpec;
use crate::tool::Tool;

/// Servers take at most 128 tools a request; the agent's own come first.
const CLIENT_TOOLS_MAX: usize = 100;

/// What a request may have at most.
const TOOLS_MAX: usize = 128;

/// Longer descriptions are cut.
const DESCRIPTION_BYTES_MAX: usize = 4 * 1_024;

/// Tools with a larger schema are left out.
const SCHEMA_BYTES_MAX: usize = 32 * 1_024;

/// All descriptions and schemas of clients together: they are a part of every request.
const OFFER_BYTES_MAX: usize = 256 * 1_024;

/// The longest name that all model servers take.
const NAME_BYTES_MAX: usize = 64;

/// Hexadecimal digits that distinguish names that had to be changed.
const NAME_DIGEST_DIGITS: usize = 8;

/// What a model may call in one round.
pub(super) struct OfferedTools<'a> {
    own: Vec<&'a dyn Tool>,
    servers: Vec<SessionTool>,
    clients: Vec<OfferedClientTool>,
    /// Tools of servers and clients that are not offered, and why.
    pub left_out: Vec<String>,
}

/// One of them.
pub(super) enum OfferedTool<'a> {
    Own(&'a dyn Tool),
    Server(&'a SessionTool),
    Client(&'a OfferedClientTool),
}

/// A tool that a client carries out.
pub(super) struct OfferedClientTool {
    /// As clients call it.
    pub name: String,
    /// As people read it.
    pub title: String,
    spec: ToolSpec,
}

/// The tools of clients that a turn may use, by the names that models know them by.
pub(super) fn offers_within(
    offers: Vec<ClientToolOffer>,
    scope: &ToolScope,
) -> Vec<ClientToolOffer> {
    let may_use = |offer: &ClientToolOffer| scope.allows(&model_name(&offer.name));
    offers.into_iter().filter(may_use).collect()
}

impl<'a> OfferedTools<'a> {
    pub(super) fn new(own: &[&'a dyn Tool], offers: Vec<ClientToolOffer>) -> Self {
        Self::with_servers(own, Vec::new(), offers)
    }

    pub(super) fn with_servers(
        own: &[&'a dyn Tool],
        servers: Vec<SessionTool>,
        offers: Vec<ClientToolOffer>,
    ) -> Self {
        let mut offered = Self {
            own: own.to_vec(),
            servers: Vec::new(),
            clients: Vec::new(),
            left_out: Vec::new(),
        };
        offered.add_servers(servers);
        offered.add_clients(offers);
        offered
    }

    fn add_servers(&mut self, tools: Vec<SessionTool>) {
        let mut bytes = 0;
        for tool in tools {
            let size = tool.model_name.len()
                + tool.tool.description.len()
                + wire::rpc::to_json(&tool.tool.schema).len();
            if self.own.len() + self.servers.len() >= TOOLS_MAX {
                let why = format!("at most {TOOLS_MAX} tools are offered to a model");
                self.leave_out(&tool.model_name, &why);
            } else if bytes + size > OFFER_BYTES_MAX {
                let why = format!("those of MCP servers have at most {OFFER_BYTES_MAX} bytes");
                self.leave_out(&tool.model_name, &why);
            } else {
                bytes += size;
                self.servers.push(tool);
            }
        }
    }

    fn add_clients(&mut self, offers: Vec<ClientToolOffer>) {
        let offered = self;
        let mut bytes = 0;
        for offer in offers {
            let name = offer.name.clone();
            match OfferedClientTool::from_offer(offer) {
                Ok(tool) if offered.find(&tool.spec.name).is_some() => {} // the first wins
                Ok(tool) if offered.count() >= TOOLS_MAX => {
                    let why = format!("at most {TOOLS_MAX} tools are offered to a model");
                    offered.leave_out(&tool.name, &why);
                }
                Ok(tool) if offered.clients.len() >= CLIENT_TOOLS_MAX => {
                    let why = format!("at most {CLIENT_TOOLS_MAX} tools of clients are offered");
                    offered.leave_out(&tool.name, &why);
                }
                Ok(tool) if bytes + tool.bytes() > OFFER_BYTES_MAX => {
                    let why = format!("all of them have at most {OFFER_BYTES_MAX} bytes");
                    offered.leave_out(&tool.name, &why);
                }
                Ok(tool) => {
                    bytes += tool.bytes();
                    offered.clients.push(tool);
                }
                Err(why) => offered.leave_out(&name, &why),
            }
        }
    }

    fn count(&self) -> usize {
        self.own.len() + self.servers.len() + self.clients.len()
    }

    /// Only who plans is asked to show a plan.
    pub(super) fn for_mode(mut self, mode: PermissionMode) -> Self {
        if mode != PermissionMode::Plan {
            self.own.retain(|tool| tool.name() != exit_plan::NAME);
        }
        self
    }

    fn leave_out(&mut self, name: &str, why: &str) {
        let end = name.floor_char_boundary(NAME_BYTES_MAX);
        let name = name[..end].replace(|c: char| c.is_control() || c == '`', " ");
        self.left_out.push(format!("`{name}`: {why}"));
    }

    /// The tool that a model means.
    pub(super) fn find(&self, name: &str) -> Option<OfferedTool<'_>> {
        let own = self.own.iter().find(|tool| tool.name() == name);
        let server = || self.servers.iter().find(|tool| tool.model_name == name);
        let client = || self.clients.iter().find(|tool| tool.spec.name == name);
        let own = own.map(|tool| OfferedTool::Own(*tool));
        own.or_else(|| server().map(OfferedTool::Server))
            .or_else(|| client().map(OfferedTool::Client))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The names that the model knows them by.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let own = self.own.iter().map(|tool| tool.name());
        own.chain(self.names_of_others())
    }

    fn names_of_others(&self) -> impl Iterator<Item = &str> {
        let servers = self.servers.iter().map(|tool| tool.model_name.as_str());
        servers.chain(self.clients.iter().map(|tool| tool.spec.name.as_str()))
    }

    /// The names of those that may change something.
    pub(super) fn names_of_changing(&self) -> impl Iterator<Item = &str> {
        let own = self.own.iter().filter(|tool| tool.effect().changes()).map(|tool| tool.name());
        own.chain(self.names_of_others())
    }

    pub(super) fn specs(&self) -> Vec<ToolSpec> {
        let own = self.own.iter().map(|tool| ToolSpec {
            name: tool.name().to_owned(),
            description: tool.facts().description.to_owned(),
            parameters: tool.parameters(),
        });
        let servers = self.servers.iter().map(|tool| ToolSpec {
            name: tool.model_name.clone(),
            description: tool.tool.description.clone(),
            parameters: tool.tool.schema.clone(),
        });
        let clients = self.clients.iter().map(|tool| tool.spec.clone());
        own.chain(servers).chain(clients).collect()
    }

    /// How a call that a model makes is announced.
    pub(super) fn announce(&self, name: &str) -> ToolStart {
        match self.find(name) {
            Some(OfferedTool::Own(tool)) => ToolStart {
                name: name.to_owned(),
                display_name: tool.display_name().to_owned(),
                meta: tool
                    .facts()
                    .kind
                    .map(|kind| Object::from_iter([(TOOL_KIND.to_owned(), json!(kind))])),
                ..ToolStart::default()
            },
            Some(OfferedTool::Server(tool)) => ToolStart {
                name: name.to_owned(),
                display_name: tool.tool.title.clone(),
                contributor: Some(ToolCallContributor::Mcp(ToolCallMcpContributor {
                    customization_id: tool.server.id().to_owned(),
                })),
                ..ToolStart::default()
            },
            Some(OfferedTool::Client(tool)) => ToolStart {
                name: tool.name.clone(),
                display_name: tool.title.clone(),
                executor: ToolExecutor::Client,
                ..ToolStart::default()
            },
            None => ToolStart {
                name: name.to_owned(),
                display_name: name.to_owned(),
                ..ToolStart::default()
            },
        }
    }
}

impl OfferedClientTool {
    /// A tool as a model is offered it, or why it cannot be.
    fn from_offer(offer: ClientToolOffer) -> Result<Self, String> {
        if offer.name.is_empty() {
            return Err("it has no name".to_owned());
        }
        let parameters = match offer.input_schema {
            None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
            Some(Value::Object(schema)) => Value::Object(schema),
            Some(_) => return Err("its input schema is not an object".to_owned()),
        };
        let spec = ToolSpec {
            name: model_name(&offer.name).into_owned(),
            description: clip(offer.description.unwrap_or_default()),
            parameters,
        };
        if schema_bytes(&spec) > SCHEMA_BYTES_MAX {
            let why = format!("its input schema has more than {SCHEMA_BYTES_MAX} bytes");
            return Err(why);
        }
        let title = offer.title.filter(|title| !title.is_empty());
        Ok(Self {
            title: clip(title.unwrap_or_else(|| offer.name.clone())),
            name: offer.name,
            spec,
        })
    }

    fn bytes(&self) -> usize {
        self.spec.name.len() + self.spec.description.len() + schema_bytes(&self.spec)
    }
}

fn schema_bytes(spec: &ToolSpec) -> usize {
    wire::rpc::to_json(&spec.parameters).len()
}

fn clip(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(DESCRIPTION_BYTES_MAX));
    text
}

/// The name under which a model is offered a client's tool: the tool's own where servers take it, else one that is made
/// of it, the same in every request.
pub(super) fn model_name(name: &str) -> Cow<'_, str> {
    let is_taken = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if name.len() <= NAME_BYTES_MAX && starts_well && name.chars().all(is_taken) {
        return Cow::Borrowed(name);
    }
    let mut made = String::with_capacity(NAME_BYTES_MAX);
    if !starts_well {
        made.push('_');
    }
    let chars = name.chars().map(|c| if is_taken(c) { c } else { '_' });
    let left = NAME_BYTES_MAX - made.len() - NAME_DIGEST_DIGITS - 1;
    made.extend(chars.take(left));
    made.push('_');
    for byte in Sha256::digest(name).iter().take(NAME_DIGEST_DIGITS / 2) {
        let _ = write!(made, "{byte:02x}"); // writing to a string does not fail
    }
    Cow::Owned(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;
    use crate::tool::WorkerBrief;

    fn offer(name: &str) -> ClientToolOffer {
        ClientToolOffer { name: name.to_owned(), ..ClientToolOffer::default() }
    }

    #[test]
    fn names_are_what_servers_take_and_stay_different() {
        for good in ["vscode_listCodeUsages", "_x", "a-b", &"a".repeat(64)] {
            assert_eq!(model_name(good), good);
        }
        let long = "n".repeat(300);
        let bad = ["mcp.server/tool", "mcp server/tool", "1st", "größe", &long];
        let made: Vec<String> = bad.iter().map(|name| model_name(name).into_owned()).collect();
        for (index, name) in made.iter().enumerate() {
            assert_eq!(model_name(name), name.as_str(), "{name} is taken");
            assert!(!made[..index].contains(name), "{made:?}");
        }
    }

    #[test]
    fn a_worker_is_offered_the_tools_of_clients_that_its_brief_names() {
        let offers = || vec![offer("rename"), offer("mcp server/tool"), offer("other")];
        let brief = |tools: Value| {
            let brief = json!({ "tools": tools }).to_string();
            Some(WorkerBrief::read(brief.as_bytes()).unwrap())
        };
        let names = |brief: Option<WorkerBrief>| -> Vec<String> {
            let offers = offers_within(offers(), &ToolScope::new(brief, None));
            offers.into_iter().map(|offer| offer.name).collect()
        };
        assert_eq!(names(None).len(), 3);
        assert_eq!(names(brief(json!([]))).len(), 3);
        let made = model_name("mcp server/tool").into_owned();
        let some = brief(json!(["read", "rename", made]));
        assert_eq!(names(some), ["rename", "mcp server/tool"]);
    }

    #[test]
    fn an_own_tool_wins_and_what_is_too_large_is_left_out() {
        let tools = tool::all(&std::sync::Arc::default(), &std::sync::Arc::default());
        let own: Vec<&dyn Tool> = tools.iter().map(|tool| &**tool).collect();
        let large = ClientToolOffer {
            input_schema: Some(json!({"description": "x".repeat(SCHEMA_BYTES_MAX)})),
            ..offer("large")
        };
        let text = ClientToolOffer { input_schema: Some(json!("text")), ..offer("text") };
        let described = ClientToolOffer {
            description: Some("ü".repeat(DESCRIPTION_BYTES_MAX)),
            ..offer("rename")
        };
        let offers = vec![offer("bash"), large, described, text, offer("")];
        let offered = OfferedTools::new(&own, offers);
        assert!(matches!(offered.find("bash"), Some(OfferedTool::Own(_))));
        let names: Vec<&str> = offered.names().skip(own.len()).collect();
        assert_eq!(names, ["rename"]);
        assert!(offered.specs()[own.len()].description.len() <= DESCRIPTION_BYTES_MAX);
        assert_eq!(
            offered.left_out,
            [
                "`large`: its input schema has more than 32768 bytes",
                "`text`: its input schema is not an object",
                "``: it has no name",
            ]
        );
        let many = (0..CLIENT_TOOLS_MAX + 3).map(|n| offer(&format!("t{n}")));
        let offered = OfferedTools::new(&own, many.collect());
        assert_eq!(offered.clients.len(), CLIENT_TOOLS_MAX);
        assert_eq!(offered.left_out.len(), 3);
    }
}
