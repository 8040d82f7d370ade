//! Who sent a message: what a turn may use of theirs, and nobody else's (H-318).

use serde::{Deserialize, Serialize};

/// The client that sent a message, and the principal behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredAuthor", into = "StoredAuthor")]
pub(crate) struct Author {
    pub(crate) client_id: String,
    /// None for the people of the host itself: its own token and its paired devices.
    pub(crate) principal: Option<String>,
}

/// As journals have it: the client alone, from before there were accounts and wherever there are none.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum StoredAuthor {
    Client(String),
    Member { client: String, principal: String },
}

impl From<StoredAuthor> for Author {
    fn from(stored: StoredAuthor) -> Self {
        let (client_id, principal) = match stored {
            StoredAuthor::Client(client) => (client, None),
            StoredAuthor::Member { client, principal } => (client, Some(principal)),
        };
        Self { client_id, principal }
    }
}

impl From<Author> for StoredAuthor {
    fn from(author: Author) -> Self {
        match author.principal {
            None => Self::Client(author.client_id),
            Some(principal) => Self::Member { client: author.client_id, principal },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_without_a_principal_is_stored_as_it_always_was() {
        let author = |principal: Option<&str>| Author {
            client_id: "laptop".to_owned(),
            principal: principal.map(str::to_owned),
        };
        for (author, text) in [
            (author(None), r#""laptop""#),
            (author(Some("ann")), r#"{"client":"laptop","principal":"ann"}"#),
        ] {
            assert_eq!(serde_json::to_string(&author).unwrap(), text);
            assert_eq!(serde_json::from_str::<Author>(text).unwrap(), author);
        }
    }
}
