//! The peer that is the measure: hyper as a proxy, or answering a constant page, and nothing else.
//!
//! The same libraries and versions as the gateway's, built in the same way, so that what differs is
//! what the gateway does. On a runtime of one thread, as the gateway's connections are; the other
//! kind races too, to show that it is not the slower one that is the measure.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use clap::Args;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// What the peer does.
#[derive(Args)]
pub(crate) struct Options {
    /// Where it listens.
    #[arg(long)]
    listen: SocketAddr,
    /// Where its requests go.
    #[arg(long)]
    origin: Authority,
    /// It answers a page of so many bytes at the path `/page`,
    #[arg(long)]
    page_bytes: usize,
    /// and one of so many at `/own`.
    #[arg(long)]
    own_bytes: usize,
    /// It has tokio's runtime of several threads, where connections wander, and not one of a
    /// thread's own.
    #[arg(long)]
    wandering: bool,
}

type Answer = Response<Either<Incoming, Full<Bytes>>>;

/// Serves until the process ends.
pub(crate) fn run(options: Options) -> anyhow::Result<()> {
    let mut runtime = if options.wandering {
        Builder::new_multi_thread()
    } else {
        Builder::new_current_thread()
    };
    runtime.enable_all().build()?.block_on(serve(options))
}

async fn serve(options: Options) -> anyhow::Result<()> {
    let listener = TcpListener::bind(options.listen).await?;
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Incoming> = Client::builder(TokioExecutor::new()).build(connector);
    let pages = [options.page_bytes, options.own_bytes].map(|bytes| Bytes::from("x".repeat(bytes)));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (client, origin, pages) = (client.clone(), options.origin.clone(), pages.clone());
        let service = service_fn(move |request| {
            let page = match request.uri().path() {
                "/page" => Some(pages[0].clone()),
                "/own" => Some(pages[1].clone()),
                _ => None,
            };
            let (client, origin) = (client.clone(), origin.clone());
            async move {
                Ok::<_, Infallible>(match page {
                    Some(page) => own(page),
                    None => pass(&client, origin, request).await,
                })
            }
        });
        tokio::spawn(async move {
            // How a connection ends is its client's business.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn own(page: Bytes) -> Answer {
    let mut response = Response::new(Either::Right(Full::new(page)));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn pass(
    client: &Client<HttpConnector, Incoming>,
    origin: Authority,
    mut request: Request<Incoming>,
) -> Answer {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(origin);
    let Ok(uri) = Uri::from_parts(parts) else {
        return failed();
    };
    *request.uri_mut() = uri;
    match client.request(request).await {
        Ok(response) => response.map(Either::Left),
        Err(_) => failed(),
    }
}

fn failed() -> Answer {
    let mut response = Response::new(Either::Right(Full::default()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn it_answers_a_page_and_passes_on_the_rest() {
        let port = crate::process::free_port().unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        let options = |listen, origin: String, page_bytes| Options {
            listen,
            origin: origin.parse().unwrap(),
            page_bytes,
            own_bytes: 2,
            wandering: false,
        };
        let behind = SocketAddr::from(([127, 0, 0, 1], crate::process::free_port().unwrap()));
        // Its origin is one of its kind, which has nobody behind it.
        tokio::spawn(serve(options(listen, behind.to_string(), 6)));
        tokio::spawn(serve(options(behind, "127.0.0.1:1".to_owned(), 9)));
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
