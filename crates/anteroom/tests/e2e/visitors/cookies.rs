//! Cookies of tickets, and cookies that are not tickets.

use crate::support::client::Client;
use crate::support::config::{SERVER, room};
use crate::support::eventually;
use crate::support::raw::{ask, is_queued, status_of};
use crate::support::site::{Site, until_inside};

/// Returns the only cookie of a visitor.
fn ticket(visitor: &Client) -> (String, String) {
    assert_eq!(visitor.cookies.len(), 1);
    let (name, value) = visitor.cookies.first_key_value().unwrap();
    (name.clone(), value.clone())
}

fn id_of_last(site: &Site) -> String {
    site.origin.last().header("anteroom-visitor").unwrap()
}

/// Returns values that are not tickets of this room.
async fn bad_values(name: &str, good: &str) -> Vec<(&'static str, String)> {
    // The same room of another deployment, whose cookie has the same name.
    let other_site = Site::with_room(10, "").await;
    let (foreign_name, foreign) = ticket(&other_site.insider().await);
    assert_eq!(foreign_name, name);
    let mut flipped = good.to_owned().into_bytes();
    let middle = flipped.len() / 2;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    vec![
        ("empty", String::new()),
        ("garbage", "not-a-ticket".to_owned()),
        ("quotes", "\"\"".to_owned()),
        ("padding", "====".to_owned()),
        ("escapes", "%00%ff%22".to_owned()),
        ("spaces", "a b\tc".to_owned()),
        ("huge", "A".repeat(30_000)),
        ("one letter changed", String::from_utf8(flipped).unwrap()),
        ("cut off", good[..good.len() - 1].to_owned()),
        ("longer", format!("{good}A")),
        ("another deployment's", foreign),
    ]
}

#[tokio::test]
async fn an_invalid_ticket_makes_a_new_visitor() {
    let site = Site::with_room(100, "").await;
    let visitor = site.insider().await;
    let (name, good) = ticket(&visitor);
    let id = id_of_last(&site);
    for (what, value) in bad_values(&name, &good).await {
        let cookie = format!("cookie: {name}={value}\r\n");
        let response = ask(site.gateway.address, "a", "/", &cookie).await;
        assert_eq!(status_of(&response), 200, "{what}: {response}");
        assert!(
            response.contains(&format!("set-cookie: {name}=")),
            "{what}: {response}"
        );
        assert_ne!(id_of_last(&site), id, "{what}");
        assert!(site.origin.last().header("cookie").is_none(), "{what}");
    }
    // Bytes that are not text, and a name in upper case.
    let other_case = name.to_uppercase();
    for cookie in [
        format!("cookie: {name}=\u{e9}\u{2603}"),
        format!("cookie: {other_case}={good}"),
    ] {
        let response = ask(site.gateway.address, "a", "/", &(cookie + "\r\n")).await;
        assert_eq!(status_of(&response), 200, "{response}");
        assert_ne!(id_of_last(&site), id);
    }
    let response = ask(
        site.gateway.address,
        "a",
        "/",
        &format!("cookie: {name}={good}\r\n"),
    )
    .await;
    assert!(!response.contains("set-cookie"), "{response}");
    assert_eq!(id_of_last(&site), id);
}

#[tokio::test]
async fn a_visitor_with_an_invalid_ticket_is_queued() {
    let site = Site::with_room(1, "").await;
    let inside = site.insider().await;
    let (name, good) = ticket(&inside);
    for (what, value) in bad_values(&name, &good).await {
        let cookie = format!("cookie: {name}={value}\r\n");
        let response = ask(site.gateway.address, "a", "/", &cookie).await;
        assert!(
            is_queued(&response) && status_of(&response) == 429,
            "{what}: {response}"
        );
    }
    // The ticket of a waiting visitor is not worth a seat.
    let mut waiting = site.visitor();
    waiting.get("/").await;
    assert!(waiting.get("/").await.is_queued());
    assert_eq!(site.origin.count(), 1);
}

#[tokio::test]
async fn a_ticket_is_found_among_many_cookies_of_its_name() {
    let site = Site::with_room(100, "").await;
    let (name, good) = ticket(&site.insider().await);
    let id = id_of_last(&site);
    let many = |bad: usize| {
        let pairs = format!("{name}=bad; ").repeat(bad);
        format!("cookie: a=b; {pairs}{name}={good}; {name}=bad\r\n")
    };
    let response = ask(site.gateway.address, "a", "/", &many(7)).await;
    assert_eq!(status_of(&response), 200);
    assert_eq!(id_of_last(&site), id);
    assert_eq!(site.origin.last().header("cookie").unwrap(), "a=b");
    // With so many that not all are checked: a new visitor, and no error.
    for count in [8, 1_000] {
        let response = ask(site.gateway.address, "a", "/", &many(count)).await;
        assert_eq!(status_of(&response), 200, "{count}");
        assert_ne!(id_of_last(&site), id, "{count}");
    }
    let lines = format!("cookie: {name}=bad\r\n").repeat(5);
    let lines = format!("{lines}cookie: {name}={good}\r\n");
    ask(site.gateway.address, "a", "/", &lines).await;
    assert_eq!(id_of_last(&site), id);
    // A request with too large headers is the client's error.
    let too_much = format!("cookie: {name}={}\r\n", "A".repeat(100_000));
    let response = ask(site.gateway.address, "a", "/", &too_much).await;
    assert_eq!(status_of(&response), 431, "{response}");
}

#[tokio::test]
async fn an_expired_ticket_is_worthless() {
    let site = Site::with_room(10, "session_duration = \"1s\"").await;
    let mut visitor = site.insider().await;
    let first = site.origin.last();
    let end = i64::try_from(first.number("anteroom-seat-ends")).unwrap();
    eventually("the ticket has expired", || async {
        jiff::Timestamp::now().as_millisecond() > end
    })
    .await;
    until_inside(&mut visitor, "/").await;
    let second = site.origin.last();
    assert_ne!(
        second.header("anteroom-visitor"),
        first.header("anteroom-visitor")
    );
    assert!(second.number("anteroom-accepted-at") >= first.number("anteroom-seat-ends"));
}

#[tokio::test]
async fn two_rooms_on_one_host_keep_separate_tickets() {
    let site = Site::start(|origin| {
        let [left, right] = ["left", "right"].map(|name| {
            let path = format!("path = \"/{name}\"");
            room(name, origin, 1, &path)
        });
        SERVER.to_owned() + &left + &right
    })
    .await;
    let mut visitor = site.visitor();
    until_inside(&mut visitor, "/left").await;
    let left = site.origin.last();
    let (left_name, left_ticket) = ticket(&visitor);
    until_inside(&mut visitor, "/right/page").await;
    let right = site.origin.last();
    assert_eq!(visitor.cookies.len(), 2);
    assert_eq!(left.header("anteroom-room").unwrap(), "left");
    assert_eq!(right.header("anteroom-room").unwrap(), "right");
    assert_ne!(
        left.header("anteroom-visitor"),
        right.header("anteroom-visitor")
    );
    for (path, head) in [("/left", &left), ("/right", &right)] {
        visitor.get(path).await;
        let again = site.origin.last();
        assert_eq!(
            again.header("anteroom-visitor"),
            head.header("anteroom-visitor")
        );
        assert!(
            again.header("cookie").is_none(),
            "the origin gets neither ticket"
        );
    }
    // The ticket of one room under the cookie name of the other.
    let right_name = visitor
        .cookies
        .keys()
        .find(|name| **name != left_name)
        .unwrap();
    let cookie = format!("cookie: {right_name}={left_ticket}\r\n");
    let response = ask(site.gateway.address, "a", "/right", &cookie).await;
    assert!(is_queued(&response), "{response}");
}

/// Returns the attributes of the cookie that a new visitor gets with these headers.
async fn attributes(site: &Site, headers: &str) -> String {
    let mut line = None;
    let line_of = parking_lot::Mutex::new(&mut line);
    eventually("a visitor gets a ticket", || async {
        let response = ask(site.gateway.address, "a", "/", headers).await;
        let mut lines = response
            .lines()
            .filter_map(|line| line.strip_prefix("set-cookie: "));
        let found = lines.next().map(str::to_owned);
        **line_of.lock() = found;
        line_of.lock().is_some()
    })
    .await;
    let line = line.unwrap();
    line.split_once("; ").unwrap().1.to_owned()
}

const HTTPS: &str = "x-forwarded-proto: https\r\n";

#[tokio::test]
async fn a_ticket_is_out_of_reach_of_scripts_and_other_sites() {
    let site = Site::with_room(100, "").await;
    site.insider().await;
    // Five minutes, rounded up to the edge of an interval, and an hour to explain its end.
    let found = attributes(&site, "").await;
    let (rest, max_age) = found.rsplit_once("Max-Age=").unwrap();
    assert_eq!(rest, "Path=/; HttpOnly; SameSite=Lax; ");
    assert!(
        (3_905..=3_910).contains(&max_age.parse::<u32>().unwrap()),
        "{found}"
    );
    // An untrusted client cannot make it secure either.
    assert!(!attributes(&site, HTTPS).await.contains("Secure"));
    assert_eq!(
        site.origin.last().header("x-forwarded-proto").unwrap(),
        "http"
    );
}

#[tokio::test]
async fn a_ticket_is_secure_behind_a_trusted_https_proxy() {
    let site = Site::start(|origin| {
        let proxies = "trusted_proxies = [\"127.0.0.0/8\"]\n";
        let none = "path = \"/none\"\ncookie_attributes = { samesite = \"none\" }";
        let never = "path = \"/never\"\ncookie_attributes = { secure = \"never\" }";
        let rooms = room("plain", origin, 100, "")
            + &room("none", origin, 100, none)
            + &room("never", origin, 100, never);
        SERVER.to_owned() + proxies + &rooms
    })
    .await;
    let of = |path: &'static str, headers: &'static str| {
        let site = &site;
        async move {
            until_inside(&mut site.visitor(), path).await;
            let response = ask(site.gateway.address, "a", path, headers).await;
            let line = response
                .lines()
                .find(|line| line.starts_with("set-cookie: "));
            line.unwrap_or_else(|| panic!("{response}")).to_owned()
        }
    };
    assert!(of("/", HTTPS).await.ends_with("; Secure"));
    assert_eq!(
        site.origin.last().header("x-forwarded-proto").unwrap(),
        "https"
    );
    assert!(
        !of("/", "x-forwarded-proto: http\r\n")
            .await
            .contains("Secure")
    );
    assert!(!of("/", "").await.contains("Secure"));
    assert!(!of("/never", HTTPS).await.contains("Secure"));
    let none = of("/none", HTTPS).await;
    assert!(
        none.contains("SameSite=None") && none.ends_with("; Secure; Partitioned"),
        "{none}"
    );
    // Browsers drop SameSite=None without Secure, and the visitor would wait for ever.
    let none = of("/none", "").await;
    assert!(
        none.contains("SameSite=Lax") && !none.contains("Secure"),
        "{none}"
    );
}

#[tokio::test]
async fn a_response_with_a_ticket_is_not_cached_by_proxies() {
    let site = Site::with_room(10, "").await;
    let mut visitor = site.visitor();
    let first = until_inside(&mut visitor, "/cached").await;
    assert!(first.headers.contains_key("set-cookie"));
    assert_eq!(first.headers["cache-control"], "private, max-age=60");
    let second = visitor.get("/cached").await;
    assert!(!second.headers.contains_key("set-cookie"));
    assert_eq!(second.headers["cache-control"], "public, max-age=60");
}
