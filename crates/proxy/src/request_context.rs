//! What the parts of the gateway tell each other about one request.
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

/// What is known of a request beside its head and body; an extension of every request.
#[derive(Clone)]
pub struct RequestContext {
    /// Who sent it.
    pub client: Client,
    /// The connection it came by; `None` where another program accepts connections.
    pub connection: Option<Claim>,
    /// Keeps that connection counted once it has left HTTP; only for requests that ask to leave.
    pub(crate) hold: Option<ConnectionHold>,
    /// Whether a rate limit rejects it unless it waits in a room. A visitor who is not inside
    /// waits then, even where there is capacity.
    pub is_over_limit: bool,
    /// Where it goes; a waiting room says so.
    pub upstream: Option<Upstream>,
}

impl RequestContext {
    /// Context of a request that this client sent, of which nothing else is known.
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

/// Where a request is to go; see [`RequestContext`].
#[derive(Clone, Debug)]
pub struct Upstream {
    /// The room's origins.
    pub group: Arc<Group<Body>>,
    /// In which language a visitor is told that they did not answer.
    pub speech: VisitorLanguage,
}

impl Upstream {
    /// To these origins; English for visitors whose browsers do not say otherwise.
    #[must_use]
    pub fn new(group: Arc<Group<Body>>) -> Self {
        let speech = VisitorLanguage::default();
        Self { group, speech }
    }
}

/// What is known of a visitor's language besides what the browser says.
#[derive(Clone, Copy, Debug, Default)]
pub struct VisitorLanguage {
    /// What the visitor chose on a waiting page; it counts before the browser's wishes.
    pub chosen: Option<Language>,
    /// For browsers that like none of ours.
    pub default: Language,
}

/// An extension of the response to a request over its limit that could not be made to wait.
///
/// No room covers the request, or the room would have let it pass. It did not reach the origin.
/// Only the rate limit knows what to respond; cookies that this response sets are kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CannotWait;

/// A visitor who shows a good ticket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KnownVisitor {
    /// Its number, as in its ticket.
    pub id: [u8; 16],
    /// Whether it is inside, and does not only wait.
    pub is_inside: bool,
}
