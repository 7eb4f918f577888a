//! Stores of the replay: in memory, on disk, and a real server; and two faulty ones.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anteroom_config::{HostPort, Topology, ValkeyAddress};
use anteroom_e2e::replay::Rig;
use anteroom_embedded::{DataDir, Embedded};
use anteroom_room::time::{DurationMs, Timestamp};
use anteroom_store::memory::Memory;
use anteroom_store::{
    BoxFuture, Clock, CounterName, Expected, Identity, Loaded, RecordKey, Store, StoreError, Swap,
};
use anteroom_testkit::redis_server::RedisServer;
use anteroom_valkey::Valkey;
use tempfile::TempDir;

/// Clock that advances by a millisecond at every read.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1, Ordering::SeqCst))
    }

    fn never_before(&self, at: Timestamp) {
        self.0.fetch_max(at.0, Ordering::SeqCst);
    }
}

/// Clock that goes back by a millisecond at every read.
struct Backwards(AtomicU64);

impl Clock for Backwards {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_sub(1, Ordering::SeqCst))
    }

    fn never_before(&self, _at: Timestamp) {}
}

/// Store in memory.
pub(crate) struct InMemory(Memory);

impl InMemory {
    pub(crate) fn new() -> Self {
        Self(Memory::new(Arc::new(Ticking::default())))
    }

    pub(crate) fn with_a_clock_that_runs_backwards() -> Self {
        Self(Memory::new(Arc::new(Backwards(AtomicU64::new(1 << 40)))))
    }
}

impl Rig for InMemory {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn wipe(&mut self) -> BoxFuture<'_, ()> {
        self.0.wipe();
        Box::pin(async {})
    }
}

/// Store in memory that sometimes confirms a write without performing it.
pub(crate) struct Forgetful(InMemory);

impl Forgetful {
    pub(crate) fn new() -> Self {
        Self(InMemory::new())
    }
}

impl Rig for Forgetful {
    fn store(&self) -> Arc<dyn Store> {
        Arc::new(ForgetfulStore {
            store: self.0.store(),
            writes: AtomicU64::new(0),
        })
    }

    fn wipe(&mut self) -> BoxFuture<'_, ()> {
        self.0.wipe()
    }
}

struct ForgetfulStore {
    store: Arc<dyn Store>,
    writes: AtomicU64,
}

impl Store for ForgetfulStore {
    fn load<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Loaded, StoreError>> {
        self.store.load(key)
    }

    fn compare_and_swap<'a>(
        &'a self,
        key: &'a RecordKey,
        expected: Expected,
        value: Vec<u8>,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        let written = self.writes.fetch_add(1, Ordering::SeqCst);
        if written % 50 == 49 {
            return Box::pin(async { Ok(Swap::Swapped) });
        }
        self.store.compare_and_swap(key, expected, value)
    }

    fn keep_for<'a>(
        &'a self,
        key: &'a RecordKey,
        value: Option<&'a [u8]>,
        lifetime: DurationMs,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        self.store.keep_for(key, value, lifetime)
    }

    fn take_number<'a>(&'a self, name: &'a CounterName) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.store.take_number(name)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }
}

/// Folder in memory, on Linux. These tests are about replies, and others are about power failures.
/// On a disk each operation would wait for it.
const MEMORY: &str = "/dev/shm";

/// Journal in a folder.
pub(crate) struct InFolder {
    temp: TempDir,
    folders: u32,
    store: Arc<Embedded>,
}

impl InFolder {
    pub(crate) fn new() -> Self {
        let temp = tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir());
        let temp = temp.unwrap();
        let store = journal(&temp, 0);
        Self {
            temp,
            folders: 1,
            store,
        }
    }
}

impl Rig for InFolder {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn wipe(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.store.close().await;
            fs::remove_dir_all(self.temp.path().join((self.folders - 1).to_string())).unwrap();
            self.store = journal(&self.temp, self.folders);
            self.folders += 1;
        })
    }
}

fn journal(temp: &TempDir, number: u32) -> Arc<Embedded> {
    let dir = DataDir::open(&temp.path().join(number.to_string())).unwrap();
    let clock = Arc::new(Ticking::default());
    Arc::new(Embedded::new(dir, Identity(u64::from(number)), clock))
}

/// Server of this machine.
pub(crate) struct OnServer {
    server: RedisServer,
    store: Arc<Valkey>,
}

impl OnServer {
    pub(crate) async fn start() -> Self {
        let server = RedisServer::start().await;
        let address = ValkeyAddress {
            topology: Topology::Single(HostPort {
                host: "127.0.0.1".to_owned(),
                port: server.port(),
            }),
            database: 0,
            username: None,
            password: None,
            tls: None,
            promise: anteroom_config::StorePromise::default(),
        };
        let store = Arc::new(Valkey::new(&address, "anteroom").unwrap());
        Self { server, store }
    }
}

impl Rig for OnServer {
    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    fn wipe(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.server.send_ok(&["FLUSHALL"]).await;
        })
    }
}
