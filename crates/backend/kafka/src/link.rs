//! A node's connections: three threads, for the client library waits in them and owns no runtime.
//!
//! | thread | does |
//! | --- | --- |
//! | [`teller`] | tells to the topic of calls what this node counted |
//! | [`aggregator`] | reads partitions of that topic that are this node's at present, publishes totals |
//! | [`listener`] | reads all totals |

mod aggregator;
mod listener;
mod outgoing;
pub(crate) mod rounds;
mod teller;
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

/// How often is told what was counted, and how often totals are published. Less makes more
/// messages, up to one for each client and node each time; more lets more calls through that nobody
/// else knows of.
pub(crate) const TELL_EVERY: Duration = Duration::from_millis(100);
/// Messages that are fetched from the node at once. It is locked meanwhile, and calls wait.
const AT_ONCE: usize = 500;
/// How long threads wait for messages before they look whether they are to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the last messages may take when the node ends.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What calls and the threads have in common.
pub(crate) struct Link {
    settings: KafkaSettings,
    place: String,
    node: Mutex<Node>,
    now: Now,
    began_at: Instant,
    is_stopped: Mutex<bool>,
    stopped: Condvar,
    /// Threads that ended though nobody stopped them.
    ended: AtomicU64,
    needs_all: AtomicBool,
    producer: ThreadedProducer<Contact>,
}

/// Goes with a thread, and says if it ends before it should.
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
                place = link.place,
                "a thread has ended that counts depend on: calls are not counted any more, \
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
    let refused = KafkaSetupError::refused;
    let contact = Contact::default;
    let producer = settings.producer().create_with_context(contact());
    let aggregating = settings.aggregator().create_with_context(contact());
    let listening = settings.listener(id).create_with_context(contact());
    let aggregating: BaseConsumer<Contact> = aggregating.map_err(refused)?;
    let listening: BaseConsumer<Contact> = listening.map_err(refused)?;
    let link = Arc::new(Link {
        place: settings.place(),
        settings,
        node: Mutex::new(Node::new(id, slots_max)),
        now,
        began_at: Instant::now(),
        is_stopped: Mutex::new(false),
        stopped: Condvar::new(),
        ended: AtomicU64::new(0),
        needs_all: AtomicBool::new(false),
        producer: producer.map_err(refused)?,
    });
    let threads = [
        spawn("kafka-tell", &link, teller::run),
        spawn("kafka-sum", &link, move |link| {
            aggregator::run(link, &aggregating);
        }),
        spawn("kafka-hear", &link, move |link| {
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

    /// Time that only goes forward.
    pub(crate) fn at(&self) -> Duration {
        self.began_at.elapsed()
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    pub(crate) fn undelivered(&self) -> u64 {
        use rdkafka::producer::Producer as _;
        self.producer.context().undelivered()
    }

    /// How many threads ended though nobody stopped them. What they did nobody does any more.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Relaxed)
    }

    /// What a client does matters for so long: if that is longer than totals were read, all are.
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

    /// Waits so long, or until it is to end.
    fn wait(&self, time: Duration) {
        let mut is_stopped = self.is_stopped.lock();
        if !*is_stopped {
            self.stopped.wait_for(&mut is_stopped, time);
        }
    }

    /// Sends all that there is to a topic, until nothing is left or the queue is full. Says whether
    /// all was sent.
    fn send_all(&self, topic: &str, outgoing: &Outgoing, round: &Arc<Round>) -> bool {
        loop {
            let at = self.at();
            let (told, partitions) = {
                let mut node = self.node();
                ((outgoing.next)(&mut node, AT_ONCE, at), node.partitions())
            };
            if told.is_empty() {
                return true;
            }
            let mut each = told.iter();
            let unsent = each.position(|told| self.send(topic, partitions, told, round).is_err());
            let sent = unsent.unwrap_or(told.len());
            let mut node = self.node();
            (outgoing.sent)(&mut node, sent as u64);
            for told in &told[sent..] {
                (outgoing.keep)(&mut node, told.id);
            }
            if unsent.is_some() {
                return false;
            }
        }
    }

    /// Where it is not known yet which partitions there are, the library chooses one when it knows.
    fn send(
        &self,
        topic: &str,
        partitions: Option<Partitions>,
        told: &SlotReport,
        round: &Arc<Round>,
    ) -> Result<(), KafkaError> {
        let key = message::key(told.id);
        let payload = message::encode(told);
        let round = Arc::clone(round);
        let mut record = BaseRecord::with_opaque_to(topic, round);
        record.partition =
            partitions.map(|partitions| i32::from(partitions.partition(told.id.name)));
        let record = record.key(&key).payload(&payload);
        let (error, mut record) = match self.producer.send(record) {
            Ok(()) => return Ok(()),
            Err(unsent) => unsent,
        };
        // A partition was added of which this connection has not heard: until it has, any other
        // does.
        let is_unknown = error.rdkafka_error_code() == Some(RDKafkaErrorCode::UnknownPartition);
        if !is_unknown || record.partition.take().is_none() {
            return Err(error);
        }
        self.producer.send(record).map_err(|(error, _)| error)
    }
}
