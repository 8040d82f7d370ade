//! What must hold of any input: run by property tests here and by the fuzz targets of `fuzz/`.

use compositor::ahp::{from_ahp, to_ahp};
use compositor::command::{args, template};
use compositor::compose::{AttachmentBudget, Composed};
use compositor::{Part, SubmittedMessage, compose};
use serde_json::Value;
use wire::Object;

use crate::environment::World;

/// Typed text.
pub fn text(text: &str) {
    let world = World::new();
    let Ok(composed) = compose(SubmittedMessage::Text(text.to_owned()), &world.environment())
    else {
        assert_eq!(text, "");
        return;
    };
    let mut rest = text;
    for part in &composed.parts {
        let part = part.object();
        if part["type"] == "text" && !part.contains_key("derived_from") {
            let text = part["text"].as_str().unwrap();
            let at = rest.find(text).expect("text is sent as it was typed");
            rest = &rest[at + text.len()..];
        }
    }
    composes_to_itself(&world, &composed);
}

/// A template, and what was typed after its name.
pub fn template(template: &str, raw: &str) {
    let words = args::split(raw);
    assert!(words.iter().map(String::len).sum::<usize>() <= raw.len());
    let expansion = template::expand(template, raw, &words);
    let bound = template::GROWTH_BYTES_MAX + template.len() + raw.len() + 2;
    assert!(expansion.text.len() <= bound + raw.len());
    if !template.contains('$') {
        assert!(expansion.text.starts_with(template));
        assert!(expansion.text.ends_with(raw));
    }
}

/// A message of the protocol, or anything else that is an object.
pub fn message(message: Object) {
    let mut world = World::new();
    let (parts, _) = from_ahp(message.clone(), &world.environment());
    reread(&world, &parts);
    world.inline = AttachmentBudget { each_bytes: 16, left_bytes: 40 };
    let Ok(composed) = compose(SubmittedMessage::Ahp(message), &world.environment()) else {
        return;
    };
    let given_back = to_ahp(&composed.parts, &composed.metadata, &world.roots);
    assert_eq!(written(&given_back), written(composed.message.as_ref().unwrap()));
    assert!(composed.inline_bytes <= 40);
    world.inline = AttachmentBudget::default();
    composes_to_itself(&world, &composed);
}

/// A list of parts, or anything else that is a list.
pub fn parts(values: Vec<Value>) {
    let world = World::new();
    let parts = values.iter().cloned().filter_map(|it| Part::from_value(it).ok());
    reread(&world, &parts.collect::<Vec<_>>());
    let metadata = Object::new();
    let input = SubmittedMessage::Parts { parts: values, metadata };
    if let Ok(composed) = compose(input, &world.environment()) {
        composes_to_itself(&world, &composed);
    }
}

fn reread(world: &World, parts: &[Part]) {
    let message = to_ahp(parts, &Object::new(), &world.roots);
    let (again, _) = from_ahp(message, &world.environment());
    assert_eq!(all_written(&again), all_written(parts));
}

fn composes_to_itself(world: &World, composed: &Composed) {
    let message = to_ahp(&composed.parts, &Object::new(), &world.roots);
    let again = compose(SubmittedMessage::Ahp(message), &world.environment()).unwrap();
    assert_eq!(all_written(&again.parts), all_written(&composed.parts));
    let input = SubmittedMessage::Parts {
        parts: composed.parts.iter().map(Part::to_value).collect(),
        metadata: Object::new(),
    };
    let again = compose(input, &world.environment()).unwrap();
    assert_eq!(all_written(&again.parts), all_written(&composed.parts));
}

pub fn written(object: &Object) -> String {
    serde_json::to_string(object).unwrap()
}

pub fn all_written(parts: &[Part]) -> Vec<String> {
    parts.iter().map(|part| written(part.object())).collect()
}
