//! Addresses that are refused, headers and queries that are hidden.

use super::*;

fn url(base: &str) -> String {
    ModelEndpoint::new(base).unwrap().url(&["chat", "completions"]).to_string()
}

#[test]
fn what_lies_beside_the_api_has_no_version() {
    let beside =
        |base: &str| ModelEndpoint::new(base).unwrap().url_beside(&["api", "show"]).to_string();
    assert_eq!(beside("http://h:1/v1"), "http://h:1/api/show");
    assert_eq!(beside("http://h:1/x/v1/?api-version=b"), "http://h:1/x/api/show");
    assert_eq!(beside("http://h:1"), "http://h:1/api/show");
    assert_eq!(beside("http://h:1/vllm"), "http://h:1/vllm/api/show");
}

#[test]
fn paths_are_added_to_any_base() {
    assert_eq!(url("http://localhost:11434/v1"), "http://localhost:11434/v1/chat/completions");
    assert_eq!(url("http://localhost:11434/v1/"), "http://localhost:11434/v1/chat/completions");
    assert_eq!(url(" https://api.example "), "https://api.example/chat/completions");
    assert_eq!(
        url("https://a.example/d?api-version=1#m"),
        "https://a.example/d/chat/completions?api-version=1"
    );
}

#[test]
fn addresses_that_cannot_work_are_refused_when_configured() {
    let error = |base: &str| ModelEndpoint::new(base).unwrap_err();
    assert_eq!(error("file:///v1"), ModelEndpointError::Scheme);
    assert_eq!(error("localhost:11434"), ModelEndpointError::Scheme);
    assert!(matches!(error("http://"), ModelEndpointError::Url(_)));
    assert_eq!(error("http://me:secret@host/v1"), ModelEndpointError::Credentials);
    let endpoint = ModelEndpoint::new("http://host").unwrap();
    assert!(endpoint.clone().with_header("a b", "c").is_err());
    assert!(endpoint.with_header("a", "b\nc").is_err());
    for query in ["key=sk-1", "code=sk-1", "api-version=1&Access_Token=sk-1"] {
        let message = error(&format!("https://h/v1?{query}")).to_string();
        assert!(message.contains("query = {") && message.contains("key_env"), "{message}");
        assert!(!message.contains("sk-1"), "{message}");
    }
}

#[test]
fn a_version_is_a_segment_of_the_path() {
    for (address, expected) in [
        ("http://h:1", "http://h:1/v1"),
        ("http://h/x/", "http://h/x/v1"),
        ("http://h/v1/", "http://h/v1/"),
        ("http://h/v1beta", "http://h/v1beta"),
        ("http://h?api-version=v2", "http://h/v1?api-version=v2"),
        ("http://h/x?api-version=/v2", "http://h/x/v1?api-version=/v2"),
        ("nowhere", "nowhere"),
    ] {
        assert_eq!(with_version(address, "v1"), expected);
    }
}

#[test]
fn a_key_goes_unencrypted_to_this_machine_alone() {
    let check = |base: &str| {
        let endpoint = ModelEndpoint::new(base).unwrap();
        assert_eq!(endpoint.check_encrypted(), Ok(()), "{base} without a key");
        let key = ApiKey::from_environment("K");
        let with_key = endpoint.clone().with_key(key).check_encrypted();
        let with_header = endpoint.with_header("x-own", "value").unwrap();
        assert_eq!(with_header.check_encrypted(), with_key, "{base}");
        with_key
    };
    for base in ["https://h.example/v1", "http://127.0.0.1:1", "http://[::1]"] {
        assert_eq!(check(base), Ok(()), "{base}");
    }
    for base in ["http://h.example:80/v1", "http://10.0.0.1:8000/v1"] {
        let message = check(base).unwrap_err().to_string();
        assert!(message.contains("https://"), "{message}");
    }
}

#[test]
fn people_see_the_values_that_are_known_to_be_no_secret() {
    let endpoint = ModelEndpoint::new("https://h/v1?api-version=7")
        .and_then(|endpoint| endpoint.with_header("x-team", "blue"))
        .and_then(|endpoint| endpoint.with_header("anthropic-beta", "files"))
        .unwrap()
        .with_query([("code", "sk-1")]);
    assert_eq!(endpoint.describe_url(&["m"]), "https://h/v1/m?api-version=7&code=removed");
    let headers = endpoint.describe_headers();
    let value = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    };
    assert_eq!(value("x-team"), Some("removed"));
    assert_eq!(value("anthropic-beta"), Some("files"));
}

#[tokio::test]
async fn debug_hides_what_may_be_a_secret() {
    let endpoint = ModelEndpoint::new("http://host:80/v1")
        .map(|endpoint| endpoint.with_query([("key", "first"), ("mode", "fast")]))
        .and_then(|endpoint| endpoint.with_header("x-api-key", "second"))
        .and_then(|endpoint| endpoint.with_header("authorization", "Bearer third"))
        .unwrap();
    let credentials = endpoint.credentials().await.unwrap();
    let debug_text = format!("{endpoint:?} {:?}", credentials.headers);
    for secret in ["first", "second", "third"] {
        assert!(!debug_text.contains(secret), "{debug_text}");
    }
    assert_eq!(credentials.secrets.len(), 3);
}

#[tokio::test]
async fn a_key_may_have_a_header_and_a_server_a_query_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    std::fs::write(&path, "sk-own").unwrap();
    let endpoint = ModelEndpoint::new("http://h/v1?version=1")
        .unwrap()
        .with_key(ApiKey::from_file(path))
        .with_key_header("x-api-key")
        .unwrap()
        .with_query([("api-version", "2 b")]);
    assert_eq!(endpoint.url(&["models"]).as_str(), "http://h/v1/models?version=1&api-version=2+b");
    let credentials = endpoint.credentials().await.unwrap();
    assert_eq!(credentials.headers["x-api-key"], "sk-own");
    assert!(!credentials.headers.contains_key("authorization"));
    assert!(!format!("{:?}", credentials.headers).contains("sk-own"));
    assert!(endpoint.with_key_header("a b").is_err());
}

#[test]
fn loopback_hosts_need_no_proxy() {
    for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]", "a.localhost"] {
        assert!(is_this_machine(host), "{host}");
    }
    for host in ["192.168.0.1", "example.org", "localhost.example.org"] {
        assert!(!is_this_machine(host), "{host}");
    }
}
