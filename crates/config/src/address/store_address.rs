//! Which store does an address mean? `redis://` and its relatives, with credentials and without.
//!
//! Nothing is resolved or connected to. An error tells nothing of the text: it may hold a password
//! where nobody expects one, so what may be shown is decided by whoever has the text.

use crate::address::host::{HostError, HostPort, split_port};
use crate::address::password::PasswordError;
use crate::address::valkey::{Topology, ValkeyAddress, ValkeyTls};

/// Longest address, in bytes: a hundred servers with long names.
const ADDRESS_BYTES_MAX: usize = 8_192;
/// Longest name of a user, in bytes. Far more than anybody types.
const USERNAME_BYTES_MAX: usize = 256;
/// Longest name of a sentinel's service, in bytes.
const SERVICE_BYTES_MAX: usize = 128;
/// Greatest number of a database: servers keep how many there are in 32 bits with a sign.
const DATABASE_MAX: u32 = i32::MAX.unsigned_abs();
const SERVER_PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

/// What an address may begin with, before `://`; `valkey` may stand for `redis`.
pub const SCHEMES: [&str; 6] = [
    "redis",
    "rediss",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
];

/// Why a text is not the address of a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AddressError {
    /// It is longer than any address.
    #[error("address takes more than {ADDRESS_BYTES_MAX} bytes")]
    TooLong,
    /// It begins with nothing that we know.
    #[error("address does not begin with redis:// or one of its relatives")]
    Scheme,
    /// There is an `@` that ends no credentials.
    #[error("address has an @ in the wrong place")]
    UserInfo,
    /// The user name or the password has a percent sign that two hex digits do not follow, or is no
    /// UTF-8 when decoded.
    #[error("credentials have a broken percent escape")]
    Escape,
    /// The user name is none.
    #[error("user name is too long or has spaces in it")]
    Username,
    /// The password is none.
    #[error("password cannot be one")]
    Password(#[source] PasswordError),
    /// A server has no valid host.
    #[error("address has no valid host")]
    Host(#[source] HostError),
    /// A server's port is none.
    #[error("port is not a number from 1 to 65535")]
    Port,
    /// It names several servers where one is meant.
    #[error("address has several servers, without sentinels or a cluster")]
    SeveralServers,
    /// The database is none.
    #[error("database is not a number from 0 to {DATABASE_MAX}")]
    Database,
    /// A cluster has no databases.
    #[error("address has a database or path after the servers of a cluster")]
    DatabaseOfCluster,
    /// Sentinels are named, and no service, or one that cannot be.
    #[error("sentinels are not followed by the name of a service")]
    Service,
    /// It goes on with `?` or `#`.
    #[error("address has options after ? or #")]
    Options,
}

/// What the servers of an address are to each other.
#[derive(Clone, Copy)]
enum Layout {
    Single,
    Sentinel,
    Cluster,
}

impl ValkeyAddress {
    /// Reads an address:
    ///
    /// - `redis://[user[:password]@]host[:6379][/database]`,
    /// - `redis+sentinel://[user[:password]@]host[:26379],.../service[/database]`,
    /// - `redis+cluster://[user[:password]@]host[:6379],...`,
    ///
    /// each with `rediss` for TLS and with `valkey` for `redis`. IPv6 addresses stand in brackets;
    /// what a URL gives a meaning is percent-encoded in user and password. The certificates of the
    /// system are believed; `ca_file` stands elsewhere.
    ///
    /// # Errors
    ///
    /// [`AddressError`] for everything that is more or less than that.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Scheme)?;
        let (layout, is_tls) = read_scheme(scheme).ok_or(AddressError::Scheme)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (user_info, servers) = authority.rsplit_once('@').unwrap_or(("", authority));
        // A second one is part of a password, or of credentials at each server; and one behind a
        // slash says that the slash was part of a password.
        if user_info.contains('@') || tail.contains('@') {
            return Err(AddressError::UserInfo);
        }
        let (username, password) = read_credentials(user_info)?;
        let servers = read_servers(servers, layout)?;
        if tail.contains(['?', '#']) {
            return Err(AddressError::Options);
        }
        let path = tail.strip_prefix('/').unwrap_or_default();
        let (topology, database) = read_path(layout, servers, path)?;
        Ok(Self {
            topology,
            database,
            username,
            password,
            tls: is_tls.then(ValkeyTls::default),
        })
    }
}

/// What the servers are to each other, and whether to speak TLS.
fn read_scheme(text: &str) -> Option<(Layout, bool)> {
    let text = text.to_ascii_lowercase();
    let (engine, layout) = match text.split_once('+') {
        None => (text.as_str(), Layout::Single),
        Some((engine, "sentinel")) => (engine, Layout::Sentinel),
        Some((engine, "cluster")) => (engine, Layout::Cluster),
        Some(_) => return None,
    };
    match engine {
        "redis" | "valkey" => Some((layout, false)),
        "rediss" | "valkeys" => Some((layout, true)),
        _ => None,
    }
}

fn read_credentials(text: &str) -> Result<(Option<String>, Option<String>), AddressError> {
    let (username, password) = match text.split_once(':') {
        Some((username, password)) => (username, Some(password)),
        None => (text, None),
    };
    let username = decode(username)?;
    if !username.is_empty() && !is_username(&username) {
        return Err(AddressError::Username);
    }
    let password = password.map(decode).transpose()?;
    if let Some(password) = &password {
        PasswordError::check(password).map_err(AddressError::Password)?;
    }
    Ok((Some(username).filter(|name| !name.is_empty()), password))
}

/// Whether servers could know a user of this name.
#[must_use]
pub fn is_username(text: &str) -> bool {
    (1..=USERNAME_BYTES_MAX).contains(&text.len())
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Takes percent escapes back.
fn decode(text: &str) -> Result<String, AddressError> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let value = digit(bytes.next()).zip(digit(bytes.next()));
                let value = value.and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
                value.ok_or(AddressError::Escape)?
            }
            plain => plain,
        };
        decoded.push(byte);
    }
    String::from_utf8(decoded).map_err(|_| AddressError::Escape)
}

fn read_servers(text: &str, layout: Layout) -> Result<Vec<HostPort>, AddressError> {
    let default_port = match layout {
        Layout::Sentinel => SENTINEL_PORT,
        Layout::Single | Layout::Cluster => SERVER_PORT,
    };
    let read = |text| read_server(text, default_port);
    let servers = text.split(',').map(read).collect::<Result<Vec<_>, _>>()?;
    match layout {
        Layout::Single if servers.len() > 1 => Err(AddressError::SeveralServers),
        _ => Ok(servers),
    }
}

fn read_server(text: &str, default_port: u16) -> Result<HostPort, AddressError> {
    let (host, port) = split_port(text).map_err(|error| match error {
        HostError::Port => AddressError::Port,
        other => AddressError::Host(other),
    })?;
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    match port {
        Some(0) => Err(AddressError::Port),
        port => Ok(HostPort {
            host: bare.map(str::to_owned).unwrap_or(host),
            port: port.unwrap_or(default_port),
        }),
    }
}

/// What stands behind the servers, without the slash in front.
fn read_path(
    layout: Layout,
    mut servers: Vec<HostPort>,
    path: &str,
) -> Result<(Topology, u32), AddressError> {
    match layout {
        Layout::Single => {
            let database = read_database(path)?;
            let server = servers.pop().ok_or(AddressError::Host(HostError::Empty))?;
            Ok((Topology::Single(server), database))
        }
        Layout::Sentinel => {
            let (service, database) = path.split_once('/').unwrap_or((path, ""));
            // The sentinels' own rule for what a service may be called.
            let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
            let is_name = (1..=SERVICE_BYTES_MAX).contains(&service.len());
            if !is_name || !service.bytes().all(is_plain) {
                return Err(AddressError::Service);
            }
            let topology = Topology::Sentinel {
                sentinels: servers,
                service: service.to_owned(),
            };
            Ok((topology, read_database(database)?))
        }
        Layout::Cluster if path.is_empty() => Ok((Topology::Cluster { servers }, 0)),
        Layout::Cluster => Err(AddressError::DatabaseOfCluster),
    }
}

/// Left out, it is the first one.
fn read_database(text: &str) -> Result<u32, AddressError> {
    if text.is_empty() {
        return Ok(0);
    }
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| text.parse().ok()).flatten();
    number
        .filter(|number| *number <= DATABASE_MAX)
        .ok_or(AddressError::Database)
}

#[cfg(test)]
mod tests;
