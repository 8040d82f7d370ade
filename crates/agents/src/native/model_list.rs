//! The models of the native agent: those of the configuration, and those that were added while the host runs.
//!
//! Promises: an id names one model; a turn keeps the model it began with, whatever becomes of the list; a model that did not
//! change keeps its connections and what its key command printed.
//! Must not know: who changes the list.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::models::{Model, ModelError};
use crate::model_data::ModelFacts;
use crate::provider::ModelEndpoint;

/// Models that may be added while the host runs: every client is sent all of them.
pub const ADDED_MODELS_MAX: usize = 64;

/// A model and its server.
pub(crate) struct ModelEntry {
    pub model: Model,
    pub endpoint: ModelEndpoint,
}

impl ModelEntry {
    fn new(model: Model) -> Result<Arc<Self>, ModelError> {
        let endpoint = model.endpoint()?;
        Ok(Arc::new(Self { model, endpoint }))
    }
}

/// What servers said of their models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportedFacts(Vec<(Model, ModelFacts)>);

impl ReportedFacts {
    /// Notes what the server of a model said of it.
    pub fn insert(&mut self, model: Model, facts: ModelFacts) {
        self.0.retain(|(known, _)| !known.is_at(&model));
        self.0.push((model, facts));
    }

    /// What the server of a model said of it, last.
    pub fn of(&self, model: &Model) -> ModelFacts {
        let reported = self.0.iter().find(|(known, _)| known.is_at(model));
        reported.map(|(_, facts)| facts.clone()).unwrap_or_default()
    }

    /// The model with what its server said of it.
    fn complete(&self, model: Model) -> Model {
        Model { reported: self.of(&model), ..model }
    }
}

/// Models that the agents of a process have in common: one entry of each, however many agents offer it. A handle: clones share
/// them.
#[derive(Clone, Default)]
pub struct SharedModels(Arc<Mutex<Vec<Arc<ModelEntry>>>>);

impl SharedModels {
    fn find_or_make(&self, model: Model) -> Result<Arc<ModelEntry>, ModelError> {
        let mut known = self.0.lock();
        // What nobody offers any more but this list.
        known.retain(|entry| Arc::strong_count(entry) > 1);
        if let Some(same) = known.iter().find(|entry| entry.model == model) {
            return Ok(Arc::clone(same));
        }
        let made = ModelEntry::new(model)?;
        known.push(Arc::clone(&made));
        Ok(made)
    }
}

/// What is offered now; the first is the default.
#[derive(Default)]
pub(crate) struct ModelList(RwLock<Models>, SharedModels);

#[derive(Default)]
struct Models {
    configured: Vec<Arc<ModelEntry>>,
    added: Vec<Arc<ModelEntry>>,
    reported: ReportedFacts,
}

impl Models {
    fn all(&self) -> impl Iterator<Item = &Arc<ModelEntry>> {
        self.configured.iter().chain(&self.added)
    }

    fn find(&self, id: &str) -> Option<&Arc<ModelEntry>> {
        self.all().find(|offered| offered.model.id == id)
    }
}

impl ModelList {
    /// An empty one, whose entries will be those of others where they are the same.
    pub(crate) fn sharing(shared: SharedModels) -> Self {
        Self(RwLock::default(), shared)
    }

    fn read<T>(&self, read: impl FnOnce(&Models) -> T) -> T {
        read(&self.0.read())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Models) -> T) -> T {
        change(&mut self.0.write())
    }

    pub(crate) fn all(&self) -> Vec<Arc<ModelEntry>> {
        self.read(|models| models.all().cloned().collect())
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<ModelEntry>> {
        self.read(|models| models.find(id).cloned())
    }

    pub(crate) fn default_model(&self) -> Option<Arc<ModelEntry>> {
        self.read(|models| models.all().next().cloned())
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.read(|models| models.all().map(|offered| offered.model.id.clone()).collect())
    }

    /// Replaces the models of the configuration, and what servers said of models. One of them takes the place of an added one
    /// with its id.
    pub(crate) fn configure(
        &self,
        models: Vec<Model>,
        reported: ReportedFacts,
    ) -> Result<(), ModelError> {
        Model::check_all(&models)?;
        self.change(|list| {
            let offered = models.into_iter().map(|model| {
                let model = reported.complete(model);
                let same = list.all().find(|offered| offered.model == model);
                match same {
                    Some(same) => Ok(Arc::clone(same)),
                    None => self.1.find_or_make(model),
                }
            });
            let configured = offered.collect::<Result<Vec<_>, ModelError>>()?;
            let is_configured = |id: &str| configured.iter().any(|offered| offered.model.id == id);
            list.added.retain(|added| !is_configured(&added.model.id));
            list.configured = configured;
            list.reported = reported;
            Ok(())
        })
    }

    /// Adds a model; returns its id. One that is there already, as far as is said of it, is not added again. If its id means
    /// another model, the address of its server is put behind it.
    pub(crate) fn add(&self, mut model: Model) -> Result<String, ModelError> {
        model.check()?;
        self.change(|list| {
            if let Some(same) = list.all().find(|offered| says_no_more(&model, &offered.model)) {
                return Ok(same.model.id.clone());
            }
            if list.find(&model.id).is_some_and(|taken| !taken.model.is_at(&model)) {
                let authority = model.endpoint()?.authority();
                let id = format!("{}@{authority}", model.id);
                let server_name = std::mem::replace(&mut model.id, id);
                model.model.get_or_insert(server_name);
                model.check()?;
            }
            if let Some(taken) = list.find(&model.id)
                && says_no_more(&model, &taken.model)
            {
                return Ok(taken.model.id.clone());
            }
            let is_taken = |offered: &Arc<ModelEntry>| offered.model.id == model.id;
            if list.configured.iter().any(is_taken) {
                return Err(ModelError::Twice(model.id.clone()));
            }
            let id = model.id.clone();
            let offered = ModelEntry::new(list.reported.complete(model))?;
            let has_room = list.added.len() < ADDED_MODELS_MAX;
            match list.added.iter_mut().find(|added| added.model.id == id) {
                Some(added) => *added = offered,
                None if !has_room => return Err(ModelError::TooMany),
                None => list.added.push(offered),
            }
            Ok(id)
        })
    }
}

/// Whether all that is said of a model is its address, or the same as what is known of it.
fn says_no_more(said: &Model, known: &Model) -> bool {
    let address_alone = Model {
        id: said.id.clone(),
        model: said.model.clone(),
        api: said.api,
        ..Model::at(&said.base_url, &said.id)
    };
    // What nobody said is no difference.
    let as_known = Model {
        reported: known.reported.clone(),
        is_of_environment: known.is_of_environment,
        address_variable: known.address_variable,
        ..said.clone()
    };
    as_known == *known || (said == &address_alone && said.is_at(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> Model {
        Model::parse(text).unwrap()
    }

    fn configure(list: &ModelList, models: Vec<Model>) -> Result<(), ModelError> {
        list.configure(models, ReportedFacts::default())
    }

    #[test]
    fn lists_that_share_have_one_entry_of_a_model_and_nobody_keeps_it_for_long() {
        let shared = SharedModels::default();
        let (one, other) = (ModelList::sharing(shared.clone()), ModelList::sharing(shared.clone()));
        let same = || model("http://a/v1#m");
        let changed = || model("http://b/v1#m");
        configure(&one, vec![same()]).unwrap();
        configure(&other, vec![same()]).unwrap();
        let first = |list: &ModelList| list.default_model().unwrap();
        assert!(Arc::ptr_eq(&first(&one), &first(&other)));
        // One of them is configured anew: the other keeps what it has.
        configure(&one, vec![changed()]).unwrap();
        assert_eq!(first(&one).model, changed());
        assert_eq!(first(&other).model, same());
        configure(&other, vec![changed()]).unwrap();
        assert!(Arc::ptr_eq(&first(&one), &first(&other)));
        configure(&one, Vec::new()).unwrap();
        configure(&other, Vec::new()).unwrap();
        shared.find_or_make(same()).unwrap();
        let known = shared.0.lock().len();
        assert_eq!(known, 1, "what nobody offers is forgotten");
    }

    #[test]
    fn what_servers_said_is_known_of_configured_and_of_added_models() {
        let list = ModelList::default();
        let mut reported = ReportedFacts::default();
        let facts = |tokens| ModelFacts { context_tokens: Some(tokens), ..ModelFacts::default() };
        reported.insert(model("http://a/v1#one"), facts(1));
        reported.insert(model("http://a/v1#one"), facts(2));
        reported.insert(model("http://a/v1#two"), facts(3));
        list.configure(vec![model("http://a/v1#one")], reported).unwrap();
        list.add(model("http://a/v1#two")).unwrap();
        list.add(model("http://a/v1#two")).unwrap();
        let context = |id: &str| list.find(id).unwrap().model.context();
        assert_eq!((context("one"), context("two")), (2, 3));
        assert_eq!(list.ids().len(), 2);
    }

    #[test]
    fn a_model_of_the_environment_is_the_same_by_its_name() {
        let list = ModelList::default();
        let model = model("anthropic#claude-x");
        let of_environment = Model { is_of_environment: true, ..model.clone() };
        configure(&list, vec![of_environment]).unwrap();
        assert_eq!(list.add(model).unwrap(), "claude-x");
        assert_eq!(list.ids(), ["claude-x"]);
    }

    #[test]
    fn models_are_added_behind_those_of_the_configuration() {
        let list = ModelList::default();
        assert!(list.default_model().is_none());
        assert_eq!(list.add(model("http://a/v1#one")).unwrap(), "one");
        assert_eq!(list.default_model().unwrap().model.id, "one");
        configure(&list, vec![model("http://b/v1#two"), model("http://b/v1#three")]).unwrap();
        assert_eq!(list.ids(), ["two", "three", "one"]);
        configure(&list, vec![model("http://a/v1#one")]).unwrap();
        assert_eq!(list.ids(), ["one"]);
        configure(&list, Vec::new()).unwrap();
        assert!(list.ids().is_empty());
    }

    #[test]
    fn what_is_there_is_not_added_again_and_what_is_elsewhere_gets_another_id() {
        let list = ModelList::default();
        let mut configured = model("http://a:1/v1#m");
        configured.key_env = Some("K".to_owned());
        configured.id = "mine".to_owned();
        configured.model = Some("m".to_owned());
        configure(&list, vec![configured]).unwrap();
        assert_eq!(list.add(model("http://a:1/v1#m")).unwrap(), "mine");
        assert_eq!(list.add(model("http://b:2/v1#mine")).unwrap(), "mine@b:2");
        assert_eq!(list.add(model("http://b:2/v1#mine")).unwrap(), "mine@b:2");
        assert_eq!(list.find("mine@b:2").unwrap().model.server_name(), "mine");
        assert_eq!(list.ids(), ["mine", "mine@b:2"]);
    }

    #[test]
    fn the_number_is_bounded_and_unchanged_models_keep_their_connections() {
        let list = ModelList::default();
        for n in 0..ADDED_MODELS_MAX {
            list.add(model(&format!("http://a/v1#m{n}"))).unwrap();
        }
        assert_eq!(list.add(model("http://a/v1#more")), Err(ModelError::TooMany));
        let before = list.find("m1").unwrap();
        configure(&list, vec![model("http://a/v1#m1")]).unwrap();
        assert!(Arc::ptr_eq(&before, &list.find("m1").unwrap()));
        let two = vec![model("http://a/v1#x"), model("http://a/v1#x")];
        assert_eq!(configure(&list, two), Err(ModelError::Twice("x".to_owned())));
        assert!(list.find("m1").is_some(), "a list that cannot work changes nothing");
    }
}
