//! Issuer of tokens.

use anteroom_limit_http::jwt::{Algorithm, Expected, KeySet, Verifier};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256,
    RSA_PSS_SHA384, RSA_PSS_SHA512, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// 2030-03-17T17:46:40Z.
pub(crate) const NOW: u64 = 1_900_000_000;

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Private key of an issuer.
pub(crate) enum Issuer {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Issuer {
    pub(crate) fn rsa() -> Self {
        Self::Rsa(Box::new(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()))
    }

    pub(crate) fn p256() -> Self {
        Self::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub(crate) fn p384() -> Self {
        Self::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap())
    }

    pub(crate) fn ed25519() -> Self {
        Self::Ed25519(Ed25519KeyPair::generate().unwrap())
    }

    /// Creates one issuer for each kind of key.
    pub(crate) fn all() -> [Self; 4] {
        [Self::rsa(), Self::p256(), Self::p384(), Self::ed25519()]
    }

    /// Returns the algorithms of its key.
    pub(crate) fn algorithms(&self) -> &'static [Algorithm] {
        use Algorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
        match self {
            Self::Rsa(_) => &[Rs256, Rs384, Rs512, Ps256, Ps384, Ps512],
            Self::P256(_) => &[Es256],
            Self::P384(_) => &[Es384],
            Self::Ed25519(_) => &[EdDsa],
        }
    }

    /// Returns the public key, as an issuer publishes it.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        let point = |bytes: &[u8], curve: &str| {
            let (x, y) = bytes[1..].split_at((bytes.len() - 1) / 2);
            let (x, y) = (base64(x), base64(y));
            json!({ "kty": "EC", "crv": curve, "x": x, "y": y, "kid": id, "use": "sig" })
        };
        match self {
            Self::Rsa(pair) => {
                let (modulus, exponent) = rsa_numbers(pair.public_key().as_ref());
                let (n, e) = (base64(modulus), base64(exponent));
                json!({ "kty": "RSA", "n": n, "e": e, "kid": id, "use": "sig" })
            }
            Self::P256(pair) => point(pair.public_key().as_ref(), "P-256"),
            Self::P384(pair) => point(pair.public_key().as_ref(), "P-384"),
            Self::Ed25519(pair) => {
                let x = base64(pair.public_key());
                json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": id, "use": "sig" })
            }
        }
    }

    fn sign(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let encoding: &'static dyn aws_lc_rs::signature::RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Self::P256(pair) | Self::P384(pair) => {
                pair.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// Signs a token with this header and these claims.
    pub(crate) fn token_of(&self, header: &Value, claims: &Value) -> String {
        let signed = format!(
            "{}.{}",
            base64(header.to_string()),
            base64(claims.to_string())
        );
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let signature = self.sign(algorithm, signed.as_bytes());
        format!("{signed}.{}", base64(signature))
    }

    /// Signs a token with the key `id` by its first algorithm.
    pub(crate) fn token(&self, id: &str, claims: &Value) -> String {
        let algorithm = self.algorithms()[0].name();
        let header = json!({ "alg": algorithm, "typ": "JWT", "kid": id });
        self.token_of(&header, claims)
    }
}

/// Returns the modulus and the exponent of an RSAPublicKey: a sequence of two integers, in DER.
fn rsa_numbers(der: &[u8]) -> (Vec<u8>, Vec<u8>) {
    /// Returns the content of the first element, and the bytes after it.
    fn element(der: &[u8]) -> (&[u8], &[u8]) {
        let (start, length) = match usize::from(der[1]) {
            0x82 => (4, usize::from(der[2]) * 256 + usize::from(der[3])),
            0x81 => (3, usize::from(der[2])),
            short => (2, short),
        };
        der[start..].split_at(length)
    }
    let (sequence, _) = element(der);
    let (modulus, rest) = element(sequence);
    let (exponent, _) = element(rest);
    // A leading zero marks the number as positive.
    let plain = |number: &[u8]| number[usize::from(number[0] == 0)..].to_vec();
    (plain(modulus), plain(exponent))
}

pub(crate) fn key_set(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

/// Creates a verifier that extracts `sub` and a few other claims, with half a minute of leeway.
pub(crate) fn verifier(keys: &[Value]) -> Verifier {
    expecting(keys, None, None)
}

pub(crate) fn expecting(keys: &[Value], issuer: Option<&str>, audience: Option<&str>) -> Verifier {
    let expected = Expected {
        issuer: issuer.map(str::to_owned),
        audience: audience.map(str::to_owned),
        leeway_seconds: 30,
    };
    let names = ["sub", "tenant", "more"].map(str::to_owned);
    Verifier::new(key_set(keys), expected, names.to_vec())
}

/// Returns claims of a client that are valid for a while.
pub(crate) fn claims(sub: &str) -> Value {
    json!({ "sub": sub, "exp": NOW + 600 })
}

/// Returns the subject of a token.
pub(crate) fn sub(
    verifier: &Verifier,
    token: &str,
) -> Result<String, anteroom_limit_http::jwt::Rejection> {
    let proof = verifier.verify(token.as_bytes(), NOW)?;
    Ok(verifier.claim(&proof, "sub").unwrap_or_default().to_owned())
}
