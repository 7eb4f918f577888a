//! Configurations of the peers and the origin.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::Course;
use crate::certificate::Certificate;

/// Size of the origin's response.
const ORIGIN_BYTES: usize = 1_024;
/// Size of the template of a page of six KiB.
const TEMPLATE_BYTES: usize = 6_144;
/// Longest token in an nginx configuration, with some margin.
const NGINX_TOKEN_BYTES: usize = 3_000;
/// Connections of nginx and haproxy: ten thousand that are idle, and some hundred to the origin.
/// Both reserve memory for each of them at the start.
const CONNECTIONS_MAX: usize = 12_288;
/// Connections of the gateway, which makes room from 70 % on and reserves no memory.
const GATEWAY_CONNECTIONS_MAX: usize = 40_000;

/// Courses whose response is a page of the proxy.
const PAGES: [Course; 2] = [Course::Page, Course::OwnPage];

/// Returns the configuration of nginx as the origin.
pub(super) fn origin(address: SocketAddr) -> String {
    let body = "o".repeat(ORIGIN_BYTES);
    let server = format!("listen {address}; location / {{ return 200 \"{body}\"; }}");
    nginx_text("origin", true, "", &server)
}

/// Returns the configuration of nginx as a proxy.
pub(super) fn nginx(
    address: SocketAddr,
    origin: SocketAddr,
    bytes: [usize; 2],
    certificate: Option<&Certificate>,
    has_master: bool,
) -> String {
    let http = format!(
        "upstream origin {{ server {origin}; keepalive 128; keepalive_requests 100000000; }}"
    );
    let listen = match certificate {
        None => format!("listen {address};"),
        Some(files) => format!(
            "listen {address} ssl http2; ssl_certificate {}; ssl_certificate_key {};",
            files.certificate.display(),
            files.key.display()
        ),
    };
    let mut server = listen
        + "location / { proxy_pass http://origin; proxy_http_version 1.1; \
           proxy_set_header Connection \"\"; proxy_set_header Host $host; }\n";
    for (course, bytes) in PAGES.into_iter().zip(bytes) {
        let name = course.path().trim_start_matches('/');
        let mut whole = String::new();
        for (index, start) in (0..bytes).step_by(NGINX_TOKEN_BYTES).enumerate() {
            let part = "x".repeat(NGINX_TOKEN_BYTES.min(bytes - start));
            server.push_str(&format!("set ${name}{index} \"{part}\";\n"));
            whole.push_str(&format!("${{{name}{index}}}"));
        }
        server.push_str(&format!(
            "location {} {{ add_header Cache-Control no-store; return 200 \"{whole}\"; }}\n",
            course.path()
        ));
    }
    nginx_text("nginx", has_master, &http, &server)
}

fn nginx_text(name: &str, has_master: bool, http: &str, server: &str) -> String {
    let processes = match has_master {
        true => "worker_processes 1;",
        false => "master_process off;",
    };
    format!(
        "daemon off; {processes} pid {name}.pid; error_log stderr error;\n\
         events {{ worker_connections {CONNECTIONS_MAX}; }}\n\
         http {{ access_log off; default_type text/html; keepalive_requests 100000000;\n\
         {http}\n\
         server {{ {server} }} }}\n"
    )
}

/// Returns the configuration of haproxy, with files as pages.
pub(super) fn haproxy(
    address: SocketAddr,
    origin: SocketAddr,
    files: &[PathBuf; 2],
    certificate: Option<&Certificate>,
) -> String {
    let mut pages = String::new();
    for (course, file) in PAGES.into_iter().zip(files) {
        pages.push_str(&format!(
            "  http-request return status 200 content-type text/html hdr cache-control \
             no-store file {} if {{ path {} }}\n",
            file.display(),
            course.path()
        ));
    }
    let tls = certificate.map_or_else(String::new, |files| {
        format!(" ssl crt {} alpn h2,http/1.1", files.both.display())
    });
    format!(
        "global\n  nbthread 1\n  maxconn {CONNECTIONS_MAX}\n  no strict-limits\n  \
         tune.bufsize 32768\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server \
         60s\n  http-reuse always\n\
         frontend front\n  bind {address}{tls}\n{pages}  default_backend origin\n\
         backend origin\n  server origin {origin} pool-max-conn -1\n"
    )
}

/// Returns the configuration of a gateway with its folder's name.
pub(super) fn gateway(
    (address, admin): (SocketAddr, SocketAddr),
    (data, fast_path): (&str, bool),
    origin: SocketAddr,
    certificate: Option<&Certificate>,
) -> String {
    let tls = certificate.map_or_else(String::new, |files| {
        format!(
            "tls_certificate = {:?}\ntls_key = {:?}\n",
            files.certificate, files.key
        )
    });
    let mut text = format!(
        "[server]\nlisten = \"{address}\"\nadmin = \"{admin}\"\ndata_dir = \"data-{data}\"\n\
         fast_path = {fast_path}\n{tls}\
         [server.size_limits]\nconnections = {GATEWAY_CONNECTIONS_MAX}\n\
         connections_per_address = 0\nrequests_per_connection = 0\n"
    );
    let rooms = [
        ("main", Course::Through, String::new()),
        (
            "page",
            Course::Page,
            format!("queue_all = true\ncustom_page_html = '{}'\n", template()),
        ),
        ("own", Course::OwnPage, "queue_all = true\n".to_owned()),
    ];
    for (name, course, settings) in rooms {
        write!(
            text,
            "[[room]]\nname = \"{name}\"\npath = \"{}\"\norigin = \"http://{origin}\"\n\
             total_active_users = 100000\nnew_users_per_minute = 100000\n\
             session_duration = \"1h\"\n\
             bypass = []\n{settings}",
            course.path()
        )
        .expect("writing to a String does not fail");
    }
    text
}

/// Returns a template like an operator's page: mostly text and styles, with some values per
/// visitor.
fn template() -> String {
    let head = "<!doctype html><html lang=\"{{language}}\"><title>{{heading}}</title><style>";
    let body = "</style><h1>{{heading}}</h1><p>{{reasonText}}</p><p>{{waitTime}}</p></html>";
    let styles = "p{margin:1em}".repeat((TEMPLATE_BYTES - head.len() - body.len()) / 13);
    format!("{head}{styles}{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_has_the_stated_length() {
        assert!((TEMPLATE_BYTES - 20..=TEMPLATE_BYTES).contains(&template().len()));
    }

    #[test]
    fn the_page_of_nginx_has_the_stated_length() {
        let address = "127.0.0.1:1".parse().unwrap();
        let text = nginx(address, address, [NGINX_TOKEN_BYTES + 1, 2], None, true);
        let parts = text.matches("x\";").count();
        assert_eq!(parts, 3, "{text}");
        assert!(text.contains("return 200 \"${page0}${page1}\""));
    }
}
