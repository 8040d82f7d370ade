//! What lowering sees of a real workspace, hostile ones too, and what becomes of real pictures.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod by_vector;
mod files;
mod made;
mod picture_bounds;
mod picture_formats;
mod pictures;
