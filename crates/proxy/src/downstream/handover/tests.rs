//! Tests of passed sockets and of successors that fail.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

#[tokio::test]
async fn sockets_arrive_with_their_names_and_queued_connections() {
    let (visitors, operators) = (listener().await, listener().await);
    let mut legacy = SocketHandover::default();
    legacy.add(VISITORS, &visitors).unwrap();
    legacy.add(OPERATORS, &operators).unwrap();
    let address = visitors.local_addr().unwrap();
    let mut waiting = tokio::net::TcpStream::connect(address).await.unwrap();

    let (near, far) = StdStream::pair().unwrap();
    descriptors::send(&near, &legacy.sockets).unwrap();
    drop((visitors, legacy));
    let sockets = descriptors::receive(&far).unwrap().into_iter();
    let mut inherited = Inherited {
        sockets: sockets
            .map(|(name, socket)| (name, StdListener::from(socket)))
            .collect(),
        predecessor: Some(far),
    };
    let adopted = inherited.socket(VISITORS).unwrap().unwrap();
    assert_eq!(adopted.local_addr().unwrap(), address);
    assert_eq!(inherited.unused().collect::<Vec<_>>(), [OPERATORS]);
    assert!(inherited.socket(REDIRECT).unwrap().is_none());
    let (mut accepted, _) = adopted.accept().await.unwrap();
    accepted.write_all(b"hello").await.unwrap();
    drop(accepted);
    let mut received = String::new();
    waiting.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "hello");

    inherited
        .predecessor()
        .unwrap()
        .notify_ready()
        .await
        .unwrap();
    near.set_nonblocking(true).unwrap();
    let mut near = UnixStream::from_std(near).unwrap();
    assert_eq!(near.read_u8().await.unwrap(), READY);
}

#[tokio::test]
async fn a_socket_that_does_not_listen_is_an_error() {
    let listener = listener().await;
    let address = listener.local_addr().unwrap();
    let stream = std::net::TcpStream::connect(address).unwrap();
    let socket = StdListener::from(OwnedFd::from(stream));
    let mut inherited = Inherited {
        sockets: BTreeMap::from([(VISITORS.to_owned(), socket)]),
        predecessor: None,
    };
    let error = inherited.socket(VISITORS).unwrap_err();
    assert!(matches!(error, HandoverError::Socket { .. }), "{error}");
}

#[tokio::test]
async fn a_successor_that_ends_before_it_is_ready_is_an_error() {
    let legacy = SocketHandover::default();
    let shell = || PathBuf::from("/bin/sh");
    let run = |script: &str| legacy.start(shell(), vec!["-c".into(), script.into()]);
    let ended = run("exit 3").await.unwrap_err();
    assert!(matches!(&ended, HandoverError::Ended { status } if status.contains('3')));
    // The successor reports over its standard input.
    let id = run("printf R >&0; exec sleep 60").await.unwrap();
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).unwrap();
    // The process is no longer owned, and must not outlive the test.
    kill_process(id, Signal::KILL).unwrap();
    let wrong = run("printf X >&0; exec sleep 60").await.unwrap_err();
    assert!(matches!(wrong, HandoverError::Ended { .. }), "{wrong}");
    let none = legacy.start("/does/not/exist".into(), Vec::new()).await;
    assert!(matches!(none, Err(HandoverError::Start { .. })));
}

#[tokio::test]
async fn a_dropped_successor_is_killed() {
    let mut sleep = Command::new("sleep");
    let mut child = sleep.arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    drop(Unready(Some(child)));
    // The pipe closes when the process ends.
    assert_eq!(out.read(&mut [0]).await.unwrap(), 0);
}

#[test]
fn a_single_socket_without_a_known_name_is_for_visitors() {
    let check = |names, count, expected: &[&str]| {
        assert_eq!(names_of(names, count), expected, "{names:?} {count}");
    };
    check("", 0, &[]);
    check("", 1, &[VISITORS]);
    check("anteroom.socket", 1, &[VISITORS]);
    check("visitors:operators", 2, &[VISITORS, OPERATORS]);
    check("operators", 1, &[OPERATORS]);
    check("a:b", 2, &["a", "b"]);
    check("a", 2, &["a", "number 2"]);
    check("", 3, &[VISITORS, "number 2", "number 3"]);
    check(":operators", 2, &["number 1", OPERATORS]);
    check("visitors::operators", 3, &[VISITORS, "number 2", OPERATORS]);
    check("a:b:c", 2, &["a", "b"]);
}
