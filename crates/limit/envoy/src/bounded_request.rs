//! Decoded request: its bounds, and its share of the byte budget.
//!
//! Bytes of a message become many more in memory: two make a descriptor. So the decoder itself
//! checks a request as soon as it is read, before it waits for anything. What is left of the
//! request counts until its response is sent.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstDecoder, ProstEncoder};

use crate::budget::Budget;
use crate::request_handler::{RequestFailure, RequestHandler};
use crate::wire::{Descriptor, Entry, RateLimitRequest, RateLimitResponse};

/// Request within bounds.
#[derive(Debug)]
pub(crate) struct BoundedRequest {
    pub(crate) request: RateLimitRequest,
    /// Permit for its share of the budget.
    pub(crate) permit: OwnedSemaphorePermit,
}

impl BoundedRequest {
    pub(crate) fn new(
        request: RateLimitRequest,
        handler: &RequestHandler,
        budget: &Budget,
    ) -> Result<Self, RequestFailure> {
        handler.check(&request)?;
        let permit = budget.reserve(weight(&request))?;
        Ok(Self { request, permit })
    }
}

/// Returns its smallest size in memory; lists and strings may have twice their length allocated.
fn weight(request: &RateLimitRequest) -> usize {
    let descriptors = request.descriptors.iter().map(|descriptor| {
        let entries = descriptor.entries.iter();
        let entries = entries.map(|entry| size_of::<Entry>() + entry.key.len() + entry.value.len());
        size_of::<Descriptor>() + entries.sum::<usize>()
    });
    size_of::<RateLimitRequest>() + request.domain.len() + descriptors.sum::<usize>()
}

/// Codec that decodes bounded requests, and encodes responses.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) handler: Arc<RequestHandler>,
    pub(crate) budget: Budget,
}

impl Codec for Reader {
    type Encode = RateLimitResponse;
    type Decode = BoundedRequest;
    type Encoder = ProstEncoder<RateLimitResponse>;
    type Decoder = Self;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        self.clone()
    }
}

impl Decoder for Reader {
    type Item = BoundedRequest;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<BoundedRequest>, Status> {
        let read = ProstDecoder::<RateLimitRequest>::default().decode(bytes)?;
        let bounded = read.map(|request| BoundedRequest::new(request, &self.handler, &self.budget));
        bounded.transpose().map_err(|error| error.status())
    }
}
