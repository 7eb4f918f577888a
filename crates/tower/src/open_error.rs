//! Why can the layers of a configuration not be opened?

use anteroom_embedded::DataDirError;
use anteroom_gossip::SecretFileError;
use anteroom_limit_http::{PlanError, TokensError};
use anteroom_limit_store::lending::NoRandomnessError;
use anteroom_node::StartError;
use anteroom_room_http::layer::RouteTableError;
use anteroom_store::{JoinError, StoreError};
use anteroom_valkey::SetupError;

/// Why nothing stands.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// A store's address cannot be used as it is.
    #[error("store.{name}")]
    Setup {
        /// Its key in `[store]`.
        name: &'static str,
        /// Why not.
        source: SetupError,
    },
    /// A store refuses what we need.
    #[error("store.{name} cannot be used")]
    Store {
        /// Its key in `[store]`.
        name: &'static str,
        /// Why not.
        source: StoreError,
    },
    /// This node could not join the others.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// No ledger knows of this node, or of one before it on the same data folder.
    #[error(
        "no store has answered in half a minute, and no earlier process on this data folder \
         vouches \
         for this node; check [store] and start it again"
    )]
    NotJoined,
    /// The system has no random numbers for leases.
    #[error(transparent)]
    Leases(#[from] NoRandomnessError),
    /// Kafka cannot be spoken to as configured.
    #[cfg(feature = "kafka")]
    #[error("[kafka]")]
    Kafka(#[from] anteroom_kafka::KafkaSetupError),
    /// Kafka was not built in.
    #[error(
        "[kafka]: this program was built without Kafka; build it with the cargo feature \"kafka\""
    )]
    NoKafka,
    /// The secret that nodes share cannot be had.
    #[error(transparent)]
    GossipSecret(#[from] SecretFileError),
    /// This node cannot hear what others have counted.
    #[error("gossip.listen")]
    Gossip(#[from] anteroom_gossip::OpenError),
    /// The rooms cannot run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A room cannot be served as configured.
    #[error(transparent)]
    Rooms(#[from] RouteTableError),
    /// A limit cannot be kept as configured.
    #[error(transparent)]
    Limits(#[from] PlanError),
    /// The keys of signed tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// Keys of tickets in the file and in the data folder do not mix.
    #[error(
        "server.ticket_keys: keys in the file and keys in the data folder do not mix; restart to \
         change from one to the other"
    )]
    TicketKeys,
}

impl OpenError {
    /// What it means that the address of `store.{name}` cannot be used.
    pub(crate) fn setup(name: &'static str) -> impl FnOnce(SetupError) -> Self {
        move |source| Self::Setup { name, source }
    }
}
