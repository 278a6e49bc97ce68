//! Small keep-alive server.
use bytes::Bytes;
use http_body_util::Full;
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let l = tokio::net::TcpListener::bind(std::env::args().nth(1).unwrap())
        .await
        .unwrap();
    loop {
        let (s, _) = l.accept().await.unwrap();
        s.set_nodelay(true).unwrap();
        tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(
            hyper_util::rt::TokioIo::new(s),
            hyper::service::service_fn(|_| async {
                Ok::<_, std::convert::Infallible>(hyper::Response::new(Full::new(Bytes::from_static(b"{\"ok\":true}"))))
            }),
        ));
    }
}
