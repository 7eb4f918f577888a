//! Protocol of Redis as far as tests need it: a few commands, one reply.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than any command of a test takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Reply of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reply {
    /// Status, as in `+OK`.
    Simple(String),
    /// Error, as in `-ERR unknown command`.
    Error(String),
    /// Integer, as in `:7`.
    Int(i64),
    /// Bytes, or nil.
    Bulk(Option<Vec<u8>>),
    /// Several replies.
    Array(Vec<Self>),
}

impl Reply {
    /// Returns the reply as text.
    ///
    /// # Panics
    ///
    /// If it is not text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Bulk(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Int(number) => number.to_string(),
            Self::Bulk(None) | Self::Array(_) => panic!("no text: {self:?}"),
        }
    }
}

/// Sends commands over one connection to 127.0.0.1 and returns the reply to the last one.
///
/// # Errors
///
/// Returns an error without a connection, or without a reply within ten seconds.
pub async fn send_command(port: u16, commands: &[&[&str]]) -> io::Result<Reply> {
    let asking = async {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let mut stream = BufReader::new(stream);
        let mut last = Reply::Bulk(None);
        for command in commands {
            stream.write_all(&written(command)).await?;
            last = read(&mut stream).await?;
        }
        Ok(last)
    };
    timeout(ANSWER_TIMEOUT, asking).await?
}

fn written(command: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for word in command {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Reply> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let (kind, rest) = line
        .trim_end()
        .split_at_checked(1)
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    let number = || rest.parse::<i64>().map_err(io::Error::other);
    match kind {
        "+" => Ok(Reply::Simple(rest.to_owned())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" => Ok(Reply::Int(number()?)),
        "$" => {
            let Ok(length) = usize::try_from(number()?) else {
                return Ok(Reply::Bulk(None));
            };
            let mut bytes = vec![0; length + 2];
            stream.read_exact(&mut bytes).await?;
            bytes.truncate(length);
            Ok(Reply::Bulk(Some(bytes)))
        }
        "*" => {
            let mut parts = Vec::new();
            for _ in 0..number()? {
                parts.push(Box::pin(read(stream)).await?);
            }
            Ok(Reply::Array(parts))
        }
        _ => Err(io::Error::other(format!("not a reply of Redis: {line:?}"))),
    }
}
