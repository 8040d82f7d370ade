//! The methods on resources: one kind of request, by whatever method it came.

use std::sync::Arc;

use ahp_types::commands::{
    ResourceCopyParams, ResourceDeleteParams, ResourceListParams, ResourceMkdirParams,
    ResourceMoveParams, ResourceReadParams, ResourceRequestParams, ResourceResolveParams,
    ResourceWriteParams,
};
use serde_json::Value;

use super::{Call, decode_params, or_root};
use crate::rpc::RpcError;

/// Something to be done with a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceCall {
    Read(ResourceReadParams),
    Write(ResourceWriteParams),
    List(ResourceListParams),
    Resolve(ResourceResolveParams),
    Copy(ResourceCopyParams),
    Move(ResourceMoveParams),
    Delete(ResourceDeleteParams),
    MakeDirectory(ResourceMkdirParams),
    Request(ResourceRequestParams),
}

impl ResourceCall {
    /// The resources it is about, that to be read first.
    pub fn uris(&self) -> (&str, Option<&str>) {
        match self {
            Self::Read(params) => (&params.uri, None),
            Self::Write(params) => (&params.uri, None),
            Self::List(params) => (&params.uri, None),
            Self::Resolve(params) => (&params.uri, None),
            Self::Copy(params) => (&params.source, Some(&params.destination)),
            Self::Move(params) => (&params.source, Some(&params.destination)),
            Self::Delete(params) => (&params.uri, None),
            Self::MakeDirectory(params) => (&params.uri, None),
            Self::Request(params) => (&params.uri, None),
        }
    }
}

/// Reads a request on resources: its channel only says on whose behalf it is.
pub(super) fn decode<T: serde::de::DeserializeOwned>(
    params: Value,
    of: impl FnOnce(T) -> ResourceCall,
) -> Result<Call, RpcError> {
    decode_params(or_root(params)).map(|params| Call::Resource(Arc::new(of(params))))
}
