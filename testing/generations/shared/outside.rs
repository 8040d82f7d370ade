//! What the native agent talks to: a model and an MCP server, plain HTTP on one port, answered by what is asked alone.
//!
//! The model calls the tool of the server once in a turn, and ends; a message that begins with `files` and a list has it call the tool
//! for files of the client with each entry. The server tells its tools to anybody, and wants a token for a call.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

/// The token that the server takes.
pub const TOKEN: &str = "let-me-in";

const TOOL: &str = "mcp__test__echo";

/// Serves until the process ends. Its address, without a path.
pub fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let own = origin.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let origin = own.clone();
            // Who asks may go away in the middle.
            std::thread::spawn(move || {
                let _ = answer(&stream, &origin);
            });
        }
    });
    origin
}

/// Settings of a host with this model and this server.
pub fn settings(origin: &str) -> String {
    format!(
        "agents_auto = false\n[[models]]\nid = \"m\"\nbase_url = \"{origin}/v1\"\n[[mcp]]\nname = \"test\"\nurl = \"{origin}/mcp\"\n"
    )
}

fn answer(stream: &TcpStream, origin: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| {
        let length = line.strip_prefix("content-length:")?;
        length.trim().parse::<u64>().ok()
    });
    let mut body = Vec::new();
    reader.take(length.unwrap_or_default()).read_to_end(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, kind, text) = if head.starts_with("post /v1/chat/completions") {
        ("200 OK", "text/event-stream", as_model(&body))
    } else if head.starts_with("post /mcp") {
        let has_token = head.contains(&format!("authorization: bearer {TOKEN}"));
        match as_server(&body, has_token) {
            Ok(result) => {
                let answer = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
                ("200 OK", "application/json", answer.to_string())
            }
            Err(status) => (status, "text/plain", String::new()),
        }
    } else if head.starts_with("get /.well-known/oauth-protected-resource") {
        let metadata = json!({"resource": format!("{origin}/mcp"), "authorization_servers": ["https://login.example"]});
        ("200 OK", "application/json", metadata.to_string())
    } else if head.starts_with("get /mcp") {
        ("405 Method Not Allowed", "text/plain", String::new())
    } else {
        ("404 Not Found", "text/plain", String::new())
    };
    let challenge = if status.starts_with("401") { "WWW-Authenticate: Bearer\r\n" } else { "" };
    let length = text.len();
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{challenge}Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"
    )
}

/// What is said since the user spoke last: the texts of that message, and how many calls were answered.
fn since_user(body: &Value) -> (String, usize) {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let is_user = |message: &Value| message["role"] == "user";
    let at = messages.iter().rposition(is_user).unwrap_or_default();
    let message = messages.get(at).cloned().unwrap_or_default();
    let parts = message["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    let whole = message["content"].as_str();
    let text: Vec<&str> = whole.into_iter().chain(parts).collect();
    let later = messages.iter().skip(at);
    let answered = later.filter(|message| message["role"] == "tool").count();
    (text.join("\n"), answered)
}

/// The calls that a message wants, of tools that are offered: its list of inputs, or one of the server's tool.
fn wanted_calls(text: &str, body: &Value) -> Vec<(&'static str, Value)> {
    let is_offered = |name: &str| {
        let mut tools = body["tools"].as_array().into_iter().flatten();
        tools.any(|tool| tool["function"]["name"] == name)
    };
    let wanted = match text.find("files [") {
        Some(at) => {
            let list = serde_json::Deserializer::from_str(&text[at + "files ".len()..]).into_iter::<Vec<Value>>().next();
            let inputs = list.expect("a list").expect("a list of inputs");
            let calls = inputs.into_iter().map(|input| ("client_files", input));
            calls.collect()
        }
        None => vec![(TOOL, json!({}))],
    };
    let offered = wanted.into_iter().filter(|(name, _)| is_offered(name));
    offered.collect()
}

/// The next call that is wanted; a word when there is none.
fn as_model(body: &Value) -> String {
    let (text, answered) = since_user(body);
    let (delta, reason) = match wanted_calls(&text, body).get(answered) {
        Some((tool, input)) => {
            let function = json!({"name": tool, "arguments": input.to_string()});
            let call = json!({"index": 0, "id": format!("call_{answered}"), "type": "function", "function": function});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        None => (json!({"role": "assistant", "content": "done"}), "stop"),
    };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let said = chunk(delta, Value::Null);
    let ended = chunk(json!({}), json!(reason));
    format!("{said}{ended}data: [DONE]\n\n")
}

/// A result, or the status that is answered instead.
fn as_server(body: &Value, has_token: bool) -> Result<Value, &'static str> {
    match body["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({"protocolVersion": body["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}})),
        "tools/list" => {
            let tool = json!({"name": "echo", "description": "Says something", "inputSchema": {"type": "object"}});
            Ok(json!({"tools": [tool]}))
        }
        "tools/call" if has_token => Ok(json!({"content": [{"type": "text", "text": "echoed"}]})),
        "tools/call" => Err("401 Unauthorized"),
        "" => Err("404 Not Found"),
        _ => Err("202 Accepted"),
    }
}
