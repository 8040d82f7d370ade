//! The models of the native agent: those of the configuration, and those that were added while the host runs.
//!
//! Promises: an id names one model; a turn keeps the model it began with, whatever becomes of the list; a model that did not
//! change keeps its connections and what its key command printed.
//! Must not know: who changes the list.

use std::sync::{Arc, PoisonError, RwLock};

use super::models::{Model, ModelError};
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

/// What is offered now; the first is the default.
#[derive(Default)]
pub(crate) struct ModelList(RwLock<Models>);

#[derive(Default)]
struct Models {
    configured: Vec<Arc<ModelEntry>>,
    added: Vec<Arc<ModelEntry>>,
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
    fn read<T>(&self, read: impl FnOnce(&Models) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Models) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
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
        self.read(|models| {
            models
                .all()
                .map(|offered| offered.model.id.clone())
                .collect()
        })
    }

    /// Replaces the models of the configuration. One of them takes the place of an added one with its id.
    pub(crate) fn configure(&self, models: Vec<Model>) -> Result<(), ModelError> {
        Model::check_all(&models)?;
        self.change(|list| {
            let offered = models.into_iter().map(|model| {
                let same = list.all().find(|offered| offered.model == model);
                same.map_or_else(|| ModelEntry::new(model), |same| Ok(Arc::clone(same)))
            });
            let configured = offered.collect::<Result<Vec<_>, ModelError>>()?;
            let is_configured = |id: &str| configured.iter().any(|offered| offered.model.id == id);
            list.added.retain(|added| !is_configured(&added.model.id));
            list.configured = configured;
            Ok(())
        })
    }

    /// Adds a model; returns its id. One that is there already, as far as is said of it, is not added again. If its id means
    /// another model, the address of its server is put behind it.
    pub(crate) fn add(&self, mut model: Model) -> Result<String, ModelError> {
        model.check()?;
        self.change(|list| {
            if let Some(same) = list
                .all()
                .find(|offered| says_no_more(&model, &offered.model))
            {
                return Ok(same.model.id.clone());
            }
            if list
                .find(&model.id)
                .is_some_and(|taken| !taken.model.is_at(&model))
            {
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
            let offered = ModelEntry::new(model)?;
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
    said == known || (said == &address_alone && said.is_at(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> Model {
        Model::parse(text).unwrap()
    }

    #[test]
    fn models_are_added_behind_those_of_the_configuration() {
        let list = ModelList::default();
        assert!(list.default_model().is_none());
        assert_eq!(list.add(model("http://a/v1#one")).unwrap(), "one");
        assert_eq!(list.default_model().unwrap().model.id, "one");
        list.configure(vec![model("http://b/v1#two"), model("http://b/v1#three")])
            .unwrap();
        assert_eq!(list.ids(), ["two", "three", "one"]);
        list.configure(vec![model("http://a/v1#one")]).unwrap();
        assert_eq!(list.ids(), ["one"]);
        list.configure(Vec::new()).unwrap();
        assert!(list.ids().is_empty());
    }

    #[test]
    fn what_is_there_is_not_added_again_and_what_is_elsewhere_gets_another_id() {
        let list = ModelList::default();
        let mut configured = model("http://a:1/v1#m");
        configured.key_env = Some("K".to_owned());
        configured.id = "mine".to_owned();
        configured.model = Some("m".to_owned());
        list.configure(vec![configured]).unwrap();
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
        assert_eq!(
            list.add(model("http://a/v1#more")),
            Err(ModelError::TooMany)
        );
        let before = list.find("m1").unwrap();
        list.configure(vec![model("http://a/v1#m1")]).unwrap();
        assert!(Arc::ptr_eq(&before, &list.find("m1").unwrap()));
        let two = vec![model("http://a/v1#x"), model("http://a/v1#x")];
        assert_eq!(list.configure(two), Err(ModelError::Twice("x".to_owned())));
        assert!(
            list.find("m1").is_some(),
            "a list that cannot work changes nothing"
        );
    }
}
