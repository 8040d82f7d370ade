//! For versions whose published client answers requests of the host, since 0.5.2.

use serde_json::Value;

use super::ahp::Client;
use super::ahp_types::messages::JsonRpcError;

/// Has the client answer the host's requests like this; an error is a code.
pub fn answer_requests(client: &Client, answer: fn(&str, &Value) -> Result<Value, i32>) {
    client.set_server_request_handler(move |method, params| {
        let answered = answer(&method, &params);
        let refuse = |code| JsonRpcError { code, message: "no".to_owned(), data: None };
        async move { answered.map_err(refuse) }
    });
}
