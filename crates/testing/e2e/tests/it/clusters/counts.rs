//! Every waiting visitor is counted once, whatever node receives its requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anteroom_e2e::cluster::Cluster;
use anteroom_testkit::load::{NodeAddress, NodeAt};
use bytes::Bytes;
use http::Request;
use http::header::{COOKIE, SET_COOKIE};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep_until};

use super::{FIRST, Run, eventually, limits, meanwhile};

/// Visitors who wait.
const QUEUE: usize = 150;
/// Time between two requests of a visitor.
const POLLS_EVERY: Duration = Duration::from_secs(2);
/// Time after a change by which counts must be right.
const SETTLED_AFTER: u64 = 10;
/// Looks at the counts of all nodes; the one in the middle counts. Nodes are not asked at the very
/// same moment, and a visitor may pass from one to the other in between.
const LOOKS: usize = 9;

type HttpClient = Client<HttpConnector, Empty<Bytes>>;

/// Waiting visitors. Each of them asks any node.
struct Queue {
    tasks: JoinSet<()>,
    /// Number of visitors who have brought their ticket back.
    returned: Arc<AtomicUsize>,
}

impl Queue {
    fn start(addresses: &[NodeAddress]) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        let mut queue = Self {
            tasks: JoinSet::new(),
            returned: Arc::default(),
        };
        for number in 0..QUEUE as u64 {
            let visitor = wait(
                client.clone(),
                addresses.to_vec(),
                Pcg64Mcg::seed_from_u64(number),
                Arc::clone(&queue.returned),
            );
            queue.tasks.spawn(visitor);
        }
        queue
    }

    async fn has_formed(&self) {
        let all = async || self.returned.load(Ordering::Relaxed) == QUEUE;
        eventually("all visitors brought their tickets back", all).await;
    }
}

/// Waits like a page: brings the newest ticket to any node, every other second.
async fn wait(
    client: HttpClient,
    addresses: Vec<NodeAddress>,
    mut rng: Pcg64Mcg,
    returned: Arc<AtomicUsize>,
) {
    let mut cookie: Option<String> = None;
    let mut responses = 0;
    let mut next = Instant::now() + POLLS_EVERY.mul_f64(f64::from(rng.next_u32()) / 2f64.powi(32));
    loop {
        sleep_until(next).await; // tidy: time passes
        next += POLLS_EVERY;
        // A balancer passes by a node that does not respond.
        let (_, handed_out) = loop {
            let address = &addresses[rng.next_u32() as usize % addresses.len()];
            if let Some(response) = position(&client, address, cookie.as_deref()).await {
                break response;
            }
            yield_now().await;
        };
        cookie = handed_out.or(cookie);
        responses += 1;
        if responses == 2 {
            returned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Asks a node for the position of a visitor. Returns the body, and the visitor's new cookie.
async fn position(
    client: &HttpClient,
    address: &NodeAddress,
    cookie: Option<&str>,
) -> Option<(Value, Option<String>)> {
    let url = format!("http://{}{}", address.get()?, Cluster::position_path());
    let mut request = Request::get(url);
    if let Some(cookie) = cookie {
        request = request.header(COOKIE, cookie);
    }
    let request = request.body(Empty::new()).ok()?;
    let response = client.request(request).await.ok()?;
    let cookie = response.headers().get(SET_COOKIE).map(|value| {
        let value = value.to_str().expect("a cookie is text");
        value.split(';').next().unwrap_or_default().to_owned()
    });
    let body = response.into_body().collect().await.ok()?.to_bytes();
    Some((serde_json::from_slice(&body).ok()?, cookie))
}

/// Returns the sum of the nodes' metrics, and the people ahead of a new visitor at any node: of
/// several looks the one in the middle.
async fn counts(cluster: &Cluster, nodes: &[NodeAt]) -> (i64, i64) {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (mut sums, mut ahead) = (Vec::new(), Vec::new());
    for look in 0..LOOKS {
        let mut sum = 0;
        for at in nodes {
            sum += cluster
                .metric::<i64>(*at, "anteroom_visitors_waiting")
                .await;
        }
        sums.push(sum);
        let address = cluster.node(nodes[look % nodes.len()]).address();
        let (body, _) = position(&client, address, None)
            .await
            .expect("a node responds");
        let people = body["cfWaitingRoom"]["peopleAhead"].as_i64();
        ahead.push(people.unwrap_or_else(|| panic!("no people ahead in {body}")));
    }
    sums.sort_unstable();
    ahead.sort_unstable();
    eprintln!("sums {sums:?}, ahead {ahead:?}");
    (sums[LOOKS / 2], ahead[LOOKS / 2])
}

async fn assert_counted(cluster: &Cluster, nodes: &[NodeAt]) {
    let (sum, ahead) = counts(cluster, nodes).await;
    let queue = i64::try_from(QUEUE).unwrap_or_default();
    let is_right = |count: i64| (count - queue).abs() * 20 <= queue;
    assert!(
        is_right(sum),
        "the metrics of all nodes count {sum} of {queue}"
    );
    assert!(
        is_right(ahead),
        "{ahead} of {queue} are ahead of a new visitor"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn visitors_who_ask_any_node_are_counted_once_also_after_a_node_is_killed() {
    let mut setup = limits(1, 60, 600);
    setup.data_centers.truncate(1);
    setup.global = None;
    let mut run = Run::start(setup).await;
    let addresses = FIRST.map(|at| run.cluster.node(at).address().clone());
    // Nobody else gets the only seat.
    let client: HttpClient = Client::builder(TokioExecutor::new()).build_http();
    let page = format!("http://{}/", addresses[0].get().expect("the node serves"));
    let page = Request::get(page).body(Empty::new()).expect("a page");
    client.request(page).await.expect("the node responds");
    run.cluster.has_inside(1).await;
    let queue = Queue::start(&addresses);
    queue.has_formed().await;
    meanwhile(SETTLED_AFTER).await;
    assert_counted(&run.cluster, &FIRST).await;
    run.cluster.node_mut(FIRST[1]).kill().await;
    meanwhile(SETTLED_AFTER).await;
    assert_counted(&run.cluster, &[FIRST[0], FIRST[2]]).await;
    drop(queue.tasks);
}
