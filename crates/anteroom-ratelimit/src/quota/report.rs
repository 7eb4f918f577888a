//! Reads a report, unless it holds more buckets than any Envoy has.
//!
//! An empty usage takes two bytes of a message, and fifty times as much once it is read. So they are counted first.

use bytes::Buf as _;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::prost::encoding::{DecodeContext, decode_key, skip_field};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

use crate::wire::quota::{RateLimitQuotaResponse, RateLimitQuotaUsageReports};

/// Usages of one report: those of all buckets that a stream may have, and of as many that it may not.
pub(crate) const USAGES_MAX: usize = 2_000;

/// The number of usages among the fields of a report.
const USAGES: u32 = 2;

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
        if source.chunk().len() < source.remaining() || usages(source.chunk()) > USAGES_MAX {
            return Err(Status::out_of_range("too many buckets in one report"));
        }
        self.0.decode(source)
    }
}

/// How many usages a report holds, as far as it can be read.
fn usages(mut message: &[u8]) -> usize {
    let mut count = 0;
    while let Ok((number, kind)) = decode_key(&mut message)
        && skip_field(kind, number, &mut message, DecodeContext::default()).is_ok()
    {
        count += usize::from(number == USAGES);
    }
    count
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::wire::quota::{BucketId, BucketQuotaUsage};

    #[test]
    fn usages_are_counted_as_they_are_read() {
        for count in [0, 1, 3, 300] {
            let bucket = [("k".repeat(count), "v".repeat(200))];
            let usage = BucketQuotaUsage {
                bucket_id: Some(BucketId {
                    bucket: bucket.into(),
                }),
                num_requests_allowed: u64::MAX,
                ..BucketQuotaUsage::default()
            };
            let report = RateLimitQuotaUsageReports {
                domain: "d".repeat(count),
                bucket_quota_usages: vec![usage; count],
            };
            let mut message = report.encode_to_vec();
            assert_eq!(usages(&message), count);
            // A number, eight bytes and four bytes that nobody knows are passed over.
            message.extend([
                0x18, 0xff, 0x01, 0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0x2d, 1, 2, 3, 4,
            ]);
            message.extend([0x12, 0]);
            assert_eq!(usages(&message), count + 1);
        }
    }

    #[test]
    fn what_is_no_report_ends_the_count() {
        let check = |message: &[u8], expected| assert_eq!(usages(message), expected, "{message:?}");
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
