//! Requests of the load generator, prepared before they are sent.

use std::fmt::Write as _;
use std::net::SocketAddr;

use bytes::Bytes;
use clap::ValueEnum;
use http::Request;
use http_body_util::Empty;

use crate::certificate::HOST;

/// Headers besides the cookie.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Headers {
    /// Four headers, and the gateway's cookie alone.
    Lean,
    /// Headers of Chrome, and the gateway's cookie between two of the site.
    Browser,
}

const LEAN: &[(&str, &str)] = &[
    ("User-Agent", "anteroom-bench"),
    ("Accept", "text/html"),
    ("Sec-Fetch-Mode", "navigate"),
];

/// Headers that Chrome 130 sends when a visitor follows a link on the same site.
const BROWSER: &[(&str, &str)] = &[
    (
        "sec-ch-ua",
        r#""Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99""#,
    ),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Windows\""),
    ("Upgrade-Insecure-Requests", "1"),
    (
        "User-Agent",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/130.0.0.0 Safari/537.36",
    ),
    (
        "Accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,\
         */*;q=0.8,application/signed-exchange;v=b3;q=0.7",
    ),
    ("Sec-Fetch-Site", "same-origin"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-User", "?1"),
    ("Sec-Fetch-Dest", "document"),
    ("Referer", "https://shop.example.com/tickets/summer"),
    ("Accept-Encoding", "gzip, deflate, br, zstd"),
    ("Accept-Language", "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7"),
];
const COOKIE_BEFORE: &str = "_ga=GA1.1.1183904217.1730112233";
const COOKIE_AFTER: &str = "session=7f3a2c9d5e8b41f0a6c2d9e4b7f10835";

impl Headers {
    /// Returns the name that the generator's option has.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Lean => "lean",
            Self::Browser => "browser",
        }
    }

    fn list(self, cookie: &str) -> Vec<(&'static str, String)> {
        let (list, cookies) = match self {
            Self::Lean => (LEAN, cookie.to_owned()),
            Self::Browser if cookie.is_empty() => {
                (BROWSER, format!("{COOKIE_BEFORE}; {COOKIE_AFTER}"))
            }
            Self::Browser => (
                BROWSER,
                format!("{COOKIE_BEFORE}; {cookie}; {COOKIE_AFTER}"),
            ),
        };
        let mut headers: Vec<_> = list
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        if !cookies.is_empty() {
            headers.push(("Cookie", cookies));
        }
        headers
    }
}

/// GET request, for both versions of HTTP.
#[derive(Clone)]
pub(crate) struct Prepared {
    /// HTTP/1.1, as it is sent.
    pub(crate) bytes: Bytes,
    /// HTTP/2.
    pub(crate) message: Request<Empty<Bytes>>,
}

impl Prepared {
    /// Prepares a request. An empty cookie is none.
    pub(crate) fn new(
        address: SocketAddr,
        path: &str,
        headers: Headers,
        cookie: &str,
    ) -> anyhow::Result<Self> {
        let mut text = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n");
        if headers == Headers::Browser {
            text.push_str("Connection: keep-alive\r\n");
        }
        let mut message = Request::get(format!("https://{HOST}:{}{path}", address.port()));
        for (name, value) in headers.list(cookie) {
            write!(text, "{name}: {value}\r\n")?;
            message = message.header(name, value);
        }
        text.push_str("\r\n");
        Ok(Self {
            bytes: text.into(),
            message: message.body(Empty::new())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(headers: Headers, cookie: &str) -> String {
        let address = "127.0.0.1:80".parse().unwrap();
        let bytes = Prepared::new(address, "/a", headers, cookie).unwrap().bytes;
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn a_lean_request_has_four_headers_and_the_cookie() {
        assert_eq!(
            prepared(Headers::Lean, "t=1"),
            "GET /a HTTP/1.1\r\nHost: 127.0.0.1:80\r\nUser-Agent: anteroom-bench\r\n\
             Accept: text/html\r\nSec-Fetch-Mode: navigate\r\nCookie: t=1\r\n\r\n"
        );
        assert!(!prepared(Headers::Lean, "").contains("Cookie"));
    }

    #[test]
    fn a_browser_sends_the_cookie_between_those_of_the_site() {
        let text = prepared(Headers::Browser, "t=1");
        assert!(text.contains("0112233; t=1; session="), "{text}");
        // The line of the request, the cookie, and the two ends.
        assert_eq!(text.split("\r\n").count() - 4, 15);
        assert!(prepared(Headers::Browser, "").contains("0112233; session="));
    }
}
