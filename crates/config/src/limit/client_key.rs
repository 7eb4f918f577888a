//! Reader of a limit's `key`: the parts by which requests are counted together.

use toml::de::DeValue;

use crate::kind::{Choice, InvalidValue, Kind, Whole, nearest};
use crate::model::{ClientKey, KeyPart, WithoutKey};
use crate::notes::Located;
use crate::problem::Finding;
use crate::reader::{Key, Table};

/// Most parts of a key. Two are usual; each is looked up for every request.
const PARTS_MAX: usize = 4;
/// Greatest number of a path segment that can be a part; no path of a site has as many.
const SEGMENT_MAX: usize = 100;
/// Longest name of a header, a cookie or a claim that can be a part.
const NAME_BYTES_MAX: usize = 128;

pub(super) const KEY: Key<PartKind> = Key {
    name: "key",
    kind: PartKind,
    default: Some("\"client_address\""),
};

// Longer prefixes than 64 let one home connection be billions of clients; shorter ones than 32
// are whole providers.
const IPV6_PREFIX: Key<Whole<u8>> = Key {
    name: "ipv6_prefix",
    kind: Whole {
        min: 32,
        max: 128,
        note: "",
    },
    default: Some("64"),
};
const WITHOUT_KEY: Key<Choice<WithoutKey>> = Key {
    name: "without_key",
    kind: Choice(&[
        ("client_address", WithoutKey::ClientAddress),
        ("skip", WithoutKey::Skip),
        ("reject", WithoutKey::Reject),
    ]),
    default: Some("\"client_address\""),
};
/// Value for one part, or for no part.
pub(super) struct PartKind;

impl Kind for PartKind {
    /// `None` = all clients share one count.
    type Value = Option<KeyPart>;

    fn allowed(&self) -> String {
        "\"client_address\", \"everybody\", \"header:NAME\", \"cookie:NAME\", \"path_segment:N\", \
         \"jwt_claim:NAME\" or \"ticket\""
            .to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<Option<KeyPart>, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        let (word, name) = match text.split_once(':') {
            Some((word, name)) => (word.to_ascii_lowercase(), Some(name)),
            None => (text.to_ascii_lowercase(), None),
        };
        match (word.as_str(), name) {
            ("everybody", None) => Ok(None),
            ("client_address", None) => Ok(Some(KeyPart::ClientAddress)),
            ("ticket", None) => Ok(Some(KeyPart::Ticket)),
            ("header", Some(name)) if is_token(name) => {
                Ok(Some(KeyPart::Header(name.to_ascii_lowercase())))
            }
            ("cookie", Some(name)) if is_token(name) => Ok(Some(KeyPart::Cookie(name.to_owned()))),
            ("jwt_claim", Some(name)) if is_claim(name) => {
                Ok(Some(KeyPart::JwtClaim(name.to_owned())))
            }
            ("jwt_claim", _) => Err(InvalidValue::hint(
                "the name of a claim follows the colon, such as \"jwt_claim:sub\"",
            )),
            ("path_segment", Some(number)) => segment(number).map(Some),
            ("header" | "cookie", _) => Err(InvalidValue::hint(format!(
                "the name of a {word} follows the colon: letters, digits and -, without spaces"
            ))),
            ("path_segment", None) => Err(InvalidValue::hint("such as \"path_segment:1\"")),
            _ => Err(unknown(&word)),
        }
    }
}

fn unknown(word: &str) -> InvalidValue {
    let words = [
        "client_address",
        "everybody",
        "header:",
        "cookie:",
        "path_segment:",
        "jwt_claim:",
        "ticket",
    ];
    nearest(word, words.into_iter()).map_or(InvalidValue::PLAIN, |word| {
        InvalidValue::hint(format!("did you mean {word}?"))
    })
}

/// Whether `name` can be the name of a header or cookie (RFC 9110, section 5.6.2; RFC 6265, section
/// 4.1.1).
pub(crate) fn is_token(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Whether `name` can be the name of a claim. Almost any text can; some issuers use URLs.
fn is_claim(name: &str) -> bool {
    let is_plain = name.trim() == name && !name.chars().any(char::is_control);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && is_plain
}

fn segment(number: &str) -> Result<KeyPart, InvalidValue> {
    let is_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<usize> = number.parse().ok().filter(|_| is_digits);
    let number = number.filter(|number| (1..=SEGMENT_MAX).contains(number));
    number.map(KeyPart::PathSegment).ok_or_else(|| {
        InvalidValue::hint(format!(
            "segments are counted from 1 to {SEGMENT_MAX}: of /shop/7 the first is shop"
        ))
    })
}

/// Reads the key and the settings that belong to it; `None` if a part has a mistake.
pub(super) fn read(table: &mut Table<'_>) -> Option<ClientKey> {
    let mistakes = table.notes.count();
    let parts = read_parts(table);
    let is_right = table.notes.count() == mistakes;
    let key = ClientKey {
        parts,
        ipv6_prefix: table.defaulted(&IPV6_PREFIX),
        without: table.defaulted(&WITHOUT_KEY),
    };
    is_right.then_some(key)
}

fn read_parts(table: &mut Table<'_>) -> Vec<KeyPart> {
    let Some(typed) = table.one_or_list(&KEY) else {
        return vec![KeyPart::ClientAddress];
    };
    let report = |table: &mut Table<'_>, finding: Finding, allowed: String| {
        let location = table.location(KEY.name);
        table.notes.report(&location, finding, allowed, None);
    };
    let count = typed.len();
    if !(1..=PARTS_MAX).contains(&count) {
        let found = Finding::Value(format!("{count} parts"));
        report(table, found, format!("1 to {PARTS_MAX} parts"));
    }
    let mut parts = Vec::with_capacity(count);
    for Located { value, location } in typed {
        match value {
            Some(part) if parts.contains(&part) => {
                let finding = Finding::Remark("the same part a second time".to_owned());
                table.notes.report(&location, finding, "", None);
            }
            Some(part) => parts.push(part),
            None if count > 1 => {
                let finding = Finding::Value("\"everybody\" next to other parts".to_owned());
                let allowed = "\"everybody\" alone";
                table.notes.report(&location, finding, allowed, None);
            }
            None => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<KeyPart>, InvalidValue> {
        PartKind.read(&DeValue::String(text.into()))
    }

    #[test]
    fn a_part_is_read_with_its_name_or_number() {
        let check = |text: &str, part: Option<KeyPart>| assert_eq!(read(text), Ok(part), "{text}");
        check("everybody", None);
        check("client_address", Some(KeyPart::ClientAddress));
        check("Ticket", Some(KeyPart::Ticket));
        let header = |name: &str| Some(KeyPart::Header(name.to_owned()));
        check("header:X-API-Key", header("x-api-key"));
        check("cookie:sId", Some(KeyPart::Cookie("sId".to_owned())));
        check("path_segment:1", Some(KeyPart::PathSegment(1)));
        check("path_segment:100", Some(KeyPart::PathSegment(100)));
        let claim = |name: &str| Some(KeyPart::JwtClaim(name.to_owned()));
        check("jwt_claim:sub", claim("sub"));
        let url = "https://example.com/Tenant";
        check(&format!("JWT_claim:{url}"), claim(url));
    }

    #[test]
    fn an_invalid_part_is_rejected() {
        for text in [
            "",
            ":",
            "everybody:x",
            "ticket:",
            "header",
            "header:",
            "header:a b",
            "header:é",
            "header:a:b",
            "cookie:a=b",
            "cookie:a;",
            "path_segment",
            "path_segment:",
            "path_segment:0",
            "path_segment:101",
            "path_segment:+1",
            "path_segment:-1",
            "jwt_claim",
            "jwt_claim:",
            "jwt_claim: sub",
            "jwt_claim:a\nb",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let long = format!("header:{}", "a".repeat(NAME_BYTES_MAX + 1));
        assert!(read(&long).is_err());
    }
}
