//! Error of opening the layers of a configuration.

use anteroom_embedded::DataDirError;
use anteroom_gossip::SecretFileError;
use anteroom_limit_http::{PlanError, TokensError};
use anteroom_limit_store::leases::NoRandomnessError;
use anteroom_node::StartError;
use anteroom_room_http::layer::RouteTableError;
use anteroom_store::{JoinError, StoreError};
use anteroom_valkey::SetupError;

/// Error of [`Layers::open`](crate::Layers::open).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The data folder cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// A store's address cannot be used.
    #[error("store.{name}")]
    Setup {
        /// Key of the store in `[store]`.
        name: &'static str,
        /// Underlying error.
        source: SetupError,
    },
    /// A store rejects a command that the node needs.
    #[error("store.{name} cannot be used")]
    Store {
        /// Key of the store in `[store]`.
        name: &'static str,
        /// Underlying error.
        source: StoreError,
    },
    /// This node could not join the others.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The ledgers know neither this node nor an earlier one on the same data folder.
    #[error(
        "no store has replied for half a minute, and this data folder has no leases of an \
         earlier process; check [store] and start the node again"
    )]
    NotJoined,
    /// The system has no random numbers for leases.
    #[error(transparent)]
    Leases(#[from] NoRandomnessError),
    /// The Kafka client cannot be set up as configured.
    #[cfg(feature = "kafka")]
    #[error("[kafka]")]
    Kafka(#[from] anteroom_kafka::KafkaSetupError),
    /// Kafka was not built in.
    #[error(
        "[kafka]: this program was built without Kafka; build it with the cargo feature \"kafka\""
    )]
    NoKafka,
    /// The secret that nodes share cannot be read.
    #[error(transparent)]
    GossipSecret(#[from] SecretFileError),
    /// This node cannot listen for the counts of other nodes.
    #[error("gossip.listen")]
    Gossip(#[from] anteroom_gossip::OpenError),
    /// The rooms cannot run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A room cannot be served as configured.
    #[error(transparent)]
    Rooms(#[from] RouteTableError),
    /// The rooms of a changed configuration cannot be served.
    #[error("cannot serve the rooms")]
    Reload(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A limit cannot be enforced as configured.
    #[error(transparent)]
    Limits(#[from] PlanError),
    /// The keys of signed tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// A reload would mix ticket keys of the file with those of the data folder.
    #[error(
        "server.ticket_keys: keys in the file and keys in the data folder do not mix; restart to \
         change from one to the other"
    )]
    TicketKeys,
}

impl OpenError {
    /// Returns a conversion of the setup error of `store.{name}`.
    pub(crate) fn setup(name: &'static str) -> impl FnOnce(SetupError) -> Self {
        move |source| Self::Setup { name, source }
    }
}
