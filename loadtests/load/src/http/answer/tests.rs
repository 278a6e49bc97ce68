//! Heads and bodies that come in one piece, in many, and malformed.

use super::*;

fn head(text: &str) -> Head {
    parsed(text.as_bytes(), false).unwrap().expect("a whole head")
}

fn parsed(bytes: &[u8], only: bool) -> Result<Option<Head>, Malformed> {
    Head::parse(bytes, only, &mut HeaderMap::new(), |_| false)
}

fn wrong(text: &str) -> String {
    parsed(text.as_bytes(), false).unwrap_err().0
}

/// The data of a body that arrives in pieces of `size`, and what is left behind it.
fn read(mut body: Body, bytes: &[u8], size: usize) -> Result<(Vec<u8>, Vec<u8>), Malformed> {
    let (mut data, mut unused) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(size) {
        unused.extend_from_slice(piece);
        while !body.has_ended() {
            let Some(piece) = body.next(&unused)? else { break };
            match piece {
                Piece::Data(length) => data.extend(unused.drain(..length)),
                Piece::Framing(length) => drop(unused.drain(..length)),
            }
        }
    }
    Ok((data, unused))
}

#[test]
fn the_end_of_a_body_is_told_by_length_chunks_or_the_end_of_the_connection() {
    let bodies = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", Body::Sized(12), true),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 7, 7\r\nCONTENT-LENGTH: 7\r\n\r\n",
            Body::Sized(7),
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\n",
            Body::Chunked(Chunk::Size),
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", Body::UntilClose, false),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
            Body::UntilClose,
            false,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", Body::Sized(0), true),
        (
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n",
            Body::Sized(0),
            true,
        ),
        ("HTTP/1.1 100 Continue\r\n\r\n", Body::Sized(0), true),
        // No reason at all, as some servers have it.
        ("HTTP/1.1 201\r\ncontent-length: 1\r\n\r\n", Body::Sized(1), true),
        // Both: the chunks count, and the connection is not used again.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
            Body::Chunked(Chunk::Size),
            false,
        ),
    ];
    for (text, body, keep_alive) in bodies {
        let head = head(text);
        assert_eq!(
            (head.body, head.keep_alive, head.length),
            (body, keep_alive, text.len()),
            "{text}"
        );
    }
    let only = parsed(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n", true)
        .unwrap()
        .unwrap();
    assert_eq!((only.body, only.keep_alive), (Body::Sized(0), true));
}

#[test]
fn a_connection_stays_unless_the_answer_says_otherwise_and_that_of_an_old_server_does_not() {
    for (version, connection, stays) in [
        (1, "", true),
        (1, "connection: close\r\n", false),
        (1, "Connection: x, Close\r\n", false),
        (1, "connection: keep-alive\r\nconnection: close\r\n", false),
        (1, "connection: close, keep-alive\r\n", false),
        (0, "", false),
        (0, "connection: Keep-Alive\r\n", true),
    ] {
        let text = format!("HTTP/1.{version} 200 OK\r\ncontent-length: 0\r\n{connection}\r\n");
        assert_eq!(head(&text).keep_alive, stays, "{text}");
    }
}

#[test]
fn a_head_is_complete_with_its_empty_line_and_never_before() {
    let text = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nok";
    let length = text.len() - 2;
    for end in 0..length {
        assert_eq!(parsed(&text[..end], false), Ok(None), "{end}");
    }
    assert_eq!(parsed(text, false).unwrap().unwrap().length, length);
}

#[test]
fn fields_are_kept_where_they_are_wanted() {
    let text = b"HTTP/1.1 503 Later\r\nRetry-After: 2\r\nx: a\r\nX: b\r\ncontent-length: 0\r\n\r\n";
    let mut fields = HeaderMap::new();
    Head::parse(text, false, &mut fields, |status| status.is_success()).unwrap();
    assert!(fields.is_empty());
    Head::parse(text, false, &mut fields, |status| !status.is_success()).unwrap();
    assert_eq!(fields["retry-after"], "2");
    assert!(fields.get_all("x").iter().eq(["a", "b"]));
}

#[test]
fn what_is_no_head_is_refused_with_the_reason() {
    for (text, reason) in [
        ("220 mail.example ESMTP\r\n\r\n", "not HTTP/1.1"),
        ("HTTP/2.0 200 OK\r\n\r\n", "not HTTP/1.1"),
        ("HTTP/1.1 2x0 OK\r\n\r\n", "not HTTP/1.1"),
        ("HTTP/1.1 099 OK\r\n\r\n", "99 is no status"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "not HTTP/1.1"),
        ("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\n", "`content-length: +5`"),
        ("HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n", "is no length"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
            "another one",
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "is no length",
        ),
        ("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "HTTP/1.0"),
    ] {
        let told = wrong(text);
        assert!(told.contains(reason), "{text}: {told}");
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(FIELDS + 1));
    assert!(wrong(&many).contains("too many headers"), "{}", wrong(&many));
}

#[test]
fn chunks_are_put_together_however_they_are_cut() {
    let text = b"4\r\nRust\r\n00C;name=\"a;b\"\r\n is compiled\r\n0\r\nchecksum: 1\r\nx: y\r\n\r\nHTTP/1.1";
    let plain = b"3\r\nabc\r\n0\r\n\r\n";
    for size in 1..=text.len() {
        let (data, left) = read(Body::Chunked(Chunk::Size), text, size).unwrap();
        assert_eq!(
            (data.as_slice(), left.as_slice()),
            (b"Rust is compiled".as_slice(), b"HTTP/1.1".as_slice()),
            "{size}"
        );
        let (data, left) = read(Body::Chunked(Chunk::Size), plain, size).unwrap();
        assert_eq!((data.as_slice(), left.len()), (b"abc".as_slice(), 0), "{size}");
    }
}

#[test]
fn malformed_chunks_are_refused_however_they_are_cut() {
    for text in [
        "x\r\n",
        "\r\n",
        ";a\r\n",
        "4 4\r\nRust\r\n",
        "4\r\nRusty\r\n0\r\n\r\n",
        "-1\r\n",
        "fffffffffffffffff\r\n",
        "0\r\nno colon\r\n\r\n",
    ] {
        for size in 1..=text.len() {
            let read = read(Body::Chunked(Chunk::Size), text.as_bytes(), size);
            assert!(read.is_err(), "{text:?} in pieces of {size}: {read:?}");
        }
    }
}

#[test]
fn a_sized_body_ends_where_its_length_says_and_one_without_end_takes_everything() {
    for size in 1..=6 {
        let (data, left) = read(Body::Sized(4), b"bodyHT", size).unwrap();
        assert_eq!(
            (data.as_slice(), left.as_slice()),
            (b"body".as_slice(), b"HT".as_slice())
        );
        let (data, left) = read(Body::UntilClose, b"bodyHT", size).unwrap();
        assert_eq!((data.as_slice(), left.len()), (b"bodyHT".as_slice(), 0));
    }
}
