//! The vectors (docs/rules/compositor.md), read once for every test of them, and a workspace in memory.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use compositor::Part;
use compositor::resolve::{FileRead, ImageLimits, Sources, WhyUnavailable};
use serde_json::Value;
use wire::Object;

const FILE: &str = include_str!("../vectors.json");

/// All of the file.
pub fn file() -> Value {
    serde_json::from_str(FILE).unwrap()
}

/// The cases, with bodies that are only described written out.
pub fn vectors() -> Vec<Value> {
    let Value::Array(mut vectors) = file()["vectors"].take() else {
        panic!("no vectors");
    };
    for vector in &mut vectors {
        write_out(vector);
    }
    vectors
}

fn write_out(value: &mut Value) {
    if let Some(of) = value.get("base64_of") {
        let hex = of["hex"].as_str().unwrap().as_bytes();
        let digit = |at: usize| char::from(hex[at]).to_digit(16).unwrap() as u8;
        let beginning = (0..hex.len()).step_by(2);
        let mut bytes: Vec<u8> = beginning.map(|at| digit(at) << 4 | digit(at + 1)).collect();
        let zeros = of["then_zero_bytes"].as_u64().unwrap() as usize;
        bytes.resize(bytes.len() + zeros, 0);
        *value = Value::String(STANDARD.encode(bytes));
        return;
    }
    match value {
        Value::Array(values) => values.iter_mut().for_each(write_out),
        Value::Object(fields) => fields.values_mut().for_each(write_out),
        _ => {}
    }
}

pub fn parts(values: &Value) -> Vec<Part> {
    let values = values.as_array().unwrap().iter();
    values.map(|it| Part::from_value(it.clone()).unwrap()).collect()
}

/// What lies at a path.
#[derive(Debug, Clone)]
pub enum Lies {
    Bytes(Vec<u8>),
    /// That many ASCII zeros.
    Zeros(u64),
    Symlink(String),
}

/// A workspace in memory, rooted at `/ws`.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub files: BTreeMap<String, Lies>,
    pub bodies: BTreeMap<String, Vec<u8>>,
    /// Kind and id.
    pub entities: Vec<(String, String)>,
    pub staged: BTreeMap<String, String>,
    /// What every picture is made into that does not fit.
    pub fits: Option<(String, Vec<u8>)>,
    pub fit_asked: Vec<ImageLimits>,
    pub opened: Vec<String>,
}

impl Memory {
    /// The workspace, the entities and the bodies that a vector uses.
    pub fn of(vector: &Value) -> Self {
        let mut memory = Self::default();
        for (path, lies) in vector["workspace"].as_object().into_iter().flatten() {
            let lies = match (&lies["utf8"], &lies["base64"], &lies["symlink"]) {
                (Value::String(text), ..) => Lies::Bytes(text.clone().into_bytes()),
                (_, Value::String(data), _) => Lies::Bytes(STANDARD.decode(data).unwrap()),
                (.., Value::String(to)) => Lies::Symlink(to.clone()),
                _ => Lies::Zeros(lies["zeros"].as_u64().unwrap()),
            };
            memory.files.insert(path.clone(), lies);
        }
        for entity in vector["entities"].as_array().into_iter().flatten() {
            let string = |key: &str| entity[key].as_str().unwrap().to_owned();
            memory.entities.push((string("kind"), string("id")));
        }
        memory.store_bodies(vector);
        memory
    }

    /// Every body of an input is in the store, whether it is split or not.
    fn store_bodies(&mut self, vector: &Value) {
        use sha2::{Digest as _, Sha256};
        for part in vector["input"]["parts"].as_array().into_iter().flatten() {
            if let Some(bytes) = part["data"].as_str().and_then(|it| STANDARD.decode(it).ok()) {
                let digest = wire::Digest::new(Sha256::digest(&bytes).into());
                self.bodies.insert(format!("sha256:{digest}"), bytes);
            }
        }
    }

    pub fn with_file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(path.to_owned(), Lies::Bytes(bytes.into()));
        self
    }
}

impl Sources for Memory {
    fn file(&mut self, path: &str, limit_bytes: u64) -> FileRead {
        self.opened.push(path.to_owned());
        let inside = path.strip_prefix("/ws/").unwrap_or(path);
        if inside.starts_with('/') || inside.split('/').any(|name| name == "..") {
            return FileRead::Unavailable(WhyUnavailable::OutsideWorkspace);
        }
        match self.files.get(inside) {
            None => FileRead::Unavailable(WhyUnavailable::NotFound),
            Some(Lies::Symlink(to)) if to.starts_with('/') => {
                FileRead::Unavailable(WhyUnavailable::OutsideWorkspace)
            }
            Some(Lies::Symlink(to)) => self.file(&to.clone(), limit_bytes),
            Some(Lies::Zeros(size)) if *size > limit_bytes => {
                FileRead::TooLarge { size: *size, head: vec![b'0'; 8 * 1_024] }
            }
            Some(Lies::Zeros(size)) => FileRead::Bytes { bytes: vec![b'0'; *size as usize] },
            Some(Lies::Bytes(bytes)) if bytes.len() as u64 > limit_bytes => FileRead::TooLarge {
                size: bytes.len() as u64,
                head: bytes[..bytes.len().min(8 * 1_024)].to_vec(),
            },
            Some(Lies::Bytes(bytes)) => FileRead::Bytes { bytes: bytes.clone() },
        }
    }

    fn body(&mut self, content_id: &str) -> Option<Vec<u8>> {
        self.bodies.get(content_id).cloned()
    }

    fn entity(&mut self, kind: &str, target: &Object) -> bool {
        let id = target.get("id").and_then(Value::as_str);
        self.entities.iter().any(|(k, i)| k == kind && Some(i.as_str()) == id)
    }

    fn find_staged_copy(&mut self, part: &Part) -> Option<String> {
        let name = part.object().get("name")?.as_str()?;
        self.staged.get(name).cloned()
    }

    fn fit_image(&mut self, _: &str, _: &[u8], limits: &ImageLimits) -> Option<(String, Vec<u8>)> {
        self.fit_asked.push(limits.clone());
        self.fits.clone()
    }

    fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("/ws/{path}") }
    }
}
