//! Models by name, by address and from the configuration, and what is wrong with them.

use super::*;

#[test]
fn a_vendor_stands_for_an_address_and_a_key() {
    let parse = |text: &str| Model::parse_with(text, &|_| None);
    let model = parse("anthropic#claude-x").unwrap();
    assert_eq!(
        (model.api, model.base_url.as_str()),
        (Api::Anthropic, "https://api.anthropic.com/v1")
    );
    assert_eq!(model.key_env.as_deref(), Some("ANTHROPIC_API_KEY"));
    let others = [("openai", Api::Responses), ("gemini", Api::Gemini), ("openrouter", Api::Chat)];
    for (vendor, api) in others {
        assert_eq!(parse(&format!("{vendor}#m")).unwrap().api, api);
        let usual = model_data::default_model(vendor).unwrap();
        assert_eq!(parse(vendor), parse(&format!("{vendor}#{usual}")));
    }
    assert!(Model::parse("nobody#m").is_err());
}

#[test]
fn the_host_finds_a_vendor_that_a_client_names() {
    let named = Model::parse_for_host("anthropic#claude-x").unwrap();
    assert_eq!(named.base_url, "anthropic");
    assert_eq!(named.key_env, None, "a key is the host's to choose");
    let found = named.clone().find_vendor().unwrap();
    assert_eq!((found.id.as_str(), found.api), ("claude-x", Api::Anthropic));
    assert_eq!(found.key_env.as_deref(), Some("ANTHROPIC_API_KEY"));
    found.check().unwrap();
    let own_key = Model { key_env: Some("K".to_owned()), ..named };
    let own_key = own_key.find_vendor().unwrap();
    assert_eq!(own_key.key_env.as_deref(), Some("K"));
    let other = Model::parse_for_host("http://h/v1#m").unwrap();
    assert_eq!(other.clone().find_vendor(), Ok(other));
}

#[test]
fn a_wire_format_stands_before_the_address() {
    for api in Api::ALL {
        let named = format!("{}+http://127.0.0.1:9000/v1#m", api.name());
        let model = Model::parse(&named).unwrap();
        assert_eq!((model.api, model.base_url.as_str()), (api, "http://127.0.0.1:9000/v1"));
        assert_eq!(Model::parse(&format!("{}#m", model.address())), Ok(model));
    }
    let error = Model::parse("telex+http://h/v1#m").unwrap_err().to_string();
    assert!(error.contains("`telex`") && error.contains("`anthropic`"), "{error}");
}

#[test]
fn an_address_and_a_name_make_a_model() {
    let model = Model::parse("http://localhost:11434/v1/#qwen3:8b").unwrap();
    assert_eq!(
        (model.id.as_str(), model.base_url.as_str()),
        ("qwen3:8b", "http://localhost:11434/v1")
    );
    assert_eq!(model.server_name(), "qwen3:8b");
    for bad in ["http://localhost/v1", "http://localhost/v1#", "qwen3", "ftp://x#y"] {
        let error = Model::parse(bad).unwrap_err().to_string();
        assert!(error.contains("http"), "{bad}: {error}");
    }
}

#[test]
fn a_model_that_cannot_work_is_named() {
    let model = Model::parse("http://h/v1#m").unwrap();
    assert_eq!(
        Model::check_all(&[model.clone(), model.clone()]),
        Err(ModelError::Twice("m".to_owned()))
    );
    let mut two = model;
    two.key_env = Some("K".to_owned());
    two.key_file = Some("k".into());
    assert_eq!(Model::check_all(&[two]), Err(ModelError::TwoKeys("m".to_owned())));
    for (toml, words) in [
        ("key_command = []", "program and its arguments"),
        ("key_command = [\"\"]", "program and its arguments"),
        ("key_command = [\"a\"]\nkey_env = \"K\"", "keep one"),
        ("key_env = \"sk-the-key-itself\"", "not the key itself"),
        ("name = \"a\\u001b[31mb\"", "control characters"),
        ("api = \"telepathy\"", "chat"),
        ("key_header = \"a b\"", "header name"),
    ] {
        let text = format!("id = \"m\"\nbase_url = \"http://h/v1\"\n{toml}\n");
        let error = match toml::from_str::<Model>(&text) {
            Ok(model) => Model::check_all(&[model]).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(words), "{toml}: {error}");
        assert!(!error.contains("sk-the-key"), "{error}");
    }
    let mut untyped = Model::parse("http://h/v1#m").unwrap();
    untyped.settings = Some(json!({"temperature": {}}));
    let error = Model::check_all(&[untyped]).unwrap_err().to_string();
    assert!(error.contains("`m`") && error.contains("`temperature`"), "{error}");
}

#[test]
fn clients_see_what_a_model_can_do() {
    let toml = r#"
        id = "m"
        base_url = "http://h/v1"
        context_tokens = 8192
        prices = { input = 1.0, output = 2.0 }
        settings = { temperature = { type = "number" } }
    "#;
    let model: Model = toml::from_str(toml).unwrap();
    let wire = model.info().to_wire("native");
    assert_eq!(wire["maxContextWindow"], 8192);
    assert_eq!(wire["configSchema"]["properties"]["temperature"]["type"], "number");
    assert_eq!(wire["configSchema"]["properties"]["temperature"]["title"], "Temperature");
    assert_eq!(wire["_meta"]["greenroom.prices"]["output"], 2.0);
}
