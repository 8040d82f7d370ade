//! What targets take is data: the built-in map, and a user's file over it.

use compositor::lower::{Capabilities, CapabilityMap, Target};
use serde_json::{Value, json};

fn with(over: &Value) -> Result<CapabilityMap, String> {
    let map = CapabilityMap::built_in().with(over);
    map.map_err(|bad| bad.to_string())
}

#[test]
fn the_built_in_map_can_be_read() {
    let map = CapabilityMap::built_in();
    assert_eq!(map.clone().with(&json!({})), Ok(map.clone()));
    for target in Target::ALL {
        assert_eq!(Target::from_name(target.name()), Some(target));
        let capabilities = map.of(target, None);
        assert!(capabilities.image.is_some(), "{}", target.name());
        assert_eq!(capabilities, Capabilities::built_in(target));
    }
    assert_eq!(Target::from_name("other"), None);
    assert!(map.of(Target::OpenaiResponses, None).audio.is_none());
}

#[test]
fn a_users_file_is_laid_over_it() {
    let over = json!({"anthropic": {
        "default": {"image": {"count": 5}, "pdf": null},
        "models": {"claude-*-small": {"image": {"mimes": ["image/png"]}}, "claude-9*": {"request_bytes": 7}},
    }});
    let map = with(&over).unwrap();
    let any = map.of(Target::Anthropic, Some("other"));
    let image = any.image.as_ref().unwrap();
    assert_eq!((image.count, image.side_px, image.mimes.len()), (Some(5), Some(8_000), 4));
    assert_eq!(any.pdf, None);
    let small = map.of(Target::Anthropic, Some("claude-9-small"));
    assert_eq!(small.image.unwrap().mimes, ["image/png"]);
    assert_eq!(small.request_bytes, Some(7));
    assert_eq!(map.of(Target::Anthropic, Some("claude-9-small-2")).image, any.image);
    let gemini = Target::Gemini;
    assert_eq!(map.of(gemini, None), Capabilities::built_in(gemini));
}

#[test]
fn a_pattern_means_whole_ids() {
    for (pattern, model, is_meant) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a*", "ab", true),
        ("*", "", true),
        ("*b", "ab", true),
        ("a*c*e", "abcde", true),
        ("a*c*e", "abde", false),
        ("a*a", "a", false),
        ("", "", true),
    ] {
        let over = json!({"acp": {"models": {pattern: {"text_only": true}}}});
        let map = with(&over).unwrap();
        let text_only = map.of(Target::Acp, Some(model)).text_only;
        assert_eq!(text_only, is_meant, "{pattern} {model}");
    }
}

#[test]
fn an_invalid_file_is_refused_with_the_position() {
    for (over, entry) in [
        (json!([]), "capabilities: the file: is not an object"),
        (json!({"mistral": {}}), "capabilities: mistral: is not a target"),
        (json!({"gemini": 1}), "capabilities: gemini: is not an object"),
        (json!({"gemini": {"modles": {}}}), "`modles` is neither `default` nor `models`"),
        (json!({"gemini": {"default": {"images": {}}}}), "unknown field `images`"),
        (json!({"gemini": {"default": {"image": {"count": -1}}}}), "gemini"),
        (json!({"gemini": {"default": 3}}), "gemini: `default` is not an object"),
        (json!({"gemini": {"models": []}}), "`models` is not an object"),
        (json!({"gemini": {"models": {"m": {"text_only": "yes"}}}}), "gemini: models: m: "),
        (json!({"gemini": {"models": {"m": 1}}}), "gemini: models: m: is not an object"),
    ] {
        let why = with(&over).unwrap_err();
        assert!(why.contains(entry), "{why}");
    }
}

#[test]
fn an_agents_prompt_capabilities_are_respected() {
    let of = |entry: Value| {
        Capabilities::built_in(Target::Acp).with_prompt_capabilities(entry.as_object().unwrap())
    };
    let baseline = of(json!({}));
    assert!(baseline.image.is_none() && baseline.audio.is_none() && baseline.binary.is_none());
    assert!(!baseline.embedded_text);
    let images = of(json!({"image": true, "embeddedContext": false}));
    assert!(images.image.is_some() && images.pdf.is_none());
    let all = of(json!({"image": true, "audio": true, "embeddedContext": true}));
    assert_eq!(all, Capabilities::built_in(Target::Acp));
}
