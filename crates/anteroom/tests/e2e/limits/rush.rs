//! Many visitors through few connections, which stay open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anteroom::demo::checking_origin::CHECKER_SEAT_ENDS;
use bytes::Bytes;
use http::header::{ACCEPT, COOKIE, HOST, SET_COOKIE};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Connection that visitors use one after the other.
pub(super) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    host: String,
}

impl Connection {
    async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self {
            sender,
            host: address.to_string(),
        }
    }

    /// Requests a page; returns whether it was the origin's. Keeps the cookie of the response.
    async fn send(&mut self, path: &str, cookie: &mut Option<String>) -> bool {
        let mut request = Request::get(path)
            .header(HOST, &self.host)
            .header(ACCEPT, "text/html");
        if let Some(cookie) = cookie {
            request = request.header(COOKIE, cookie.as_str());
        }
        let request = request.body(Empty::new()).unwrap();
        self.sender.ready().await.unwrap();
        let response = self.sender.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        body.collect().await.unwrap();
        assert_eq!(head.status, StatusCode::OK);
        *cookie = new_cookie(&head.headers).or_else(|| cookie.take());
        let is_in = head.headers.contains_key(CHECKER_SEAT_ENDS);
        assert_ne!(is_in, head.headers.contains_key("anteroom-verdict"));
        is_in
    }
}

/// Sends visitors with cookies of their own, one after the other on each of some connections. An
/// admitted visitor comes back at once, and so does one in sixteen of the others. Returns the
/// number of admitted visitors, and the connections.
pub(super) async fn rush(
    address: SocketAddr,
    path: &'static str,
    visitors: usize,
    connections: usize,
) -> (usize, Vec<Connection>) {
    let next = Arc::new(AtomicUsize::new(0));
    let entered = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (next, entered) = (Arc::clone(&next), Arc::clone(&entered));
        tasks.spawn(async move {
            let mut connection = Connection::open(address).await;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= visitors {
                    return connection;
                }
                let mut cookie = None;
                let was_in = connection.send(path, &mut cookie).await;
                let comes_back = was_in || number.is_multiple_of(16);
                let is_in = comes_back && connection.send(path, &mut cookie).await;
                assert!(is_in || !was_in, "an admitted visitor was queued");
                entered.fetch_add(usize::from(is_in), Ordering::Relaxed);
            }
        });
    }
    let connections = tasks.join_all().await;
    (entered.load(Ordering::Relaxed), connections)
}

fn new_cookie(headers: &HeaderMap) -> Option<String> {
    let line = headers.get(SET_COOKIE)?.to_str().unwrap();
    let (pair, _) = line.split_once(';').unwrap_or((line, ""));
    Some(pair.to_owned())
}
