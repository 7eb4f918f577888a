//! Clients with signed tokens, from the config file to the response.

use std::convert::Infallible;
use std::net::SocketAddr;

use anteroom_config::{Config, TokenSource};
use anteroom_limit::time::TimestampUs;
use anteroom_proxy::body::Body;
use anteroom_proxy::forwarded::{Client, Scheme, TrustedProxies};
use anteroom_proxy::request_context::RequestContext;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use serde_json::{Value, json};
use tower::{Layer as _, ServiceExt as _};

use super::*;
use crate::layer::RateLimitLayer;
use crate::limiter::{Limiter, LimiterContext};

const NOW: u64 = 1_900_000_000;

struct FixedClock;

impl LimiterContext for FixedClock {
    fn now(&self) -> TimestampUs {
        TimestampUs(NOW * 1_000_000)
    }

    fn wall_seconds(&self) -> u64 {
        NOW
    }
}

struct Issuer(Ed25519KeyPair);

impl Issuer {
    fn new() -> Self {
        Self(Ed25519KeyPair::generate().unwrap())
    }

    fn keys(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key());
        json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x }] }).to_string()
    }

    fn token(&self, claims: &Value) -> String {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&json!({ "alg": "EdDSA" })), encode(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.0.sign(signed.as_bytes()));
        format!("{signed}.{signature}")
    }

    fn token_of(&self, sub: &str) -> String {
        self.token(&json!({ "sub": sub, "exp": NOW + 60 }))
    }
}

/// Returns a limiter with these limits, and these settings of `[jwt]` beside the keys of the
/// issuer.
fn limiter(issuer: &Issuer, jwt: &str, limits: &str) -> Arc<Limiter> {
    let text = format!(
        "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\ntotal_active_users = 1\n\
         new_users_per_minute = 1\nbypass = []\n{limits}[jwt]\nkeys_file = \"keys.json\"\n{jwt}"
    );
    let mut config = Config::parse("test.toml", &text).unwrap().config;
    let jwt = config.jwt.as_mut().unwrap();
    assert!(matches!(Tokens::new(jwt, &[]), Err(TokensError::NotRead)));
    jwt.keys = JwtKeys::Text(issuer.keys().into_bytes());
    let tokens = Tokens::new(jwt, &config.limits).unwrap();
    let limiter = Limiter::new(&[], crate::CountStores::default(), FixedClock).unwrap();
    let plan = limiter.prepare(&config.limits).unwrap();
    limiter.commit(plan.with_tokens(Some(tokens)));
    limiter
}

const BY_SUB: &str = "[[limit]]\nname = \"api\"\nlimit = \"2/h\"\nkey = \"jwt_claim:sub\"\n";

/// Returns the status of a request with these headers.
async fn send(limiter: &Arc<Limiter>, address: &str, headers: &[(&str, &str)]) -> StatusCode {
    let mut request = Request::new(Bytes::new());
    for (name, value) in headers {
        let name: HeaderName = name.parse().unwrap();
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let peer = SocketAddr::new(address.parse().unwrap(), 4711);
    let host = HeaderValue::from_static("shop.example");
    let trusted = TrustedProxies::new([]);
    let client = Client::of(peer, Scheme::Http, host, request.headers(), &trusted);
    request.extensions_mut().insert(RequestContext::new(client));
    let site = tower::service_fn(|_: Request<Bytes>| {
        std::future::ready(Ok::<_, Infallible>(Response::new(Body::full("hello"))))
    });
    let limited = RateLimitLayer::new(Arc::clone(limiter)).layer(site);
    limited.oneshot(request).await.unwrap().status()
}

/// Sends three requests and returns how many were allowed.
async fn allowed(limiter: &Arc<Limiter>, address: &str, headers: &[(&str, &str)]) -> usize {
    let mut allowed = 0;
    for _ in 0..3 {
        allowed += usize::from(send(limiter, address, headers).await == StatusCode::OK);
    }
    allowed
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test]
async fn a_token_identifies_its_client_from_any_address() {
    let issuer = Issuer::new();
    let limiter = limiter(&issuer, "", BY_SUB);
    let me = bearer(&issuer.token_of("me"));
    assert_eq!(
        allowed(&limiter, "192.0.2.1", &[("authorization", &me)]).await,
        2
    );
    let second = bearer(&issuer.token(&json!({ "sub": "me", "exp": NOW + 9, "jti": 2 })));
    let sent = [("Authorization", &*second)];
    assert_eq!(
        allowed(&limiter, "192.0.2.2", &sent).await,
        0,
        "another token of the same client"
    );
    let you = format!("bEARER  {}", issuer.token_of("you"));
    assert_eq!(
        allowed(&limiter, "192.0.2.1", &[("authorization", &you)]).await,
        2
    );
    let client = anteroom_config::Client(vec!["me".to_owned()]);
    assert_eq!(
        limiter
            .standing("api", &client)
            .await
            .unwrap()
            .unwrap()
            .remaining,
        0
    );
}

/// The token is not verified: otherwise the status would be 400.
#[tokio::test]
async fn a_limit_without_tokens_rejects_before_the_token_is_verified() {
    let issuer = Issuer::new();
    let check = async |limit: &str, cost: &str, expected: StatusCode| {
        let limits = format!(
            "[[limit]]\nname = \"near\"\nkey = \"client_address\"\nlimit = \"4/h\"\n{limit}\n\
             {cost}\n\
             {BY_SUB}without_key = \"reject\"\n"
        );
        let limiter = limiter(&issuer, "", &limits);
        let made_up = [("authorization", "Bearer made.up.token")];
        assert_eq!(
            send(&limiter, "192.0.2.1", &made_up).await,
            StatusCode::BAD_REQUEST
        );
        // It was counted for no client.
        for name in ["you", "me"] {
            let token = bearer(&issuer.token_of(name));
            let sent = [("authorization", &*token)];
            assert_eq!(send(&limiter, "192.0.2.1", &sent).await, StatusCode::OK);
        }
        assert_eq!(send(&limiter, "192.0.2.1", &made_up).await, expected);
        assert_eq!(
            send(&limiter, "192.0.2.2", &made_up).await,
            StatusCode::BAD_REQUEST
        );
        // A valid token is counted no more either.
        let token = bearer(&issuer.token_of("me"));
        let sent = [("authorization", &*token)];
        let before = allowed(&limiter, "192.0.2.1", &sent).await;
        let client = anteroom_config::Client(vec!["me".to_owned()]);
        let standing = limiter.standing("api", &client).await.unwrap().unwrap();
        assert_eq!(standing.remaining as usize, 1 - before);
    };
    let over = StatusCode::TOO_MANY_REQUESTS;
    let bad = StatusCode::BAD_REQUEST;
    check("", "cost = 2", over).await;
    check("", "", bad).await;
    // One request is left, and each costs two.
    check(
        "overrides = [{ key = \"192.0.2.1\", limit = \"5/h\" }]",
        "cost = 2",
        over,
    )
    .await;
    check("shadow = true", "cost = 2", bad).await;
    check("on_limit = \"wait\"", "cost = 2", bad).await;
}

#[tokio::test]
async fn a_valid_token_counts_in_every_spelling_an_origin_takes() {
    let issuer = Issuer::new();
    let limiter = limiter(&issuer, "", &format!("{BY_SUB}without_key = \"skip\"\n"));
    let me = issuer.token_of("me");
    // The last character has four spare bits.
    let (start, last) = me.split_at(me.len() - 1);
    let other = match last {
        "A" | "Q" | "g" | "w" => char::from(last.as_bytes()[0] + 1),
        _ => unreachable!("spare bits are zero"),
    };
    let spellings = [
        bearer(&me),
        format!("{}==", bearer(&me)),
        bearer(&format!("{start}{other}")),
        format!("Bearer\t{me}"),
        format!("bearer \t {me}"),
    ];
    let mut allowed_count = 0;
    for sent in &spellings {
        allowed_count += allowed(&limiter, "192.0.2.1", &[("authorization", sent)]).await;
    }
    assert_eq!(allowed_count, 2, "all of them are one client");
    // Without a separator, it is no token.
    let joined = format!("Bearer{me}");
    assert_eq!(
        allowed(&limiter, "192.0.2.1", &[("authorization", &joined)]).await,
        3
    );
}

#[tokio::test]
async fn an_invalid_token_counts_as_none() {
    let issuer = Issuer::new();
    let limiter = limiter(&issuer, "issuer = \"me\"\n", BY_SUB);
    let good = |iss: &str, exp: u64| issuer.token(&json!({ "sub": "x", "iss": iss, "exp": exp }));
    let forged = Issuer::new().token(&json!({ "sub": "x", "iss": "me", "exp": NOW + 9 }));
    let many = json!({ "sub": ["x"], "iss": "me", "exp": NOW + 9 });
    let tokens = [
        bearer(&good("you", NOW + 9)),
        bearer(&good("me", NOW - 31)),
        bearer(&forged),
        bearer(&issuer.token(&many)),
        good("me", NOW + 9),
        "Basic eDp5".to_owned(),
        bearer(""),
        bearer(&"x".repeat(9_000)),
    ];
    // All are counted by address, like requests without a token.
    let mut allowed_count = 0;
    for token in &tokens {
        allowed_count += allowed(&limiter, "192.0.2.1", &[("authorization", token)]).await;
    }
    assert_eq!(allowed_count, 2);
    let good = bearer(&good("me", NOW + 9));
    assert_eq!(
        allowed(&limiter, "192.0.2.1", &[("authorization", &good)]).await,
        2
    );
}

#[tokio::test]
async fn a_request_without_a_token_passes_or_is_rejected_as_configured() {
    let issuer = Issuer::new();
    let skip = limiter(&issuer, "", &format!("{BY_SUB}without_key = \"skip\"\n"));
    assert_eq!(allowed(&skip, "192.0.2.1", &[]).await, 3);
    let reject = limiter(&issuer, "", &format!("{BY_SUB}without_key = \"reject\"\n"));
    assert_eq!(
        send(&reject, "192.0.2.1", &[]).await,
        StatusCode::BAD_REQUEST
    );
    let me = bearer(&issuer.token_of("me"));
    assert_eq!(
        allowed(&reject, "192.0.2.1", &[("authorization", &me)]).await,
        2
    );
}

#[tokio::test]
async fn several_tokens_are_several_clients_and_too_many_are_rejected() {
    let issuer = Issuer::new();
    let limiter = limiter(&issuer, "", BY_SUB);
    let tokens: Vec<String> = (0..5)
        .map(|number| bearer(&issuer.token_of(&format!("user-{number}"))))
        .collect();
    let all: Vec<_> = tokens
        .iter()
        .map(|token| ("authorization", &**token))
        .collect();
    assert_eq!(allowed(&limiter, "192.0.2.1", &all[..1]).await, 2);
    // A second token does not hide a client.
    assert_eq!(allowed(&limiter, "192.0.2.1", &all[..2]).await, 0);
    assert_eq!(allowed(&limiter, "192.0.2.1", &all[1..2]).await, 2);
    assert_eq!(
        send(&limiter, "192.0.2.1", &all).await,
        StatusCode::BAD_REQUEST
    );
}

#[tokio::test]
async fn a_token_may_be_in_a_cookie_or_its_own_header() {
    let issuer = Issuer::new();
    let me = issuer.token_of("me");
    let cookie = limiter(&issuer, "token = \"cookie:session\"\n", BY_SUB);
    let sent = format!("a=b; session={me}");
    assert_eq!(allowed(&cookie, "192.0.2.1", &[("cookie", &sent)]).await, 2);
    assert_eq!(allowed(&cookie, "192.0.2.2", &[("cookie", &sent)]).await, 0);
    let header = limiter(&issuer, "token = \"header:X-Token\"\n", BY_SUB);
    assert_eq!(allowed(&header, "192.0.2.1", &[("x-token", &me)]).await, 2);
    assert_eq!(
        allowed(&header, "192.0.2.2", &[("x_token", &bearer(&me))]).await,
        0
    );
}

#[tokio::test]
async fn limits_use_different_claims_of_one_token() {
    let issuer = Issuer::new();
    let limits = format!(
        "{BY_SUB}[[limit]]\nname = \"tenant\"\nlimit = \"3/h\"\n\
         key = [\"jwt_claim:https://id.example/tenant\", \"client_address\"]\n"
    );
    let limiter = limiter(&issuer, "", &limits);
    let of = |sub: &str| {
        let claims = json!({ "sub": sub, "https://id.example/tenant": 7, "exp": NOW + 9 });
        bearer(&issuer.token(&claims))
    };
    let (one, two) = (of("one"), of("two"));
    assert_eq!(
        allowed(&limiter, "192.0.2.1", &[("authorization", &one)]).await,
        2
    );
    assert_eq!(
        allowed(&limiter, "192.0.2.1", &[("authorization", &two)]).await,
        1,
        "the tenant's third"
    );
    let three = of("three");
    assert_eq!(
        allowed(&limiter, "192.0.2.2", &[("authorization", &three)]).await,
        2
    );
}

#[test]
fn tokens_are_verified_on_first_use_and_once() {
    let issuer = Issuer::new();
    let config = JwtConfig {
        keys: JwtKeys::Text(issuer.keys().into_bytes()),
        token: TokenSource::Header("authorization".to_owned()),
        issuer: None,
        audience: None,
        leeway: anteroom_room::time::DurationMs(0),
    };
    let tokens = Tokens::new(&config, &[]).unwrap();
    let mut headers = HeaderMap::new();
    let me = bearer(&issuer.token_of("me"));
    headers.insert("authorization", me.parse().unwrap());
    let shown = ShownTokens::of(Some(&tokens), (&headers).into(), NOW);
    assert!(shown.proofs.get().is_none(), "nothing has needed them");
    assert_eq!(
        shown.claim("sub"),
        Err(Unknown::Missing),
        "no limit uses it"
    );
    let first = shown.proofs.get().unwrap().as_ref().unwrap().as_ptr();
    assert_eq!(shown.claim("tenant"), Err(Unknown::Missing));
    assert_eq!(
        shown.proofs.get().unwrap().as_ref().unwrap().as_ptr(),
        first
    );
    assert!(!format!("{shown:?}").contains(&me[7..]));
}
