//! Made-up bytes cause no panic and prove nothing.

use std::sync::LazyLock;

use anteroom_limit_http::jwt::{KeySet, Verifier};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::tokens::issuer::{Issuer, NOW, base64, claims, verifier};

static VERIFIER: LazyLock<(Verifier, String)> = LazyLock::new(|| {
    let issuer = Issuer::p256();
    let token = issuer.token("a", &claims("me"));
    (verifier(&[issuer.jwk("a")]), token)
});

/// Generates any JSON.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[A-Za-z0-9_-]{0,44}".prop_map(Value::from),
        prop_oneof![
            Just("RSA"),
            Just("EC"),
            Just("OKP"),
            Just("P-256"),
            Just("Ed25519"),
            Just("ES256")
        ]
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop::collection::vec(inner, 0..3).prop_map(Value::from)
    })
}

fn any_members() -> impl Strategy<Value = Value> {
    let names = prop_oneof![
        Just("kty"),
        Just("crv"),
        Just("alg"),
        Just("kid"),
        Just("use"),
        Just("key_ops"),
        Just("n"),
        Just("e"),
        Just("x"),
        Just("y"),
        Just("crit"),
    ];
    prop::collection::btree_map(names, any_json(), 0..8).prop_map(|members| json!(members))
}

/// Returns the token with every last character of its signature of 64 bytes that decodes to the
/// same bytes: four of its six bits are spare.
fn spellings(token: &str) -> Vec<Vec<u8>> {
    let last = token.as_bytes()[token.len() - 1];
    let of = |at: usize| base64([0, 0, u8::try_from(at).unwrap()]).as_bytes()[3];
    let alphabet: Vec<u8> = (0..64).map(of).collect();
    let position = alphabet.iter().position(|byte| *byte == last).unwrap();
    let same = &alphabet[position / 16 * 16..][..16];
    same.iter()
        .map(|byte| [&token.as_bytes()[..token.len() - 1], &[*byte]].concat())
        .collect()
}

#[test]
fn every_spelling_of_the_same_signature_proves_the_same() {
    let (verifier, token) = &*VERIFIER;
    let spellings = spellings(token);
    assert_eq!(spellings.len(), 16);
    for spelling in spellings {
        for padding in ["", "=", "=="] {
            let sent = [&spelling, padding.as_bytes()].concat();
            assert!(verifier.verify(&sent, NOW).is_ok(), "{sent:?}");
        }
    }
    for more in ["===", "A", "=A"] {
        assert!(
            verifier
                .verify(format!("{token}{more}").as_bytes(), NOW)
                .is_err()
        );
    }
    // The signed parts have one spelling: the issuer's.
    for (at, _) in token.match_indices('.') {
        let mut sent = token.clone();
        sent.insert(at, '=');
        assert!(verifier.verify(sent.as_bytes(), NOW).is_err(), "{sent}");
    }
}

proptest! {
    #[test]
    fn any_bytes_prove_nothing(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(VERIFIER.0.verify(&bytes, NOW).is_err());
        prop_assert!(KeySet::parse(&bytes).is_err());
    }

    #[test]
    fn any_parts_prove_nothing(
        header in any_members(),
        payload in any_members(),
        signature in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let token = format!(
            "{}.{}.{}",
            base64(header.to_string()), base64(payload.to_string()), base64(signature)
        );
        prop_assert!(VERIFIER.0.verify(token.as_bytes(), NOW).is_err());
    }

    /// Exception: another spelling of the same signature, which decodes to the same bytes.
    #[test]
    fn any_change_of_a_valid_token_proves_nothing(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), is_more in any::<bool>(),
    ) {
        let (verifier, token) = &*VERIFIER;
        let mut bytes = token.clone().into_bytes();
        let at = at.index(bytes.len());
        if is_more {
            bytes.insert(at, byte);
        } else {
            bytes[at] = byte;
        }
        let is_same = bytes == token.as_bytes() || spellings(token).contains(&bytes);
        prop_assert_eq!(verifier.verify(&bytes, NOW).is_ok(), is_same);
    }

    #[test]
    fn any_keys_parse_or_give_errors_of_one_line(
        keys in prop::collection::vec(any_members(), 0..4),
    ) {
        if let Err(mistakes) = KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()) {
            prop_assert!(!mistakes.is_empty());
            for mistake in mistakes {
                prop_assert!(!mistake.to_string().contains('\n'));
            }
        }
    }
}
