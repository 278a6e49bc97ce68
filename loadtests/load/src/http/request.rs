//! A request as it goes over the wire: laid down once, so that each costs a copy with its fields filled in.

use http::{HeaderName, HeaderValue, Method, Uri};

use super::template::{DIGITS, Template, Unique, decimal};

/// A request of HTTP/1.1, but for its token and the length of its body.
#[derive(Debug)]
pub(super) struct Request {
    head: Template,
    body: Template,
    /// Whether the length of the body is told; an empty one of a GET goes without saying.
    sized: bool,
    /// Its answer has no body, whatever its head says.
    pub(super) head_only: bool,
}

impl Request {
    /// The headers are those that all of these requests have, `Host` first.
    pub(super) fn new(
        method: &Method,
        target: &Uri,
        headers: impl IntoIterator<Item = (HeaderName, Template)>,
        body: Template,
    ) -> Self {
        let mut head = Template::text(&format!("{method} {target} HTTP/1.1\r\n"));
        for (name, value) in headers {
            head.push_text(name.as_str().as_bytes());
            head.push_text(b": ");
            head.push(value);
            head.push_text(b"\r\n");
        }
        Self {
            sized: !body.is_empty() || [Method::POST, Method::PUT, Method::PATCH].contains(method),
            head_only: *method == Method::HEAD,
            head,
            body,
        }
    }

    /// Writes all of it to `out`, in place of what is there.
    pub(super) fn render(&self, unique: &Unique, bearer: Option<&HeaderValue>, out: &mut Vec<u8>) {
        out.clear();
        self.head.render(unique, out);
        if let Some(bearer) = bearer {
            out.extend_from_slice(b"authorization: ");
            out.extend_from_slice(bearer.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        if self.sized {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(decimal(self.body.length(unique) as u64, &mut [0; DIGITS]));
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        self.body.render(unique, out);
    }
}

#[cfg(test)]
mod tests {
    use http::header;

    use super::*;

    fn rendered(method: &Method, bearer: Option<&str>, body: &str) -> String {
        let headers = [(header::HOST, "h:1"), (header::COOKIE, "n={{sequence}}")];
        let headers = headers.map(|(name, value)| (name, Template::parse(value).unwrap()));
        let target = "/a?b={{sequence}}".parse().unwrap();
        let request = Request::new(method, &target, headers, Template::parse(body).unwrap());
        let bearer = bearer.map(|bearer| HeaderValue::from_str(bearer).unwrap());
        let mut out = b"what was there".to_vec();
        request.render(&Unique::new(12, true), bearer.as_ref(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_request_is_its_lines_and_its_body_with_the_length_of_what_is_filled_in() {
        assert_eq!(
            rendered(&Method::POST, Some("Bearer t"), "number {{sequence}}"),
            "POST /a?b={{sequence}} HTTP/1.1\r\nhost: h:1\r\ncookie: n=12\r\nauthorization: Bearer t\r\n\
             content-length: 9\r\n\r\nnumber 12"
        );
    }

    #[test]
    fn a_body_that_is_empty_has_a_length_where_one_is_expected() {
        let ends_with = |method, end| rendered(method, None, "").ends_with(end);
        assert!(ends_with(&Method::GET, "cookie: n=12\r\n\r\n"));
        assert!(ends_with(&Method::DELETE, "cookie: n=12\r\n\r\n"));
        assert!(ends_with(&Method::POST, "cookie: n=12\r\ncontent-length: 0\r\n\r\n"));
    }
}
