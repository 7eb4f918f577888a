//! Reads a report, unless it holds more than any Envoy tells.
//!
//! An empty usage takes two bytes of a message, and fifty times as much once it is read; a key with
//! its value two, and about as much. So they are counted first.

use bytes::Buf as _;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, skip_field,
};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

use crate::wire::quota::{RateLimitQuotaResponse, RateLimitQuotaUsageReports};

/// Usages of one report: those of all buckets that a stream may have, and of as many that it may
/// not.
pub(crate) const USAGES_MAX: usize = 2_000;

/// Keys with values of all buckets of one report: eight for each that a stream may have. Read they
/// take about a megabyte, as the longest report does unread.
pub(crate) const PAIRS_MAX: usize = 8_000;

/// The numbers of fields: of usages in a report, of the name in a usage, of its keys with values in
/// a name.
const USAGES: u32 = 2;
const NAME: u32 = 1;
const PAIRS: u32 = 1;

/// As messages are read and written on a stream of quotas.
#[derive(Debug, Default)]
pub(crate) struct ReportCodec(ProstCodec<RateLimitQuotaResponse, RateLimitQuotaUsageReports>);

/// Reads reports.
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
        // A message is in one piece.
        let (usages, pairs) = size(source.chunk());
        if source.chunk().len() < source.remaining() || usages > USAGES_MAX || pairs > PAIRS_MAX {
            let why = "too many buckets, or keys of buckets, in one report";
            return Err(Status::out_of_range(why));
        }
        self.0.decode(source)
    }
}

/// How many usages a report holds, and how many keys with values their names have together, as far
/// as it can be read.
fn size(report: &[u8]) -> (usize, usize) {
    let (mut usages, mut pairs) = (0, 0);
    each(report, USAGES, |usage| {
        usages += 1;
        each(usage, NAME, |name| each(name, PAIRS, |_| pairs += 1));
    });
    (usages, pairs)
}

/// Shows the messages that stand in fields of this number.
fn each(mut message: &[u8], number: u32, mut show: impl FnMut(&[u8])) {
    while let Ok((found, kind)) = decode_key(&mut message) {
        let mut field = message;
        if skip_field(kind, found, &mut message, DecodeContext::default()).is_err() {
            return;
        }
        if found == number && kind == WireType::LengthDelimited {
            field = &field[..field.len() - message.len()];
            // Its length.
            let _ = decode_varint(&mut field);
            show(field);
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
    fn usages_and_pairs_are_counted_as_they_are_read() {
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
            // A number, eight bytes and four bytes that nobody knows are passed over.
            message.extend([
                0x18, 0xff, 0x01, 0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x2d, 1, 2, 3, 4,
            ]);
            message.extend([0x12, 0]);
            assert_eq!(size(&message), (count + 1, pairs));
        }
    }

    #[test]
    fn pairs_are_counted_over_all_names_and_empty_ones() {
        // A usage with two names, the first of them with two pairs, and beside them what is none.
        let usage = [
            0x0a, 4, 0x0a, 0, 0x0a, 0, 0x0a, 2, 0x0a, 0, 0x18, 1, 0x12, 0,
        ];
        let length = u8::try_from(usage.len()).unwrap();
        let message = [&[0x12, length][..], &usage].concat();
        assert_eq!(size(&message), (1, 3));
        assert!(RateLimitQuotaUsageReports::decode(&message[..]).is_ok());
    }

    #[test]
    fn what_is_no_report_ends_the_count() {
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
        // What is inside of a group that nobody knows is no usage.
        check(&[0x12, 0, 0x1b, 0x12, 0, 0x1c, 0x12, 0], 2);
    }
}
