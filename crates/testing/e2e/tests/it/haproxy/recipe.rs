//! Files of the page with addresses of a test.

use std::net::SocketAddr;
use std::path::Path;

use anteroom_e2e::deploy::files;

/// First lines of the files.
pub(crate) const SLIDING: &str = "# haproxy.cfg: one HAProxy, a sliding minute.";
pub(crate) const CLOCK: &str = "# haproxy.cfg: one HAProxy, minutes of the clock.";
pub(crate) const PAIR: &str =
    "# haproxy.cfg: two HAProxies, a sliding minute. Started with -L a and -L b.";

/// Limit of all files, in requests per minute.
pub(crate) const LIMIT: usize = 100;

/// File of the page.
#[derive(Clone, Debug)]
pub(crate) struct Recipe(String);

impl Recipe {
    /// Returns the file that begins with this line.
    pub(crate) fn of(first: &str) -> Self {
        Self(block(first))
    }

    /// Replaces a text that occurs once in the file.
    pub(crate) fn with(self, from: &str, to: &str) -> Self {
        let Self(text) = self;
        assert_eq!(text.matches(from).count(), 1, "{from:?} in\n{text}");
        Self(text.replace(from, to))
    }

    /// Returns the file for a HAProxy that listens here, in this folder, before this origin.
    pub(crate) fn text(self, listen: SocketAddr, origin: SocketAddr, folder: &Path) -> String {
        let socket = folder.join("admin.sock").display().to_string();
        let Self(text) = self
            // HAProxy does not start without two file descriptors per connection; a container may
            // have few.
            .with("maxconn 10000", "maxconn 100")
            .with(":::80 v4v6", &listen.to_string())
            .with("/run/haproxy/admin.sock", &socket)
            .with(
                "server anteroom 127.0.0.1:8080",
                &format!("server anteroom {origin}"),
            );
        text
    }
}

/// Returns the block of the page that begins with this line.
pub(crate) fn block(first: &str) -> String {
    files::block("docs/how-to/haproxy-limits.md", first)
}
