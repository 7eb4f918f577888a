//! What was decided about a request, for the access log and metrics.

/// What was decided about a request.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Verdict {
    /// Neither malformed requests nor unknown hosts get further than this, nor do those who would
    /// listen and have nothing to listen for.
    #[default]
    Refuse,
    /// No room covers it.
    NoRoom,
    /// Its room is switched off.
    Suspended,
    /// A bypass rule let it pass.
    Bypass,
    /// Let in just now.
    Admit,
    /// Inside already.
    Pass,
    /// Told to wait.
    Queue,
    /// Only looked where it would stand, and would be let in.
    Look,
    /// Listens for its turn.
    Listen,
    /// Chose a language.
    Language,
}

impl Verdict {
    pub(super) const ALL: [Self; 10] = [
        Self::Refuse,
        Self::NoRoom,
        Self::Suspended,
        Self::Bypass,
        Self::Admit,
        Self::Pass,
        Self::Queue,
        Self::Look,
        Self::Listen,
        Self::Language,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "reject",
            Self::NoRoom => "no_room",
            Self::Suspended => "suspended",
            Self::Bypass => "bypass",
            Self::Admit => "admit",
            Self::Pass => "pass",
            Self::Queue => "queue",
            Self::Look => "poll",
            Self::Listen => "stream",
            Self::Language => "language",
        }
    }
}
