//! Sockets are handed on, and successors that are none.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

#[tokio::test]
async fn sockets_arrive_with_their_names_and_take_whoever_waits_in_their_queue() {
    let (visitors, operators) = (listener().await, listener().await);
    let mut legacy = Legacy::default();
    legacy.add(VISITORS, &visitors).unwrap();
    legacy.add(OPERATORS, &operators).unwrap();
    let address = visitors.local_addr().unwrap();
    let mut waiting = tokio::net::TcpStream::connect(address).await.unwrap();

    let (near, far) = StdStream::pair().unwrap();
    passing::send(&near, &legacy.sockets).unwrap();
    drop((visitors, legacy));
    let sockets = passing::receive(&far).unwrap().into_iter();
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
    let mut heard = String::new();
    waiting.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "hello");

    inherited.predecessor().unwrap().say_ready().await.unwrap();
    near.set_nonblocking(true).unwrap();
    let mut near = UnixStream::from_std(near).unwrap();
    assert_eq!(near.read_u8().await.unwrap(), READY);
}

#[tokio::test]
async fn a_socket_that_does_not_listen_is_refused() {
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
async fn a_successor_that_ends_without_a_word_is_told_of() {
    let legacy = Legacy::default();
    let shell = || PathBuf::from("/bin/sh");
    let run = |script: &str| legacy.start(shell(), vec!["-c".into(), script.into()]);
    let ended = run("exit 3").await.unwrap_err();
    assert!(matches!(&ended, HandoverError::Ended { status } if status.contains('3')));
    // Standard input is the way to say it.
    let id = run("printf R >&0; exec sleep 60").await.unwrap();
    let id = i32::try_from(id).ok().and_then(Pid::from_raw).unwrap();
    // It is nobody's any more, and should not outlive the test.
    kill_process(id, Signal::KILL).unwrap();
    let wrong = run("printf X >&0; exec sleep 60").await.unwrap_err();
    assert!(matches!(wrong, HandoverError::Ended { .. }), "{wrong}");
    let none = legacy.start("/does/not/exist".into(), Vec::new()).await;
    assert!(matches!(none, Err(HandoverError::Start { .. })));
}

#[tokio::test]
async fn a_successor_that_nobody_waits_for_any_more_ends() {
    let mut sleep = Command::new("sleep");
    let mut child = sleep.arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    drop(Unready(Some(child)));
    // Ends when the process does.
    assert_eq!(out.read(&mut [0]).await.unwrap(), 0);
}

#[test]
fn sockets_without_names_are_for_visitors() {
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
