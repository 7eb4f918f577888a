//! Clients, and an origin behind HAProxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anteroom_testkit::wire::{Origin, Wire, header};
use tokio::task::{JoinHandle, JoinSet};

/// Counts of allowed and rejected requests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    pub(crate) passed: usize,
    pub(crate) rejected: usize,
}

impl Counts {
    pub(crate) const fn new(passed: usize, rejected: usize) -> Self {
        Self { passed, rejected }
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.rejected += other.rejected;
    }
}

/// Client on one connection.
#[derive(Debug)]
pub(crate) struct Client(Wire);

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(Wire::connect(address).await)
    }

    /// Requests a path, with further header lines; returns the head of the response, in lower case.
    pub(crate) async fn request(&mut self, path: &str, headers: &[&str]) -> String {
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: shop.example\r\n");
        for line in headers {
            request.push_str(line);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        self.0.send(&request).await;
        let head = self.0.head().await;
        let length = header(&head, "content-length").unwrap().parse().unwrap();
        self.0.try_read(length).await.unwrap();
        head
    }

    /// Whether a request passes. The status is 200 or 429.
    pub(crate) async fn passes(&mut self, path: &str, headers: &[&str]) -> bool {
        let head = self.request(path, headers).await;
        match head.split(' ').nth(1) {
            Some("200") => true,
            Some("429") => {
                assert_eq!(header(&head, "retry-after"), Some("60"));
                false
            }
            _ => panic!("neither allowed nor rejected: {head}"),
        }
    }

    /// Sends so many requests, one after the other, and counts the results.
    pub(crate) async fn requests(&mut self, count: usize, headers: &[&str]) -> Counts {
        let mut counters = Counts::default();
        for _ in 0..count {
            let passes = self.passes("/", headers).await;
            counters.add(Counts::new(usize::from(passes), usize::from(!passes)));
        }
        counters
    }
}

/// Sends requests over several connections at once, and counts the results.
pub(crate) async fn burst(address: SocketAddr, connections: usize, requests_each: usize) -> Counts {
    let mut callers = JoinSet::new();
    for _ in 0..connections {
        callers.spawn(async move {
            let mut client = Client::connect(address).await;
            client.requests(requests_each, &[]).await
        });
    }
    let mut counters = Counts::default();
    for of_one in callers.join_all().await {
        counters.add(of_one);
    }
    counters
}

/// Origin that counts requests, and responds with the last address in `X-Forwarded-For`.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) address: SocketAddr,
    served: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Counting {
    pub(crate) async fn start() -> Self {
        let origin = Origin::new().await;
        let address = origin.address;
        let served = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&served);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let wire = origin.accept().await;
                connections.spawn(serve(wire, Arc::clone(&counter)));
            }
        });
        Self {
            address,
            served,
            task,
        }
    }

    /// Returns the number of requests that have reached it.
    pub(crate) fn served(&self) -> usize {
        self.served.load(Ordering::SeqCst)
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut wire: Wire, served: Arc<AtomicUsize>) {
    while let Some(head) = wire.try_read_until("\r\n\r\n").await {
        served.fetch_add(1, Ordering::SeqCst);
        let head = head.to_lowercase();
        let mut addresses = head
            .lines()
            .filter_map(|line| line.strip_prefix("x-forwarded-for:"));
        let last = addresses
            .next_back()
            .and_then(|list| list.rsplit(',').next());
        let client = last.unwrap_or_default().trim();
        let response =
            format!("HTTP/1.1 200 OK\r\nx-client: {client}\r\ncontent-length: 2\r\n\r\nok");
        if !wire.try_send(response.as_bytes()).await {
            return;
        }
    }
}
