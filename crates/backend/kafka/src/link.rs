//! Connections of a node: three threads, as the client library blocks in them and has no runtime.
//!
//! | thread | does |
//! | --- | --- |
//! | [`publisher`] | sends this node's counts to the topic of calls |
//! | [`aggregator`] | reads this node's partitions of that topic, publishes totals |
//! | [`listener`] | reads all totals |

mod aggregator;
mod listener;
mod outgoing;
mod publisher;
pub(crate) mod rounds;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anteroom_limit::time::{DurationUs, TimestampUs};
use anteroom_limit_store::clock::Now;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rdkafka::consumer::BaseConsumer;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use tokio::time::Instant;

use self::outgoing::Outgoing;
use self::rounds::Round;
use crate::contact::Contact;
use crate::message;
use crate::node::Node;
use crate::partitions::Partitions;
use crate::settings::{KafkaSettings, KafkaSetupError, LookBack};
use crate::stats::{NodeId, SlotReport};

/// Period of reports and of totals. A shorter one causes more messages, up to one per client and
/// node each time. A longer one admits more requests that the other nodes do not know of.
pub(crate) const REPORT_PERIOD: Duration = Duration::from_millis(100);
/// Messages that are taken from the node at once. It is locked meanwhile, and requests wait.
const BATCH_MAX: usize = 500;
/// Longest time that threads wait for messages before they check whether to end.
const POLL_TIMEOUT: Duration = Duration::from_millis(50);
/// Longest time to send the last messages when the node ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// State shared by requests and the threads.
pub(crate) struct Link {
    settings: KafkaSettings,
    store_name: String,
    node: Mutex<Node>,
    now: Now,
    began_at: Instant,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
    /// Threads that ended unexpectedly.
    ended: AtomicU64,
    needs_all: AtomicBool,
    producer: ThreadedProducer<Contact>,
}

/// Guard of a thread that logs an unexpected end.
struct Watch {
    link: Arc<Link>,
    thread: String,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.link.is_stopped() {
            self.link.ended.fetch_add(1, Relaxed);
            let Self { link, thread } = self;
            tracing::error!(
                thread,
                store_name = link.store_name,
                "a thread of the kafka client has ended: requests are not counted any more, \
                 restart this node"
            );
        }
    }
}

/// Connects, and starts the threads.
pub(crate) fn start(
    settings: KafkaSettings,
    id: NodeId,
    slots_max: usize,
    now: Now,
) -> Result<(Arc<Link>, Vec<JoinHandle<()>>), KafkaSetupError> {
    let rejected = KafkaSetupError::rejected;
    let contact = Contact::default;
    let producer = settings.producer().create_with_context(contact());
    let aggregating = settings.aggregator().create_with_context(contact());
    let listening = settings.listener(id).create_with_context(contact());
    let aggregating: BaseConsumer<Contact> = aggregating.map_err(rejected)?;
    let listening: BaseConsumer<Contact> = listening.map_err(rejected)?;
    let link = Arc::new(Link {
        store_name: settings.store_name(),
        settings,
        node: Mutex::new(Node::new(id, slots_max)),
        now,
        began_at: Instant::now(),
        is_stopped: Mutex::new(false),
        stopped: Condvar::new(),
        ended: AtomicU64::new(0),
        needs_all: AtomicBool::new(false),
        producer: producer.map_err(rejected)?,
    });
    let threads = [
        spawn("kafka-publish", &link, publisher::run),
        spawn("kafka-aggregate", &link, move |link| {
            aggregator::run(link, &aggregating);
        }),
        spawn("kafka-listen", &link, move |link| {
            listener::run(link, &listening);
        }),
    ];
    let threads: Result<Vec<JoinHandle<()>>, io::Error> = threads.into_iter().collect();
    match threads {
        Ok(threads) => Ok((link, threads)),
        Err(source) => {
            link.stop();
            Err(KafkaSetupError::Thread { source })
        }
    }
}

fn spawn(
    name: &str,
    link: &Arc<Link>,
    run: impl FnOnce(&Link) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let watch = Watch {
        link: Arc::clone(link),
        thread: name.to_owned(),
    };
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || run(&watch.link))
}

impl Link {
    pub(crate) fn node(&self) -> MutexGuard<'_, Node> {
        self.node.lock()
    }

    pub(crate) fn now(&self) -> TimestampUs {
        (self.now)()
    }

    /// Returns monotonic time.
    pub(crate) fn at(&self) -> Duration {
        self.began_at.elapsed()
    }

    pub(crate) fn store_name(&self) -> &str {
        &self.store_name
    }

    pub(crate) fn undelivered(&self) -> u64 {
        use rdkafka::producer::Producer as _;
        self.producer.context().undelivered()
    }

    /// Returns the number of threads that ended unexpectedly; their work is not done any more.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    /// Reads all totals if a client's requests matter for longer than totals were read.
    pub(crate) fn look_back_for(&self, span: DurationUs) {
        if let LookBack::For(time) = self.settings.look_back
            && Duration::from_micros(span.0) > time
        {
            self.needs_all.store(true, Relaxed);
        }
    }

    fn needs_all(&self) -> bool {
        self.needs_all.load(Relaxed)
    }

    pub(crate) fn stop(&self) {
        *self.is_stopped.lock() = true;
        self.stopped.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.is_stopped.lock()
    }

    /// Waits for `time`, or until the link is stopped.
    fn wait(&self, time: Duration) {
        let mut is_stopped = self.is_stopped.lock();
        if !*is_stopped {
            self.stopped.wait_for(&mut is_stopped, time);
        }
    }

    /// Sends all pending messages of a topic, until none is left or the queue is full. Returns
    /// whether all were sent.
    fn send_all(&self, topic: &str, outgoing: &Outgoing, round: &Arc<Round>) -> bool {
        loop {
            let at = self.at();
            let (reports, partitions) = {
                let mut node = self.node();
                ((outgoing.next)(&mut node, BATCH_MAX, at), node.partitions())
            };
            if reports.is_empty() {
                return true;
            }
            let mut each = reports.iter();
            let unsent =
                each.position(|report| self.send(topic, partitions, report, round).is_err());
            let sent = unsent.unwrap_or(reports.len());
            let mut node = self.node();
            (outgoing.sent)(&mut node, sent as u64);
            for report in &reports[sent..] {
                (outgoing.keep)(&mut node, report.id);
            }
            if unsent.is_some() {
                return false;
            }
        }
    }

    /// Sends a message. While the partitions are not known, the library chooses one.
    fn send(
        &self,
        topic: &str,
        partitions: Option<Partitions>,
        report: &SlotReport,
        round: &Arc<Round>,
    ) -> Result<(), KafkaError> {
        let key = message::key(report.id);
        let payload = message::encode(report);
        let round = Arc::clone(round);
        let mut record = BaseRecord::with_opaque_to(topic, round);
        record.partition =
            partitions.map(|partitions| i32::from(partitions.partition(report.id.name)));
        let record = record.key(&key).payload(&payload);
        let (error, mut record) = match self.producer.send(record) {
            Ok(()) => return Ok(()),
            Err(unsent) => unsent,
        };
        // The connection does not know a new partition yet; any other will do until then.
        let is_unknown = error.rdkafka_error_code() == Some(RDKafkaErrorCode::UnknownPartition);
        if !is_unknown || record.partition.take().is_none() {
            return Err(error);
        }
        self.producer.send(record).map_err(|(error, _)| error)
    }
}
