//! Axum server behind a rate limit and a waiting room: `cargo run --example axum`.

use std::net::SocketAddr;

use anteroom_tower::{Config, Layers};
use axum::{Router, routing::get};

pub(crate) const CONFIG: &str = r#"
[server]
data_dir = "example-data"
[[room]]
name = "sale"
path = "/sale"
origin = "http://127.0.0.1:3000"
total_active_users = 200
new_users_per_minute = 200
[[limit]]
name = "api"
limit = "60/min"
routes = [{ path = "/api" }]
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layers = Layers::open(&Config::parse("example", CONFIG)?.config).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let app = app(&layers).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await?;
    layers.close().await;
    Ok(())
}

pub(crate) fn app(layers: &Layers) -> Router {
    Router::new()
        .route("/sale", get(async || "Welcome to the sale!"))
        .route("/api", get(async || "One of sixty in a minute."))
        .layer(layers.waiting_rooms())
        .layer(layers.rate_limits())
        .layer(layers.clients())
}
