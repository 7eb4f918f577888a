//! Supervisor that opens the socket and gets notifications, like systemd.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anteroom_e2e::origin;
use anteroom_e2e::{binary, eventually};
use anteroom_room::rules::Limits;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixDatagram};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::processes::config;
use crate::processes::successor::Successor;

/// Starts the program with a socket as descriptor 3, as supervisors do.
fn start(folder: &Path, socket: &TcpListener, notify: &Path) -> Child {
    let socket = socket.try_clone().unwrap();
    // The process id must be the program's own, which is that of the shell that it replaces.
    let script =
        "exec env LISTEN_FDS=1 LISTEN_FDNAMES=visitors LISTEN_PID=$$ \"$@\" 3<&0 </dev/null";
    Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(binary::path())
        .args(["serve", "--log", "warn", "--config"])
        .arg(folder.join("anteroom.toml"))
        .env("NOTIFY_SOCKET", notify)
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Waits until the supervisor gets this word, and returns the whole message.
async fn notified(supervisor: &UnixDatagram, word: &str) -> String {
    loop {
        let mut message = [0; 1_000];
        let received = timeout(Duration::from_secs(60), supervisor.recv(&mut message)).await;
        let length = received
            .unwrap_or_else(|_| panic!("no message: {word}"))
            .unwrap();
        let message = String::from_utf8_lossy(&message[..length]).into_owned();
        if message.contains(word) {
            return message;
        }
    }
}

#[tokio::test]
async fn a_supervisors_socket_is_served_and_the_supervisor_is_notified() {
    let temp = tempfile::tempdir().unwrap();
    let limits = Limits {
        total_active_users: 10,
        new_users_per_minute: 100_000,
    };
    let origin = origin::start(limits, Duration::from_secs(30)).await;
    std::fs::write(
        temp.path().join("anteroom.toml"),
        config(origin.address(), 10, ""),
    )
    .unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let notify = temp.path().join("notify");
    let supervisor = UnixDatagram::bind(&notify).unwrap();
    // A client connects before the program serves.
    let mut early = TcpStream::connect(socket.local_addr().unwrap())
        .await
        .unwrap();
    early
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut child = start(temp.path(), &socket, &notify);
    notified(&supervisor, "READY=1").await;
    let mut response = String::new();
    early.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");

    let id = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(id, Signal::HUP).unwrap();
    let reloading = notified(&supervisor, "RELOADING=1").await;
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    notified(&supervisor, "READY=1").await;

    kill_process(id, Signal::USR2).unwrap();
    let main = notified(&supervisor, "MAINPID=").await;
    let number = main
        .split("MAINPID=")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let successor = Pid::from_raw(number.parse().unwrap()).unwrap();
    assert!(child.wait().await.unwrap().success());
    let mut late = TcpStream::connect(socket.local_addr().unwrap())
        .await
        .unwrap();
    late.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .await
        .unwrap();
    response.clear();
    late.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    kill_process(successor, Signal::TERM).unwrap();
    notified(&supervisor, "STOPPING=1").await;
    let successor = Successor(successor);
    eventually("it ends", async || successor.has_ended()).await;
}
