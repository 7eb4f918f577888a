//! Decoder of reports with a bound on their size.
//!
//! An empty usage takes two bytes of a message, and fifty times as much once it is decoded. A key
//! with its value takes two bytes, and about as much once decoded. So they are counted before the
//! message is decoded.

use bytes::Buf as _;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, skip_field,
};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

use crate::wire::quota::{RateLimitQuotaResponse, RateLimitQuotaUsageReports};

/// Most usages of one report: those of all buckets that a stream may have, and of as many beyond.
pub(crate) const USAGES_MAX: usize = 2_000;

/// Most keys with values in one report: eight for each bucket that a stream may have. Decoded they
/// take about a megabyte, like the longest report before it is decoded.
pub(crate) const PAIRS_MAX: usize = 8_000;

/// Field numbers: of usages in a report, of the name in a usage, of the keys with values in a name.
const USAGES: u32 = 2;
const NAME: u32 = 1;
const PAIRS: u32 = 1;

/// Codec of quota streams.
#[derive(Debug, Default)]
pub(crate) struct ReportCodec(ProstCodec<RateLimitQuotaResponse, RateLimitQuotaUsageReports>);

/// Decoder of reports.
#[derive(Debug)]
pub(crate) struct ReportDecoder(ProstDecoder<RateLimitQuotaUsageReports>);

impl Codec for ReportCodec {
    type Encode = RateLimitQuotaResponse;
    type Decode = RateLimitQuotaUsageReports;
    type Encoder = ProstEncoder<RateLimitQuotaResponse>;
    type Decoder = ReportDecoder;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        ReportDecoder(self.0.decoder())
    }
}

impl Decoder for ReportDecoder {
    type Item = RateLimitQuotaUsageReports;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Self::Item>, Status> {
        // A message is one contiguous chunk.
        let (usages, pairs) = size(source.chunk());
        if source.chunk().len() < source.remaining() || usages > USAGES_MAX || pairs > PAIRS_MAX {
            let why = "too many buckets, or keys of buckets, in one report";
            return Err(Status::out_of_range(why));
        }
        self.0.decode(source)
    }
}

/// Counts the usages of a report, and the keys with values of all their names, as far as it can be
/// decoded.
fn size(report: &[u8]) -> (usize, usize) {
    let (mut usages, mut pairs) = (0, 0);
    each(report, USAGES, |usage| {
        usages += 1;
        each(usage, NAME, |name| each(name, PAIRS, |_| pairs += 1));
    });
    (usages, pairs)
}

/// Calls `visit` with each message in fields of this number.
fn each(mut message: &[u8], number: u32, mut visit: impl FnMut(&[u8])) {
    while let Ok((found, kind)) = decode_key(&mut message) {
        let mut field = message;
        if skip_field(kind, found, &mut message, DecodeContext::default()).is_err() {
            return;
        }
        if found == number && kind == WireType::LengthDelimited {
            field = &field[..field.len() - message.len()];
            // Skip the length.
            let _ = decode_varint(&mut field);
            visit(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use prost::Message as _;

    use super::*;
    use crate::wire::quota::{BucketId, BucketQuotaUsage};

    #[test]
    fn usages_and_pairs_are_counted_as_decoded() {
        for count in [0, 1, 3, 300] {
            let pairs = (0..count % 7).map(|at| (format!("{at}"), "v".repeat(200)));
            let bucket: HashMap<String, String> = pairs.collect();
            let pairs = count * bucket.len();
            let usage = BucketQuotaUsage {
                bucket_id: Some(BucketId { bucket }),
                num_requests_allowed: u64::MAX,
                ..BucketQuotaUsage::default()
            };
            let report = RateLimitQuotaUsageReports {
                domain: "d".repeat(count),
                bucket_quota_usages: vec![usage; count],
            };
            let mut message = report.encode_to_vec();
            assert_eq!(size(&message), (count, pairs));
            // An unknown number, eight bytes and four bytes are skipped.
            message.extend([
                0x18, 0xff, 0x01, 0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x2d, 1, 2, 3, 4,
            ]);
            message.extend([0x12, 0]);
            assert_eq!(size(&message), (count + 1, pairs));
        }
    }

    #[test]
    fn pairs_are_counted_over_all_names_and_empty_ones() {
        // A usage with two names, the first of them with two pairs, and another field beside them.
        let usage = [
            0x0a, 4, 0x0a, 0, 0x0a, 0, 0x0a, 2, 0x0a, 0, 0x18, 1, 0x12, 0,
        ];
        let length = u8::try_from(usage.len()).unwrap();
        let message = [&[0x12, length][..], &usage].concat();
        assert_eq!(size(&message), (1, 3));
        assert!(RateLimitQuotaUsageReports::decode(&message[..]).is_ok());
    }

    #[test]
    fn invalid_bytes_end_the_count() {
        let check = |message: &[u8], expected| {
            assert_eq!(size(message), (expected, 0), "{message:?}");
        };
        check(&[], 0);
        check(&[0x12], 0);
        check(&[0x12, 0, 0x12, 1], 1);
        check(&[0x12, 0, 0x13], 1);
        check(&[0xff; 20], 0);
        check(
            &[
                0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0,
            ],
            0,
        );
        // Fields inside an unknown group are no usages.
        check(&[0x12, 0, 0x1b, 0x12, 0, 0x1c, 0x12, 0], 2);
    }
}
