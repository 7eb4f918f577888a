//! The listeners for visitors, with the services behind them.

use std::net::SocketAddr;
use std::sync::Arc;

use anteroom_config::ServerConfig;
use anteroom_limit_http::RateLimitLayer;
use anteroom_node::NodeClock;
use anteroom_proxy::downstream::connection_table::ConnectionTable;
use anteroom_proxy::downstream::drain::DrainSignal;
use anteroom_proxy::downstream::redirect::ToHttps;
use anteroom_proxy::downstream::server::Server;
use anteroom_proxy::downstream::tls::Tls;
use anteroom_proxy::downstream::workers::Workers;
use anteroom_proxy::forwarded::TrustedProxies;
use anteroom_proxy::intake::{Checked, Intake};
use anteroom_proxy::reverse_proxy::ReverseProxy;
use anteroom_room_http::layer::WaitingRoomLayer;
use anteroom_tower::Decider;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::Layer as _;

use crate::other_stats::Connections;

/// Listeners for visitors, and what they need.
pub(crate) struct Listeners {
    pub(crate) visitors: TcpListener,
    /// Listener that redirects visitors to https.
    pub(crate) redirect: Option<TcpListener>,
    pub(crate) tls: Option<Tls>,
    pub(crate) rooms: WaitingRoomLayer,
    pub(crate) limits: RateLimitLayer,
    /// Decisions of rooms and limits on the fast path.
    pub(crate) at_once: Decider,
    pub(crate) connections: Arc<Connections>,
    pub(crate) table: ConnectionTable,
    pub(crate) clock: Arc<dyn NodeClock>,
    /// Threads that serve visitors.
    pub(crate) workers: Workers,
}

impl Listeners {
    /// Serves visitors until they are drained.
    pub(crate) fn serve(
        self,
        server: &ServerConfig,
        address: SocketAddr,
        draining: DrainSignal,
    ) -> JoinHandle<()> {
        let http = Server::new(
            &server.timeouts,
            &server.size_limits,
            self.table,
            self.connections,
        )
        .on(self.workers);
        let to_https = ToHttps {
            port: server.redirect_to_port.unwrap_or_else(|| address.port()),
        };
        let redirecting = self.redirect.map(|listener| {
            let plain = http.clone();
            plain.serve(listener, to_https, draining.clone())
        });
        let trusted = TrustedProxies::of(server);
        let intake = Intake::new(&server.size_limits, trusted);
        let rooms = self.rooms.layer(ReverseProxy::new(&server.timeouts));
        let limited = self.limits.layer(rooms);
        let decider = server.fast_path.then_some(self.at_once);
        let encrypted = http.with_tls(self.tls.clone());
        let serving = encrypted.serve(
            self.visitors,
            Checked::new(intake, limited, decider),
            draining,
        );
        let (tls, clock) = (self.tls, self.clock);
        tokio::spawn(async move {
            let all = async {
                let redirecting = async {
                    if let Some(redirecting) = redirecting {
                        redirecting.await;
                    }
                };
                tokio::join!(serving, redirecting)
            };
            tokio::select! {
                _ = all => {}
                () = watch_end(tls, clock) => {}
            }
        })
    }
}

/// Warns before the certificate expires, if there is one; runs for ever.
async fn watch_end(tls: Option<Tls>, clock: Arc<dyn NodeClock>) {
    let Some(tls) = tls else {
        return std::future::pending().await;
    };
    let now = || i64::try_from(clock.wall().0 / 1_000).unwrap_or(i64::MAX);
    tls.watch_end(now).await;
}
