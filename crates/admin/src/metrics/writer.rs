//! How is a family of samples written? Name, help, type and unit once, then its samples.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Writes families one after the other; samples of two are never mixed, as the format demands.
pub(super) struct Families<'e> {
    encoder: DescriptorEncoder<'e>,
}

/// What a family is called and what it means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Title<'a> {
    /// Without `anteroom_` in front and the unit or `_total` behind.
    pub(super) name: &'a str,
    /// A sentence.
    pub(super) help: &'a str,
}

/// Lengths of time, by class.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    /// Upper bound in seconds (the last is beyond all), and how many were above the bound before.
    pub(super) classes: Vec<(f64, u64)>,
    /// Of all, in seconds.
    pub(super) sum: f64,
}

impl<'e> Families<'e> {
    pub(super) const fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self { encoder }
    }

    /// Figures that only rise.
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

    /// Figures that rise and fall.
    pub(super) fn counts<L: EncodeLabelSet>(
        &mut self,
        title: Title<'_>,
        samples: impl IntoIterator<Item = (L, u64)>,
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

    /// Times, long or since the Unix epoch.
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

    /// How often lengths of time fell into which class: for each sample all of them, the sum in
    /// seconds, and how many there were.
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

    /// One figure that only rises.
    pub(super) fn total(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Counter)?
            .encode_counter::<NoLabelSet, u64, u64>(&value, None)
    }

    /// One figure that rises and falls.
    pub(super) fn count(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, None, MetricType::Gauge)?
            .encode_gauge(&value)
    }

    /// One length of time.
    pub(super) fn seconds(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.encoder
            .encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?
            .encode_gauge(&value)
    }
}
