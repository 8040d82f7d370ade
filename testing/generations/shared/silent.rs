//! For versions whose published client answers no requests of the host, up to 0.5.1: it drops them.

use serde_json::Value;

use super::ahp::Client;

pub fn answer_requests(_: &Client, _: fn(&str, &Value) -> Result<Value, i32>) {}
