//! Check for origins that are this gateway itself. Each request would come back to it.
//!
//! Origins are compared with every address that the configuration listens on. A name is resolved
//! only if its port is one of ours. A name that is not resolved in time is not checked: the gateway
//! ends other loops with status 508.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;

use anteroom_config::{Config, OwnedOrigins, ServerConfig};

/// Longest time to resolve names. A resolver that is down must not delay a start for long.
const RESOLVE_WAIT: Duration = Duration::from_secs(2);

/// Returns the addresses on which this process listens, with their keys.
fn listeners(config: &Config) -> Vec<(&'static str, SocketAddr)> {
    let ServerConfig {
        listen,
        redirect_from,
        admin,
        ..
    } = &config.server;
    let mut listeners = vec![("server.listen", *listen), ("server.admin", *admin)];
    listeners.extend(redirect_from.map(|address| ("server.redirect_from", address)));
    if let Some(service) = &config.rate_limit_service {
        listeners.extend(
            service
                .grpc
                .map(|address| ("rate_limit_service.grpc", address)),
        );
        listeners.extend(
            service
                .http
                .map(|address| ("rate_limit_service.http", address)),
        );
    }
    listeners
}

/// Returns a line for each origin of a site or a room that is this gateway.
pub(super) fn mistakes(config: &Config) -> Vec<String> {
    let listeners = listeners(config);
    let mut lines = Vec::new();
    for OwnedOrigins { owner, group, .. } in config.origins() {
        for origin in &group.list {
            let Some((key, address)) = listener_behind(origin.authority(), &listeners) else {
                continue;
            };
            lines.push(format!(
                "{owner}: the origin {origin} is this gateway itself ({key} = \"{address}\"), \
                 so \
                 every request would come back: name the site behind it"
            ));
        }
    }
    lines
}

/// Returns the listener that accepts connections to `authority`, a host and a port.
fn listener_behind(
    authority: &str,
    listeners: &[(&'static str, SocketAddr)],
) -> Option<(&'static str, SocketAddr)> {
    let (_, port) = authority.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    let mut of_port = listeners
        .iter()
        .filter(|(_, address)| address.port() == port);
    of_port.clone().next()?;
    let targets = resolve(authority);
    let takes = |listener: &SocketAddr| targets.iter().any(|target| leads_to(*target, *listener));
    of_port.find(|(_, address)| takes(address)).copied()
}

/// Returns every address of a host and port; none if they are not resolved in time.
fn resolve(authority: &str) -> Vec<IpAddr> {
    let authority = authority.to_owned();
    let (sender, receiver) = mpsc::channel();
    // The resolver of the system has no timeout that can be set.
    std::thread::spawn(move || {
        let found = authority.to_socket_addrs().into_iter().flatten();
        let found: Vec<IpAddr> = found.map(|address| address.ip().to_canonical()).collect();
        // The receiver may have given up.
        let _ = sender.send(found);
    });
    receiver.recv_timeout(RESOLVE_WAIT).unwrap_or_default()
}

/// Whether a connection to an address, at the same port, ends at a listener.
fn leads_to(target: IpAddr, listener: SocketAddr) -> bool {
    let own = listener.ip().to_canonical();
    if !own.is_unspecified() {
        // A connection to "any address" reaches this machine.
        return target == own || (target.is_unspecified() && own.is_loopback());
    }
    // A socket on all IPv6 addresses accepts IPv4 connections too.
    let is_of_family = own.is_ipv6() || target.is_ipv4();
    is_of_family && is_local(target)
}

/// Whether an address is one of this machine. Nothing is sent: the kernel only chooses the source
/// address.
fn is_local(address: IpAddr) -> bool {
    if address.is_loopback() || address.is_unspecified() {
        return true;
    }
    let any: SocketAddr = if address.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0; 16], 0).into()
    };
    // Port 9 is the discard port; connecting a datagram socket sends nothing.
    let from = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes_of(server: &str, origin: &str) -> Vec<String> {
        let text = format!(
            "[server]\n{server}\n[[room]]\nname = \"shop\"\norigin = \"{origin}\"\n\
             total_active_users = 1\nnew_users_per_minute = 1\nbypass = []\n"
        );
        mistakes(&Config::parse("anteroom.toml", &text).unwrap().config)
    }

    #[track_caller]
    fn check(server: &str, origin: &str, expected: Option<&str>) {
        let lines = mistakes_of(server, origin);
        let is_reported = |key: &str| lines.len() == 1 && lines[0].contains(key);
        let is_right = expected.map_or(lines.is_empty(), is_reported);
        assert!(is_right, "{server} {origin}: {lines:?}");
    }

    #[test]
    fn an_origin_that_is_one_of_our_own_addresses_is_a_mistake() {
        let listen = "listen = \"127.0.0.1:8080\"";
        check(listen, "http://127.0.0.1:8080", Some("server.listen"));
        check(listen, "http://localhost:8080", Some("server.listen"));
        check(
            listen,
            "http://[::ffff:127.0.0.1]:8080",
            Some("server.listen"),
        );
        check(listen, "http://127.0.0.1:8081", Some("server.admin"));
        check(listen, "http://127.0.0.1:9000", None);
        check(listen, "http://127.0.0.2:8080", None);
        check(listen, "http://192.0.2.1:8080", None);
    }

    #[test]
    fn a_listener_on_all_addresses_matches_each_local_address() {
        for listen in ["listen = \"0.0.0.0:80\"", "listen = \"[::]:80\""] {
            check(listen, "http://127.0.0.1", Some("server.listen"));
            check(listen, "http://127.9.9.9:80", Some("server.listen"));
            check(listen, "http://192.0.2.1", None);
        }
        check(
            "listen = \"[::]:80\"",
            "http://[::1]",
            Some("server.listen"),
        );
        check("listen = \"0.0.0.0:80\"", "http://[::1]", None);
    }

    #[test]
    fn unknown_names_and_other_ports_are_not_checked() {
        check("listen = \"0.0.0.0:80\"", "http://nowhere.invalid", None);
        check("listen = \"0.0.0.0:8080\"", "http://localhost", None);
    }
}
