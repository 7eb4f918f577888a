//! What does a token cost that is verified, and one that is known?
#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on fails")]

use anteroom_jwt::{Expected, KeySet, Verifier};
use divan::{Bencher, black_box};
use serde_json::json;

#[path = "../tests/tokens/issuer.rs"]
#[expect(dead_code, reason = "tests use all of it")]
mod issuer;

use issuer::{Issuer, NOW, claims};

fn main() {
    divan::main();
}

fn issuers() -> [(&'static str, fn() -> Issuer); 4] {
    [
        ("RS256", Issuer::rsa),
        ("ES256", Issuer::p256),
        ("ES384", Issuer::p384),
        ("EdDSA", Issuer::ed25519),
    ]
}

fn verifier_and_tokens(at: usize, count: u32) -> (Verifier, Vec<String>) {
    let issuer = issuers()[at].1();
    let keys = json!({ "keys": [issuer.jwk("a")] }).to_string();
    let keys = KeySet::parse(keys.as_bytes()).unwrap();
    let verifier = Verifier::new(keys, Expected::default(), vec!["sub".to_owned()]);
    let tokens = (0..count).map(|number| issuer.token("a", &claims(&format!("user-{number:08}"))));
    (verifier, tokens.collect())
}

/// Twenty thousand clients in turn: nobody is known any more when his turn comes again.
#[divan::bench(args = [0, 1, 2, 3])]
fn verified(bencher: Bencher<'_, '_>, at: usize) {
    let (verifier, tokens) = verifier_and_tokens(at, 20_000);
    let mut next = tokens.iter().cycle();
    bencher.bench_local(|| {
        let token = next.next().unwrap();
        black_box(verifier.verify(token.as_bytes(), NOW)).unwrap()
    });
}

#[divan::bench(args = [0, 1, 2, 3])]
fn known(bencher: Bencher<'_, '_>, at: usize) {
    let (verifier, tokens) = verifier_and_tokens(at, 100);
    let mut next = tokens.iter().cycle();
    bencher.bench_local(|| {
        let token = next.next().unwrap();
        black_box(verifier.verify(token.as_bytes(), NOW)).unwrap()
    });
}
