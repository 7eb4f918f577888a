//! Opening of listening sockets.

use std::io::Error as IoError;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Maximum connections that wait in the kernel to be accepted. The kernel caps it at `somaxconn`.
const BACKLOG: u32 = 4096;

/// Opens a listener. With `is_shared`, several may listen on one address (`SO_REUSEPORT`), and the
/// kernel spreads connections over them.
///
/// # Errors
///
/// The error of the operating system: the address is in use, or not ours.
pub fn listen(address: SocketAddr, is_shared: bool) -> Result<TcpListener, IoError> {
    let socket = if address.is_ipv6() {
        TcpSocket::new_v6()?
    } else {
        TcpSocket::new_v4()?
    };
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    if is_shared {
        socket.set_reuseport(true)?;
    }
    #[cfg(not(unix))]
    let _ = is_shared;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
