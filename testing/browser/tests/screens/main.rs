//! Every screen as assistive technology, a keyboard and eyes find it (W-11, W-12).
//!
//! `GREENROOM_KEEP=trees` writes the trees that are kept beside this file anew, `GREENROOM_KEEP=pictures` those pictures that the
//! documentation shows; both are looked at by a person before they are committed. `GREENROOM_PICTURES=DIR` leaves all pictures there.

#[path = "../signed_in/mod.rs"]
mod signed_in;

mod access;
mod extremes;
mod looks;
mod scene;
