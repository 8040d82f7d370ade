//! Stories about the host, one file per heading in `tests/`. Nothing lives here.
