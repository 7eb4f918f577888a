//! A question that was read: is it within bounds, and what does it hold while it waits and is
//! answered?
//!
//! Bytes of a message become many more in memory: two make a descriptor. So a question is checked
//! as soon as it is read, by the reader itself, before it waits for anything; and what is left of
//! it counts until its answer is there.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstDecoder, ProstEncoder};

use crate::asking::{RequestFailure, RequestHandler};
use crate::budget::Budget;
use crate::grpc::status;
use crate::wire::{Descriptor, Entry, RateLimitRequest, RateLimitResponse};

/// A question within bounds.
#[derive(Debug)]
pub(crate) struct BoundedRequest {
    pub(crate) request: RateLimitRequest,
    /// Its part of the budget.
    pub(crate) held: OwnedSemaphorePermit,
}

impl BoundedRequest {
    pub(crate) fn new(
        request: RateLimitRequest,
        asking: &RequestHandler,
        budget: &Budget,
    ) -> Result<Self, RequestFailure> {
        asking.check(&request)?;
        let held = budget.hold(weight(&request))?;
        Ok(Self { request, held })
    }
}

/// What it takes in memory, at least: lists and texts may have been given up to twice their length.
fn weight(request: &RateLimitRequest) -> usize {
    let descriptors = request.descriptors.iter().map(|descriptor| {
        let entries = descriptor.entries.iter();
        let entries = entries.map(|entry| size_of::<Entry>() + entry.key.len() + entry.value.len());
        size_of::<Descriptor>() + entries.sum::<usize>()
    });
    size_of::<RateLimitRequest>() + request.domain.len() + descriptors.sum::<usize>()
}

/// Reads questions off the wire, and writes answers.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) asking: Arc<RequestHandler>,
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
        let weighed = read.map(|request| BoundedRequest::new(request, &self.asking, &self.budget));
        weighed.transpose().map_err(|error| status(&error))
    }
}
