//! Cost of verifying a token, and of one that is cached.
#![expect(
    clippy::unwrap_used,
    reason = "a measurement that cannot continue fails"
)]

use anteroom_limit_http::jwt::{Expected, KeySet, Verifier};
use divan::{Bencher, black_box};
use serde_json::json;

#[path = "../../limit/http/tests/it/tokens/issuer.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod issuer;

use issuer::{Issuer, NOW, claims};

fn main() {
    divan::main();
}

fn issuer_of(algorithm: &str) -> Issuer {
    match algorithm {
        "RS256" => Issuer::rsa(),
        "ES256" => Issuer::p256(),
        "ES384" => Issuer::p384(),
        _ => Issuer::ed25519(),
    }
}

fn verifier_and_tokens(algorithm: &str, count: u32) -> (Verifier, Vec<String>) {
    let issuer = issuer_of(algorithm);
    let keys = json!({ "keys": [issuer.jwk("a")] }).to_string();
    let keys = KeySet::parse(keys.as_bytes()).unwrap();
    let verifier = Verifier::new(keys, Expected::default(), vec!["sub".to_owned()]);
    let tokens = (0..count).map(|number| issuer.token("a", &claims(&format!("user-{number:08}"))));
    (verifier, tokens.collect())
}

/// Twenty thousand clients in turn: no token is cached any more when it is used again.
#[divan::bench(args = ["RS256", "ES256", "ES384", "EdDSA"])]
fn verified(bencher: Bencher<'_, '_>, algorithm: &str) {
    let (verifier, tokens) = verifier_and_tokens(algorithm, 20_000);
    let mut next = tokens.iter().cycle();
    bencher.bench_local(|| {
        let token = next.next().unwrap();
        black_box(verifier.verify(token.as_bytes(), NOW)).unwrap()
    });
}

#[divan::bench(args = ["RS256", "ES256", "ES384", "EdDSA"])]
fn cached(bencher: Bencher<'_, '_>, algorithm: &str) {
    let (verifier, tokens) = verifier_and_tokens(algorithm, 100);
    for token in &tokens {
        verifier.verify(token.as_bytes(), NOW).unwrap();
    }
    let mut next = tokens.iter().cycle();
    bencher.bench_local(|| {
        let token = next.next().unwrap();
        black_box(verifier.verify(token.as_bytes(), NOW)).unwrap()
    });
}
