//! Turns against agents that are scripts.
