//! A turn's life: how it starts, how an agent gets to work on it, how it ends. One turn is active per chat, and every turn ends
//! exactly once (H-174).

pub(crate) mod agent;
pub(crate) mod check;
pub(crate) mod end;
pub(crate) mod size;
pub(crate) mod start;
