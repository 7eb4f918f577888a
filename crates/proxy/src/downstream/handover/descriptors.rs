//! Passing of sockets over a Unix socket: names in the message, descriptors as ancillary data.

use std::io::{Error as IoError, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum number of sockets, more than a process has.
const SOCKETS_MAX: usize = 8;
/// Maximum bytes of all names together.
const NAMES_MAX: usize = 256;

/// Sends sockets with their names, in one message.
pub(super) fn send(to: &UnixStream, sockets: &[(&'static str, OwnedFd)]) -> Result<(), IoError> {
    let names: Vec<_> = sockets.iter().map(|(name, _)| *name).collect();
    let names = names.join(":") + "\n";
    let fds: Vec<BorrowedFd<'_>> = sockets.iter().map(|(_, socket)| socket.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(&fds)) && names.len() <= NAMES_MAX;
    if !fits {
        return Err(ErrorKind::InvalidInput.into());
    }
    let message = [IoSlice::new(names.as_bytes())];
    sendmsg(to, &message, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives sockets with their names. They are not inherited by programs that this process starts.
pub(super) fn receive(from: &UnixStream) -> Result<Vec<(String, OwnedFd)>, IoError> {
    let mut names = [0; NAMES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(
        from,
        &mut [IoSliceMut::new(&mut names)],
        &mut control,
        flags,
    )?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let damaged = || IoError::new(ErrorKind::InvalidData, "not a list of sockets");
    let names = std::str::from_utf8(&names[..received.bytes]).map_err(|_| damaged())?;
    let names = names.strip_suffix('\n').ok_or_else(damaged)?;
    let names: Vec<_> = names.split(':').filter(|name| !name.is_empty()).collect();
    if names.len() != fds.len() {
        return Err(damaged());
    }
    let named = names.into_iter().map(str::to_owned).zip(fds);
    Ok(named.collect())
}
