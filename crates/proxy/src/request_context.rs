//! Context of a request that the parts of the gateway share.
//!
//! One extension of a request, [`RequestContext`]: [`intake`](crate::intake) makes it, rate limits
//! and waiting rooms read and change it, the [`reverse_proxy`](crate::reverse_proxy) takes it out.
//! It is one extension because each costs an allocation and a look-up.
//!
//! Rate limits and waiting rooms do not know each other. Both know these types.

use std::sync::Arc;

use anteroom_config::language::Language;
use http::Request;

use crate::body::Body;
use crate::downstream::connection_table::Claim;
use crate::downstream::hold::ConnectionHold;
use crate::forwarded::Client;
use crate::upstream::Group;

/// Context of a request, beside its head and body; an extension of every request.
#[derive(Clone)]
pub struct RequestContext {
    /// Client of the request.
    pub client: Client,
    /// Connection of the request; `None` where another program accepts connections.
    pub connection: Option<Claim>,
    /// Hold that keeps the connection counted after an upgrade; only for requests that ask for one.
    pub(crate) hold: Option<ConnectionHold>,
    /// Whether a rate limit rejects the request unless it waits in a room. A visitor who is not
    /// active waits then, even if there is capacity.
    pub is_over_limit: bool,
    /// Destination of the request, from the waiting room.
    pub upstream: Option<Upstream>,
}

impl RequestContext {
    /// Creates the context of a request of this client, without other data.
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self {
            client,
            connection: None,
            hold: None,
            is_over_limit: false,
            upstream: None,
        }
    }

    /// Reads the context of a request.
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Option<&Self> {
        request.extensions().get()
    }

    /// Changes the context of a request.
    #[must_use]
    pub fn of_mut<B>(request: &mut Request<B>) -> Option<&mut Self> {
        request.extensions_mut().get_mut()
    }
}

/// Destination of a request; see [`RequestContext`].
#[derive(Clone, Debug)]
pub struct Upstream {
    /// Origins of the room.
    pub group: Arc<Group<Body>>,
    /// Language of error pages for the visitor.
    pub language: VisitorLanguage,
}

impl Upstream {
    /// Creates a destination; visitors whose browsers state no language get English.
    #[must_use]
    pub fn new(group: Arc<Group<Body>>) -> Self {
        let language = VisitorLanguage::default();
        Self { group, language }
    }
}

/// Language of a visitor, beside the browser's setting.
#[derive(Clone, Copy, Debug, Default)]
pub struct VisitorLanguage {
    /// Choice of the visitor on a waiting page; it wins over the browser's setting.
    pub chosen: Option<Language>,
    /// Language for browsers without a supported one.
    pub default: Language,
}

/// Extension of the response to a request over its limit that could not wait in a room.
///
/// No room covers the request, or the room would have let it pass. It did not reach the origin.
/// Only the rate limit knows the right response; cookies of this response are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CannotQueue;

/// Visitor with a valid ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KnownVisitor {
    /// Visitor's number, as in the ticket.
    pub id: [u8; 16],
    /// Whether the visitor is active, and not waiting.
    pub is_active: bool,
}
