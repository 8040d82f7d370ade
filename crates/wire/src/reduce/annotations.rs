//! The reducers of an annotations channel, one function per action.

use super::{Reduced, set};
use crate::Action;
use crate::state::{Annotation, AnnotationEntry, AnnotationsState};

pub(super) fn set_annotation(state: &mut AnnotationsState, action: &Action) -> Reduced {
    let annotation = action.present("annotation").cloned();
    let Some(Ok(annotation)) = annotation.map(Annotation::from_value) else {
        return Reduced::Unchanged;
    };
    let known = state.annotations.iter_mut();
    match known.into_iter().find(|known| known.id == annotation.id) {
        Some(known) => set(known, annotation),
        None => {
            state.annotations.push(annotation);
            Reduced::Changed
        }
    }
}

/// What the action names is replaced; nothing can be cleared by it.
pub(super) fn update(state: &mut AnnotationsState, action: &Action) -> Reduced {
    let Some(annotation) = find(state, action) else { return Reduced::Unchanged };
    let mut reduced = Reduced::Unchanged;
    if let Some(origin) = action.present("origin") {
        reduced = reduced | set(&mut annotation.origin, origin.clone());
    }
    if let Some(resource) = action.text("resource") {
        reduced = reduced | set(&mut annotation.resource, resource.to_owned());
    }
    if let Some(range) = action.present("range") {
        reduced = reduced | set(&mut annotation.range, Some(range.clone()));
    }
    if let Some(resolved) = action.flag("resolved") {
        reduced = reduced | set(&mut annotation.resolved, resolved);
    }
    reduced
}

pub(super) fn remove(state: &mut AnnotationsState, action: &Action) -> Reduced {
    let id = action.text("annotationId");
    let mut annotations = state.annotations.iter();
    match annotations.position(|known| Some(known.id.as_str()) == id) {
        Some(position) => {
            state.annotations.remove(position);
            Reduced::Changed
        }
        None => Reduced::Unchanged,
    }
}

pub(super) fn set_entry(state: &mut AnnotationsState, action: &Action) -> Reduced {
    let entry = action.present("entry").cloned();
    let (Some(annotation), Some(Ok(entry))) =
        (find(state, action), entry.map(AnnotationEntry::from_value))
    else {
        return Reduced::Unchanged;
    };
    let known = annotation.entries.iter_mut();
    match known.into_iter().find(|known| known.id == entry.id) {
        Some(known) => set(known, entry),
        None => {
            annotation.entries.push(entry);
            Reduced::Changed
        }
    }
}

pub(super) fn remove_entry(state: &mut AnnotationsState, action: &Action) -> Reduced {
    let id = action.text("entryId");
    let Some(annotation) = find(state, action) else { return Reduced::Unchanged };
    let mut entries = annotation.entries.iter();
    match entries.position(|known| Some(known.id.as_str()) == id) {
        Some(position) => {
            annotation.entries.remove(position);
            Reduced::Changed
        }
        None => Reduced::Unchanged,
    }
}

fn find<'a>(state: &'a mut AnnotationsState, action: &Action) -> Option<&'a mut Annotation> {
    let id = action.text("annotationId")?;
    state.annotations.iter_mut().find(|known| known.id == id)
}
