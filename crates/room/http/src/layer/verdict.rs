//! Verdicts about requests, for the access log and metrics.

/// Verdict about a request.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Verdict {
    /// The request is malformed, has an unknown host, or opens an event stream without waiting.
    #[default]
    Reject,
    /// The host and path have no room.
    NoRoom,
    /// The room is switched off.
    Suspended,
    /// A bypass rule let it pass.
    Bypass,
    /// The visitor is admitted with this request.
    Admit,
    /// The visitor is active already.
    Pass,
    /// The visitor has to wait.
    Queue,
    /// A poll without a ticket, in a room that would admit a new visitor.
    Poll,
    /// A waiting visitor opened an event stream.
    Stream,
    /// The visitor chose a language.
    Language,
    /// The visitor left the queue, or saw the page after that.
    Leave,
    /// The visitor's browser keeps no cookies, and got a page about it.
    Cookies,
    /// The client left before there was a verdict.
    Gone,
}

impl Verdict {
    pub(super) const ALL: [Self; 13] = [
        Self::Reject,
        Self::NoRoom,
        Self::Suspended,
        Self::Bypass,
        Self::Admit,
        Self::Pass,
        Self::Queue,
        Self::Poll,
        Self::Stream,
        Self::Language,
        Self::Leave,
        Self::Cookies,
        Self::Gone,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::NoRoom => "no_room",
            Self::Suspended => "suspended",
            Self::Bypass => "bypass",
            Self::Admit => "admit",
            Self::Pass => "pass",
            Self::Queue => "queue",
            Self::Poll => "poll",
            Self::Stream => "stream",
            Self::Language => "language",
            Self::Leave => "leave",
            Self::Cookies => "cookies",
            Self::Gone => "gone",
        }
    }
}
