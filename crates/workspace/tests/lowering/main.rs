//! What lowering sees of a real workspace, hostile ones too, and what becomes of real pictures.

mod by_vector;
mod files;
mod pictures;
