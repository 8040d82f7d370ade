//! The files of the page.
