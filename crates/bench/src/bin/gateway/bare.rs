//! Baseline peer: hyper as a proxy, or with a constant page, and nothing else.
//!
//! It uses the same libraries, versions and build settings as the gateway, so the difference is the
//! gateway's own work. Its runtime has one thread, like the gateway's connections.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;

use crate::certificate::server_config;

/// Options of the peer.
#[derive(Args)]
pub(crate) struct Options {
    /// Address to listen at.
    #[arg(long)]
    listen: SocketAddr,
    /// Address of the origin.
    #[arg(long)]
    origin: Authority,
    /// Size of the page at the path `/page`.
    #[arg(long)]
    page_bytes: usize,
    /// Size of the page at the path `/own`.
    #[arg(long)]
    own_bytes: usize,
    /// Certificate for TLS, with HTTP/2 or HTTP/1.1 as the client chooses.
    #[arg(long, requires = "key")]
    certificate: Option<PathBuf>,
    /// Key of the certificate.
    #[arg(long)]
    key: Option<PathBuf>,
}

type PeerResponse = Response<Either<Incoming, Full<Bytes>>>;

/// Serves until the process ends.
pub(crate) fn run(options: Options) -> anyhow::Result<()> {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().build()?.block_on(serve(options))
}

async fn serve(options: Options) -> anyhow::Result<()> {
    let listener = TcpListener::bind(options.listen).await?;
    let acceptor = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => {
            let config = server_config(certificate, key).context("preparing TLS")?;
            Some(TlsAcceptor::from(Arc::new(config)))
        }
        _ => None,
    };
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    let pages = [options.page_bytes, options.own_bytes].map(|bytes| Bytes::from("x".repeat(bytes)));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (client, origin, pages) = (client.clone(), options.origin.clone(), pages.clone());
        let acceptor = acceptor.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let page = match request.uri().path() {
                "/page" => Some(pages[0].clone()),
                "/own" => Some(pages[1].clone()),
                _ => None,
            };
            let (client, origin) = (client.clone(), origin.clone());
            async move {
                Ok::<_, Infallible>(match page {
                    Some(page) => page_response(page),
                    None => forward(&client, origin, request).await,
                })
            }
        });
        // The end of a connection does not matter here.
        tokio::spawn(async move {
            let http1 = http1::Builder::new();
            let Some(acceptor) = acceptor else {
                let _ = http1.serve_connection(TokioIo::new(stream), service).await;
                return;
            };
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let stream = TokioIo::new(stream);
            if is_http2 {
                let http2 = http2::Builder::new(TokioExecutor::new());
                let _ = http2.serve_connection(stream, service).await;
            } else {
                let _ = http1.serve_connection(stream, service).await;
            }
        });
    }
}

fn page_response(page: Bytes) -> PeerResponse {
    let mut response = Response::new(Either::Right(Full::new(page)));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn forward(
    client: &Client<HttpConnector, Incoming>,
    origin: Authority,
    mut request: Request<Incoming>,
) -> PeerResponse {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(origin);
    let Ok(uri) = Uri::from_parts(parts) else {
        return bad_gateway();
    };
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_11;
    match client.request(request).await {
        Ok(response) => response.map(Either::Left),
        Err(_) => bad_gateway(),
    }
}

fn bad_gateway() -> PeerResponse {
    let mut response = Response::new(Either::Right(Full::default()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn pages_are_served_and_other_requests_forwarded() {
        let port = crate::process::free_port().unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        let options = |listen, origin: String, page_bytes| Options {
            listen,
            origin: origin.parse().unwrap(),
            page_bytes,
            own_bytes: 2,
            certificate: None,
            key: None,
        };
        let origin_port = crate::process::free_port().unwrap();
        let origin_address = SocketAddr::from(([127, 0, 0, 1], origin_port));
        // Its origin is another bare peer without an origin.
        tokio::spawn(serve(options(listen, origin_address.to_string(), 6)));
        tokio::spawn(serve(options(origin_address, "127.0.0.1:1".to_owned(), 9)));
        let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let get = async |path: &str| {
            let uri: Uri = format!("http://{listen}{path}").parse().unwrap();
            loop {
                if let Ok(response) = client.get(uri.clone()).await {
                    let status = response.status();
                    return (
                        status,
                        response.into_body().collect().await.unwrap().to_bytes(),
                    );
                }
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(get("/page").await, (StatusCode::OK, Bytes::from("xxxxxx")));
        assert_eq!(get("/own").await, (StatusCode::OK, Bytes::from("xx")));
        assert_eq!(get("/other").await.0, StatusCode::BAD_GATEWAY);
    }
}
