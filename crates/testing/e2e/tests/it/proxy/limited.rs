//! Rate limits in a whole gateway: the requests at the origin, and the responses to clients over
//! the limit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use anteroom_e2e::eventually;
use tokio::task::JoinSet;

use crate::proxy::support::header;
use crate::proxy::whole_gateway::{Origin, Site, config};

/// Returns a limit that counts by a header, so that requests without it do not count. An hour, so
/// that no test sees its end.
fn limit(limit: &str, more: &str) -> String {
    format!(
        "[[limit]]\nname = \"api\"\nlimit = \"{limit}\"\nkey = \"header:X-Api-Key\"\n\
         without_key = \"skip\"\n{more}\n"
    )
}

impl Site {
    /// Sends a request with this cookie and this key; returns the status, and the head of the
    /// response.
    async fn call(&self, cookie: &str, key: &str) -> (u16, String) {
        let (head, _) = self
            .ask("/", &format!("{cookie}\r\nX-Api-Key: {key}"))
            .await;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        (status.unwrap(), head)
    }

    /// Sends so many requests, one after the other, and counts the statuses.
    async fn calls(&self, count: usize, cookie: &str, key: &str) -> BTreeMap<u16, usize> {
        let mut seen = BTreeMap::new();
        for _ in 0..count {
            let (status, _) = self.call(cookie, key).await;
            *seen.entry(status).or_default() += 1;
        }
        seen
    }

    /// Returns how many requests took the fast path to the origin.
    async fn forwarded(&self) -> u64 {
        self.on_fast_path("forwarded").await
    }

    /// Returns how many requests had this outcome on the fast path.
    pub(crate) async fn on_fast_path(&self, outcome: &str) -> u64 {
        let sample = format!("anteroom_fast_path_requests_total{{outcome=\"{outcome}\"}}");
        let count = self.metric(&sample).await;
        count.map_or(0, |count| count.parse().unwrap())
    }

    pub(crate) async fn metric(&self, sample: &str) -> Option<String> {
        let metrics = self.operators("/metrics").await;
        let found = metrics.lines().find_map(|line| line.strip_prefix(sample));
        found.map(|value| value.trim().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_origin_gets_at_most_the_limit() {
    for fast_path in [true, false] {
        the_limit_holds(fast_path).await;
    }
}

async fn the_limit_holds(fast_path: bool) {
    let origin = Origin::start("one").await;
    let site = Site::open_on(fast_path, &[origin.address], &limit("20/h", "")).await;
    let site = Arc::new(site);
    let inside = site.active_visitor_cookie().await;
    let before = origin.seen.requests.load(Relaxed);
    let mut callers = JoinSet::new();
    for _ in 0..10 {
        let (site, inside) = (Arc::clone(&site), inside.clone());
        callers.spawn(async move { site.calls(10, &inside, "seven").await });
    }
    let mut seen: BTreeMap<u16, usize> = BTreeMap::new();
    for (status, count) in callers.join_all().await.into_iter().flatten() {
        *seen.entry(status).or_default() += count;
    }
    assert_eq!(seen, [(200, 20), (429, 80)].into());
    assert_eq!(origin.seen.requests.load(Relaxed) - before, 20);
    // Another client has its own limit, and requests without a key do not count.
    assert_eq!(site.calls(3, &inside, "eight").await, [(200, 3)].into());
    let (head, _) = site.ask("/", &inside).await;
    assert!(head.starts_with("HTTP/1.1 200 ") && header(&head, "ratelimit").is_none());
    let rejected = "anteroom_limit_requests_total{limit=\"api\",verdict=\"reject\"}";
    assert_eq!(site.metric(rejected).await.as_deref(), Some("80"));
    let keys = site.metric("anteroom_limit_keys{limit=\"api\"}").await;
    assert_eq!(keys.as_deref(), Some("2"));
    assert_eq!(site.forwarded().await, if fast_path { 24 } else { 0 });
    Arc::into_inner(site).unwrap().gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_report_the_limit_and_the_retry_time() {
    for fast_path in [true, false] {
        the_limit_is_reported(fast_path).await;
    }
}

async fn the_limit_is_reported(fast_path: bool) {
    let origin = Origin::start("one").await;
    let more = "algorithm = \"fixed-window\"\nheaders = \"both\"";
    let site = Site::open_on(fast_path, &[origin.address], &limit("2/h", more)).await;
    let inside = site.active_visitor_cookie().await;
    let (_, head) = site.call(&inside, "seven").await;
    assert_eq!(
        header(&head, "ratelimit-policy"),
        Some("\"api\";q=2;w=3600")
    );
    assert!(
        header(&head, "ratelimit")
            .unwrap()
            .starts_with("\"api\";r=1;t=")
    );
    assert_eq!(header(&head, "x-ratelimit-remaining"), Some("1"));
    site.call(&inside, "seven").await;
    let (status, head) = site.call(&inside, "seven").await;
    assert_eq!(status, 429);
    let wait: u64 = header(&head, "retry-after").unwrap().parse().unwrap();
    assert!((1..=3_960).contains(&wait), "{wait}");
    assert_eq!(header(&head, "cache-control"), Some("no-store"));
    site.gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_limit_holds_at_once_and_keeps_its_counts() {
    let origin = Origin::start("one").await;
    let site = Site::open(&[origin.address], &limit("3/h", "")).await;
    let inside = site.active_visitor_cookie().await;
    assert_eq!(
        site.calls(5, &inside, "seven").await,
        [(200, 3), (429, 2)].into()
    );
    let next = config(&site.folder, &[origin.address], &limit("5/h", ""));
    site.gateway.reload(&next).unwrap();
    assert_eq!(
        site.calls(5, &inside, "seven").await,
        [(200, 2), (429, 3)].into()
    );
    let own = "overrides = [{ key = \"seven\", limit = \"6/h\" }]";
    let next = config(&site.folder, &[origin.address], &limit("5/h", own));
    site.gateway.reload(&next).unwrap();
    assert_eq!(
        site.calls(5, &inside, "seven").await,
        [(200, 1), (429, 4)].into()
    );
    assert_eq!(
        site.calls(6, &inside, "eight").await,
        [(200, 5), (429, 1)].into()
    );
    let next = config(&site.folder, &[origin.address], "");
    site.gateway.reload(&next).unwrap();
    assert_eq!(site.calls(3, &inside, "seven").await, [(200, 3)].into());
    site.gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_algorithm_begins_anew_also_the_strict_kind_of_sub_windows() {
    let origin = Origin::start("one").await;
    let by = |algorithm: &str| limit("3/h", &format!("algorithm = \"{algorithm}\""));
    let site = Site::open(&[origin.address], &by("sub-windows")).await;
    let inside = site.active_visitor_cookie().await;
    let (all, none) = ([(200, 3)].into(), [(429, 1)].into());
    assert_eq!(site.calls(3, &inside, "seven").await, all);
    assert_eq!(site.calls(1, &inside, "seven").await, none);
    for algorithm in ["sub-windows-strict", "gcra", "sub-windows"] {
        let next = config(&site.folder, &[origin.address], &by(algorithm));
        site.gateway.reload(&next).unwrap();
        let seen = site.calls(1, &inside, "seven").await;
        assert_eq!(seen, [(200, 1)].into(), "{algorithm}");
    }
    site.gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_visitor_over_the_limit_waits_and_enters_later() {
    let origin = Origin::start("one").await;
    let more = "on_limit = \"wait\"";
    let site = Site::open(&[origin.address], &limit("1/h", more)).await;
    let inside = site.active_visitor_cookie().await;
    let (_, head) = site.call("", "seven").await;
    assert!(header(&head, "anteroom-verdict").is_none(), "{head}");
    // Over the limit, though there is room: a page, and a position in the queue.
    let (status, head) = site.call("", "seven").await;
    assert_eq!(
        (status, header(&head, "anteroom-verdict")),
        (200, Some("queue")),
        "{head}"
    );
    assert_eq!(header(&head, "anteroom-reason"), Some("not_your_turn"));
    let ticket = header(&head, "set-cookie").unwrap();
    let ticket = ticket.split(';').next().unwrap().to_owned();
    // Its page polls without the key, and the limit does not delay it.
    eventually("the waiting visitor is admitted", async || {
        let (head, _) = site.ask("/", &ticket).await;
        header(&head, "anteroom-verdict").is_none()
    })
    .await;
    // An active visitor is never queued.
    let (status, _) = site.call(&inside, "seven").await;
    assert_eq!(status, 429);
    let waited = "anteroom_limit_requests_total{limit=\"api\",verdict=\"wait\"}";
    assert_eq!(site.metric(waited).await.as_deref(), Some("1"));
    site.gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_cannot_queue_are_rejected() {
    let origin = Origin::start("one").await;
    let more = "on_limit = \"wait\"";
    // Other paths pass without a room, or by a rule.
    let room = "path = \"/shop\"\nbypass = [\"path.startsWith('/shop/free')\"]\n";
    let site = Site::open(&[origin.address], &format!("{room}{}", limit("0/h", more))).await;
    let calls = async |path: &str, cookie: &str| {
        let (head, _) = site
            .ask(path, &format!("{cookie}\r\nX-Api-Key: seven"))
            .await;
        head
    };
    for path in ["/", "/elsewhere", "/shop/free/1"] {
        let head = calls(path, "").await;
        assert!(head.starts_with("HTTP/1.1 429 "), "{path}: {head}");
        assert!(header(&head, "retry-after").is_some(), "{path}: {head}");
    }
    assert_eq!(origin.seen.requests.load(Relaxed), 0);

    // A waiting ticket that has been exchanged already admits no one.
    let head = calls("/shop", "").await;
    assert_eq!(header(&head, "anteroom-verdict"), Some("queue"), "{head}");
    let ticket = header(&head, "set-cookie").unwrap();
    let waiting = ticket.split(';').next().unwrap().to_owned();
    eventually("the waiting visitor is admitted", async || {
        let (head, _) = site.ask("/shop", &waiting).await;
        header(&head, "anteroom-verdict").is_none()
    })
    .await;
    let before = origin.seen.requests.load(Relaxed);
    for _ in 0..3 {
        let head = calls("/shop", &waiting).await;
        assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
        let ticket = header(&head, "set-cookie").unwrap();
        assert!(!ticket.starts_with(&waiting), "it gets its accepted ticket");
    }
    assert_eq!(origin.seen.requests.load(Relaxed), before);
    site.gateway.stop_soon().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_is_counted_by_its_ticket() {
    for fast_path in [true, false] {
        the_ticket_counts(fast_path).await;
    }
}

async fn the_ticket_counts(fast_path: bool) {
    let origin = Origin::start("one").await;
    let limit = "[[limit]]\nname = \"visitor\"\nlimit = \"4/h\"\nkey = \"ticket\"\n\
                 without_key = \"skip\"\n";
    let site = Site::open_on(fast_path, &[origin.address], limit).await;
    let (first, second) = (
        site.active_visitor_cookie().await,
        site.active_visitor_cookie().await,
    );
    assert_eq!(
        site.calls(6, &first, "a").await,
        [(200, 4), (429, 2)].into()
    );
    assert_eq!(
        site.calls(6, &second, "a").await,
        [(200, 4), (429, 2)].into()
    );
    // A forged ticket is a new visitor's: without a ticket no client counts.
    let forged = first.replace('=', "=A");
    assert_eq!(site.calls(6, &forged, "a").await, [(200, 6)].into());
    site.gateway.stop_soon().await;
}

// A client must not get more by another spelling of the header that names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_spelling_of_a_key_is_one_client() {
    for fast_path in [true, false] {
        let origin = Origin::start("one").await;
        let site = Site::open_on(fast_path, &[origin.address], &limit("2/h", "")).await;
        let inside = site.active_visitor_cookie().await;
        let mut seen = Vec::new();
        for name in ["X-Api-Key", "x-api-key", "X-API-KEY", "X_Api_Key"] {
            let (head, _) = site.ask("/", &format!("{inside}\r\n{name}: seven")).await;
            seen.push(head.split(' ').nth(1).unwrap_or_default().to_owned());
        }
        assert_eq!(seen, ["200", "200", "429", "429"], "fast path: {fast_path}");
        site.gateway.stop_soon().await;
    }
}
