//! Reading content that state refers to (`ahp-content:`).

use serde_json::json;
use wire::ChannelUri;

use crate::{ClientError, Live};

/// Content as the host sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadContent {
    Text(String),
    /// Anything else, in base64.
    Base64(String),
}

impl Live {
    /// Reads content that a channel refers to.
    pub async fn read_content(
        &self,
        channel: &ChannelUri,
        uri: &str,
    ) -> Result<ReadContent, ClientError> {
        let params = json!({"channel": channel.as_str(), "uri": uri, "encoding": "utf-8"});
        let answer = self.request("resourceRead", params).await?;
        let Some(data) = answer["data"].as_str() else {
            return Err(ClientError::Unreadable("content without `data`".to_owned()));
        };
        Ok(match answer["encoding"].as_str() {
            Some("base64") => ReadContent::Base64(data.to_owned()),
            _ => ReadContent::Text(data.to_owned()),
        })
    }
}
