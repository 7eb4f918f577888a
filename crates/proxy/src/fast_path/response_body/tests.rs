//! Tests of bodies that arrive in pieces.

use proptest::prelude::*;

use super::*;

/// Reads a body in pieces of so many bytes. Returns what the client gets, and the bytes after it.
fn read(
    framing: Framing,
    body: &[u8],
    piece: usize,
) -> Result<(Vec<u8>, Option<usize>), Malformed> {
    let mut reader = BodyReader::new(framing);
    let mut out = Vec::new();
    let mut at = 0;
    for part in body.chunks(piece) {
        match reader.read(part, &mut out)? {
            Progress::Open => at += part.len(),
            Progress::Ended(count) => return Ok((out, Some(body.len() - at - count))),
        }
    }
    Ok((out, None))
}

/// Reads chunks as a client does, which gets only what was written here.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let end = bytes.windows(2).position(|pair| pair == b"\r\n").unwrap();
        let size = std::str::from_utf8(&bytes[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let start = end + 2;
        data.extend_from_slice(&bytes[start..start + size]);
        assert_eq!(&bytes[start + size..start + size + 2], b"\r\n");
        bytes = &bytes[start + size + 2..];
        if size == 0 {
            assert!(bytes.is_empty());
            return data;
        }
    }
}

#[test]
fn a_body_with_a_length_ends_exactly() {
    for piece in 1..8 {
        let (out, rest) = read(Framing::Length(3), b"abcde", piece).unwrap();
        assert_eq!(out, b"abc");
        assert!(rest.is_some());
    }
    assert_eq!(read(Framing::None, b"x", 1), Ok((vec![], Some(1))));
    let mut reader = BodyReader::new(Framing::Length(3));
    assert_eq!(reader.read(b"ab", &mut Vec::new()), Ok(Progress::Open));
    assert_eq!(
        reader.end(&mut Vec::new()),
        Err(Malformed),
        "it ended early"
    );
}

#[test]
fn chunks_lose_extensions_and_trailers() {
    let body = b"3;a=\"b\"\r\nabc\r\n0a \r\n0123456789\r\n0\r\nx: 1\r\n\r\nrest";
    for piece in 1..body.len() {
        let (out, rest) = read(Framing::Chunks, body, piece).unwrap();
        assert_eq!(unchunked(&out), b"abc0123456789");
        assert!(rest.is_some_and(|rest| rest >= 4 || piece < 10));
    }
    let (_, rest) = read(Framing::Chunks, body, body.len()).unwrap();
    assert_eq!(rest, Some(4));
}

#[test]
fn malformed_chunks_break_the_body_off() {
    for body in [
        &b"3\nabc\r\n0\r\n\r\n"[..],
        b"3\r\nabcd\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"\r\n",
        b"g\r\n",
        b"+3\r\nabc\r\n",
        b"-1\r\n",
        b"0x3\r\nabc\r\n",
        b" 3\r\nabc\r\n",
        b"00000000000000003\r\nabc\r\n",
        b"ffffffffffffffff\r\n",
        b"3;\r;\r\nabc\r\n",
        b"0\r\nx: 1\n\r\n",
        b"0\r\nx\r\n\r\n",
    ] {
        for piece in [1, 2, body.len()] {
            let text = String::from_utf8_lossy(body);
            assert_eq!(
                read(Framing::Chunks, body, piece),
                Err(Malformed),
                "{text:?}"
            );
        }
    }
    let long = [b"3;".to_vec(), vec![b'x'; LINE_MAX], b"\r\n".to_vec()].concat();
    assert_eq!(read(Framing::Chunks, &long, 100), Err(Malformed));
    let trailers = [b"0\r\n".to_vec(), b"a: bcdefgh\r\n".repeat(2_000)].concat();
    assert_eq!(read(Framing::Chunks, &trailers, 100), Err(Malformed));
}

#[test]
fn a_body_until_the_end_becomes_chunks() {
    let mut reader = BodyReader::new(Framing::UntilClose);
    let mut out = Vec::new();
    for part in [&b"ab"[..], b"", b"c"] {
        assert_eq!(reader.read(part, &mut out), Ok(Progress::Open));
    }
    reader.end(&mut out).unwrap();
    assert_eq!(unchunked(&out), b"abc");
}

proptest! {
    #[test]
    fn any_pieces_of_chunks_give_the_same_body(
        parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..6),
        piece in 1_usize..50,
    ) {
        let mut body = Vec::new();
        for part in &parts {
            write_chunk(&mut body, part);
        }
        body.extend_from_slice(LAST_CHUNK);
        let (out, rest) = read(Framing::Chunks, &body, piece).unwrap();
        prop_assert_eq!(unchunked(&out), parts.concat());
        prop_assert_eq!(rest, Some(0));
    }
}
