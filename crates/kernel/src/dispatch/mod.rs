//! A client's action: may this peer do this here, and what follows. Every action of a client is checked here, whoever sent it and
//! whatever it claims.

mod apply;
mod check;
mod gather;
mod plain;

pub(crate) use apply::apply;
pub(crate) use gather::gather;
