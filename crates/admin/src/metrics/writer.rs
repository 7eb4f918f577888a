//! Writer of metric families: name, help, type and unit once, then the samples.

use std::fmt;

use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Writer of families one after the other: the format forbids mixing samples of two families.
pub(super) struct Families<'e> {
    encoder: DescriptorEncoder<'e>,
}

/// Name and help of a family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Title<'a> {
    /// Name without the prefix `anteroom_` and without a unit or `_total` at the end.
    pub(super) name: &'a str,
    /// Help: one sentence.
    pub(super) help: &'a str,
}

/// Histogram of durations.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    /// Upper bound of each bucket in seconds (the last is infinite), and the count above the bound
    /// before.
    pub(super) classes: Vec<(f64, u64)>,
    /// Sum of all durations, in seconds.
    pub(super) sum: f64,
}

impl<'e> Families<'e> {
    pub(super) const fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self { encoder }
    }

    /// Writes a family of counters.
    pub(super) fn totals<L: EncodeLabelSet>(
        &mut self,
        title: Title<'_>,
        samples: impl IntoIterator<Item = (L, u64)>,
    ) -> fmt::Result {
        let kind = MetricType::Counter;
        let mut family = self
            .encoder
            .encode_descriptor(title.name, title.help, None, kind)?;
        for (labels, value) in samples {
            family
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, u64, u64>(&value, None)?;
        }
        Ok(())
    }

    /// Writes a family of gauges.
    pub(super) fn counts<L: EncodeLabelSet, N: EncodeGaugeValue>(
        &mut self,
        title: Title<'_>,
        samples: impl IntoIterator<Item = (L, N)>,
    ) -> fmt::Result {
        let kind = MetricType::Gauge;
        let mut family = self
            .encoder
            .encode_descriptor(title.name, title.help, None, kind)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Writes a family of gauges in seconds: durations, or times since the Unix epoch.
    pub(super) fn times<L: EncodeLabelSet>(
        &mut self,
        title: Title<'_>,
        samples: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let unit = Some(&Unit::Seconds);
        let kind = MetricType::Gauge;
        let mut family = self
            .encoder
            .encode_descriptor(title.name, title.help, unit, kind)?;
        for (labels, value) in samples {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Writes a family of histograms in seconds.
    pub(super) fn distributions<L: EncodeLabelSet>(
        &mut self,
        title: Title<'_>,
        samples: impl IntoIterator<Item = (L, Distribution)>,
    ) -> fmt::Result {
        let unit = Some(&Unit::Seconds);
        let kind = MetricType::Histogram;
        let mut family = self
            .encoder
            .encode_descriptor(title.name, title.help, unit, kind)?;
        for (labels, distribution) in samples {
            let Distribution { classes, sum } = distribution;
            let count = classes.iter().map(|(_, count)| count).sum();
            family
                .encode_family(&labels)?
                .encode_histogram::<NoLabelSet>(sum, count, &classes, None)?;
        }
        Ok(())
    }

    /// Writes one counter.
    pub(super) fn total(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, u64, u64>(&value, None)
    }

    /// Writes one gauge.
    pub(super) fn count(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Gauge)?
            .encode_gauge(&value)
    }

    /// Writes one gauge in seconds.
    pub(super) fn seconds(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?
            .encode_gauge(&value)
    }
}
