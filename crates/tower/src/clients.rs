//! Layer that finds out the client of a request. It belongs outside the other layers of a server
//! whose sockets are not ours.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use anteroom_config::ServerConfig;
use anteroom_proxy::body::ResponseBody;
use anteroom_proxy::error_page;
use anteroom_proxy::forwarded::{Scheme, TrustedProxies};
use anteroom_proxy::intake::Intake;
use anteroom_proxy::request_context::RequestContext;
use anteroom_proxy::status::RequestError;
use futures_util::future::Either;
use http::{Request, Response};

/// Layer that hands the client of a request to the layers behind it. It rejects requests that are
/// ambiguous or too large.
///
/// The peer of a request comes from axum's `into_make_service_with_connect_info::<SocketAddr>()` or
/// from an extension of type [`SocketAddr`]. Without either every request is rejected, because no
/// client could be counted for it.
#[derive(Clone, Debug)]
pub struct ClientLayer {
    intake: Arc<Intake>,
    scheme: Scheme,
}

impl ClientLayer {
    pub(crate) fn new(server: &ServerConfig) -> Self {
        let trusted = TrustedProxies::of(server);
        let intake = Intake::new(&server.size_limits, trusted);
        Self {
            intake: Arc::new(intake),
            scheme: Scheme::Http,
        }
    }

    /// Assumes that TLS ends in this process. Behind a trusted proxy that ends it, the headers of
    /// that proxy decide.
    #[must_use]
    pub fn over_tls(mut self) -> Self {
        self.scheme = Scheme::Https;
        self
    }
}

impl<S> tower::Layer<S> for ClientLayer {
    type Service = KnownClientService<S>;

    fn layer(&self, inner: S) -> KnownClientService<S> {
        let layer = self.clone();
        KnownClientService { layer, inner }
    }
}

/// Service that passes on only requests whose client is known.
#[derive(Clone, Debug)]
pub struct KnownClientService<S> {
    layer: ClientLayer,
    inner: S,
}

impl<S, B, R> tower::Service<Request<B>> for KnownClientService<S>
where
    S: tower::Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: ResponseBody,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<R>, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let checked = match peer_of(&head.extensions) {
            Some(peer) => {
                let ClientLayer { intake, scheme } = &self.layer;
                intake.check(&mut head, peer, *scheme)
            }
            None => {
                tracing::error!(
                    "a request came without its peer: serve with \
                     into_make_service_with_connect_info"
                );
                Err(RequestError::BadRequest)
            }
        };
        match checked {
            Ok(client) => {
                head.extensions.insert(RequestContext::new(client));
                Either::Left(self.inner.call(Request::from_parts(head, body)))
            }
            Err(refusal) => {
                let response = error_page::error_response(&head.headers, refusal);
                Either::Right(ready(Ok(response.map(R::from_own))))
            }
        }
    }
}

fn peer_of(extensions: &http::Extensions) -> Option<SocketAddr> {
    #[cfg(feature = "axum")]
    if let Some(peer) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>() {
        return Some(peer.0);
    }
    extensions.get::<SocketAddr>().copied()
}
