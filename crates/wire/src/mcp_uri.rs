//! `mcp-resource://SERVER/URI`: something that can be read from an MCP server of a session, as messages refer to it (MC-13).

use crate::percent::{decode, encode_word};

const PREFIX: &str = "mcp-resource://";

/// What an address of a server is called in a message. Neither part has a `/` once it is escaped.
pub fn uri_of(server: &str, uri: &str) -> String {
    format!("{PREFIX}{}/{}", encode_word(server), encode_word(uri))
}

/// The server and its address that a URI means.
pub fn read(uri: &str) -> Option<(String, String)> {
    let (server, address) = uri.strip_prefix(PREFIX)?.split_once('/')?;
    let decode = |text: &str| String::from_utf8(decode(text)?).ok();
    Some((decode(server)?, decode(address)?)).filter(|(server, _)| !server.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_and_its_address_go_into_a_uri_and_back() {
        for (server, address) in [("docs", "file:///a b/c?d#e"), ("my server/2", "ü%://x")] {
            let uri = uri_of(server, address);
            assert_eq!(read(&uri), Some((server.to_owned(), address.to_owned())), "{uri}");
        }
        assert_eq!(uri_of("docs", "test://guide"), "mcp-resource://docs/test%3A%2F%2Fguide");
        for wrong in
            ["mcp-resource://docs", "mcp-resource:///x", "mcp-resource://a/%zz", "https://a/b"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
