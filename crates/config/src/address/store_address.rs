//! Parser of store addresses: `redis://` and related schemes, with and without credentials.
//!
//! Nothing here resolves names or connects. An error contains nothing of the text, because a
//! password can stand anywhere in it; the caller, who has the text, decides what to show.

use crate::address::host::{HostError, HostPort, split_port};
use crate::address::password::PasswordError;
use crate::address::valkey::{StorePromise, Topology, ValkeyAddress, ValkeyTls};

/// Longest address, in bytes: a hundred servers with long names.
const ADDRESS_BYTES_MAX: usize = 8_192;
/// Longest user name, in bytes; far more than people type.
const USERNAME_BYTES_MAX: usize = 256;
/// Longest name of a sentinel's service, in bytes.
const SERVICE_BYTES_MAX: usize = 128;
/// Greatest number of a database: servers keep the number of databases in a signed 32-bit integer.
const DATABASE_MAX: u32 = i32::MAX.unsigned_abs();
const SERVER_PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

/// Schemes of an address, before `://`; `valkey` may replace `redis`.
pub const SCHEMES: [&str; 6] = [
    "redis",
    "rediss",
    "redis+sentinel",
    "rediss+sentinel",
    "redis+cluster",
    "rediss+cluster",
];

/// Error of a text that is not the address of a store.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum AddressError {
    /// The text is longer than any address.
    #[error("address takes more than {ADDRESS_BYTES_MAX} bytes")]
    TooLong,
    /// The text begins with no known scheme.
    #[error("address does not begin with redis:// or one of its relatives")]
    Scheme,
    /// An `@` does not end the credentials.
    #[error("address has an @ in the wrong place")]
    UserInfo,
    /// A percent sign in the user name or the password is not followed by two hex digits, or the
    /// decoded text is not UTF-8.
    #[error("credentials have a broken percent escape")]
    Escape,
    /// The user name is not valid.
    #[error("user name is too long or has spaces in it")]
    Username,
    /// The password is not valid.
    #[error("password cannot be one")]
    Password(#[source] PasswordError),
    /// A server has no valid host.
    #[error("address has no valid host")]
    Host(#[source] HostError),
    /// The port of a server is not valid.
    #[error("port is not a number from 1 to 65535")]
    Port,
    /// The address names several servers, but is not one of sentinels or of a cluster.
    #[error("address has several servers, without sentinels or a cluster")]
    SeveralServers,
    /// The database is not a valid number.
    #[error("database is not a number from 0 to {DATABASE_MAX}")]
    Database,
    /// The address of a cluster has a database; clusters have none.
    #[error("address has a database or path after the servers of a cluster")]
    DatabaseOfCluster,
    /// The address of sentinels has no service, or an invalid one.
    #[error("sentinels are not followed by the name of a service")]
    Service,
    /// The address goes on with `?` or `#`.
    #[error("address has options after ? or #")]
    Options,
}

/// Relation of the servers of an address to each other.
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
    /// characters that a URL gives a meaning are percent-encoded in user and password. TLS trusts
    /// the certificates of the system; [`ValkeyTls::ca_file`] is set separately.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the text is anything else.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(AddressError::TooLong);
        }
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Scheme)?;
        let (layout, is_tls) = read_scheme(scheme).ok_or(AddressError::Scheme)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, tail) = rest.split_at(end);
        let (user_info, servers) = authority.rsplit_once('@').unwrap_or(("", authority));
        // A second `@` is part of a password, or begins credentials of another server. An `@` after
        // a slash means that the slash was part of a password.
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
            promise: StorePromise::default(),
        })
    }
}

/// Returns the relation of the servers, and whether to use TLS.
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

/// Whether servers accept this as the name of a user.
#[must_use]
pub fn is_username(text: &str) -> bool {
    (1..=USERNAME_BYTES_MAX).contains(&text.len())
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// Decodes percent escapes.
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

/// Reads what follows the servers, without the slash in front: database and service.
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
            // The rule that sentinels have for names of services.
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

/// Reads the number of the database; 0 if it is left out.
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
