//! The delay proxy as a process, between a client and a server of the test's own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

struct Link {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Link {
    fn start(upstream: SocketAddr, rtt: Duration) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rowlock-link"))
            .args(["--listen", "127.0.0.1:0", "--upstream", &upstream.to_string()])
            .args(["--rtt-us", &rtt.as_micros().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let address = line(&mut answers)["listening"].as_str().unwrap().parse().unwrap();
        Self {
            child,
            commands,
            answers,
            address,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    fn ask(&mut self, command: &str) -> Value {
        writeln!(self.commands.as_mut().unwrap(), "{command}").unwrap();
        line(&mut self.answers)
    }

    fn hang_up(&mut self) -> ExitStatus {
        self.commands = None;
        self.child.wait().unwrap()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.hang_up();
    }
}

fn line(answers: &mut BufReader<ChildStdout>) -> Value {
    let mut text = String::new();
    answers.read_line(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A server that handles each connection on a thread of its own; it ends with the test process.
fn server(handle: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, handle) = (stream.unwrap(), handle.clone());
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || handle(stream));
        }
    });
    address
}

/// Sends every byte back as it comes.
fn echo() -> SocketAddr {
    server(|mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
        }
    })
}

fn ping(stream: &mut TcpStream) -> Duration {
    let began = Instant::now();
    stream.write_all(b"ping").unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    began.elapsed()
}

fn pings(stream: &mut TcpStream, count: usize) -> Vec<Duration> {
    (0..count).map(|_| ping(stream)).collect()
}

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_round_trip_is_never_shorter_than_asked_and_the_best_one_hardly_longer() {
    let link = Link::start(echo(), 4 * MS);
    let took = pings(&mut link.connect(), 100);
    let (shortest, longest) = (took.iter().min().unwrap(), took.iter().max().unwrap());
    assert!(*shortest >= 4 * MS, "{shortest:?} … {longest:?}");
    // The best of a hundred: the others may have met a busy machine.
    assert!(*shortest < 6 * MS, "{shortest:?} … {longest:?}");
}

#[test]
fn the_round_trip_can_be_changed_while_connections_are_open() {
    let mut link = Link::start(echo(), 30 * MS);
    let mut stream = link.connect();
    assert!(pings(&mut stream, 3).iter().all(|took| *took >= 30 * MS));
    assert_eq!(link.ask("rtt 0"), json!({ "rtt_us": 0 }));
    assert!(pings(&mut stream, 50).into_iter().min().unwrap() < 15 * MS);
    assert_eq!(link.ask("rtt 60000"), json!({ "rtt_us": 60_000 }));
    assert!(pings(&mut stream, 3).iter().all(|took| *took >= 60 * MS));
}

#[test]
fn pipelined_requests_share_one_delay() {
    let link = Link::start(echo(), 200 * MS);
    let mut stream = link.connect();
    let began = Instant::now();
    for _ in 0..50 {
        stream.write_all(b"ping").unwrap();
    }
    stream.read_exact(&mut [0; 200]).unwrap();
    let took = began.elapsed();
    assert!(took >= 200 * MS, "{took:?}");
    assert!(
        took < 2000 * MS,
        "fifty requests one after the other take ten seconds; these took {took:?}"
    );
}

#[test]
fn round_trips_are_counted_exactly() {
    let mut link = Link::start(echo(), MS);
    for _ in 0..3 {
        let mut stream = link.connect();
        pings(&mut stream, 40);
        // Ten requests in one piece are answered in one round trip.
        stream.write_all(&[b'p'; 40]).unwrap();
        stream.read_exact(&mut [0; 40]).unwrap();
    }
    assert_eq!(link.ask("stats")["round_trips"], 123);
    assert_eq!(link.ask("stats")["rtt_us"], 1000);
}

/// The same bytes for the same seed; xorshift.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(seed: u64, length: usize) -> Vec<u8> {
        let mut noise = Self(seed);
        (0..length).map(|_| noise.next() as u8).collect()
    }
}

/// Sends noise in pieces of random length, then closes this direction.
fn send_noise(mut stream: TcpStream, seed: u64, length: usize) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let bytes = Noise::bytes(seed, length);
        let mut lengths = Noise(seed + 1);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let count = (lengths.next() % 30_000 + 1) as usize;
            let (now, later) = rest.split_at(count.min(rest.len()));
            stream.write_all(now).unwrap();
            rest = later;
        }
        stream.shutdown(Shutdown::Write).unwrap();
    })
}

#[test]
fn bytes_arrive_intact_and_in_order_in_both_directions_at_once() {
    const LENGTH: usize = 3_000_000;
    let (received, arrived) = std::sync::mpsc::channel();
    let upstream = server(move |mut stream| {
        let sender = send_noise(stream.try_clone().unwrap(), 7, LENGTH);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        sender.join().unwrap();
        received.send(bytes).unwrap();
    });
    let mut link = Link::start(upstream, MS);
    let mut stream = link.connect();
    let sender = send_noise(stream.try_clone().unwrap(), 99, LENGTH);
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    sender.join().unwrap();
    assert!(bytes == Noise::bytes(7, LENGTH), "what the server sent");
    assert!(
        arrived.recv().unwrap() == Noise::bytes(99, LENGTH),
        "what the client sent"
    );
    drop(stream);
    crate::support::eventually("the link forgets a connection both ends have closed", || {
        link.ask("stats")["connections"] == 0
    });
}

#[test]
fn an_end_that_has_closed_its_direction_still_receives() {
    let upstream = server(|mut stream| {
        let mut request = String::new();
        stream.read_to_string(&mut request).unwrap();
        stream.write_all(format!("you said {request}").as_bytes()).unwrap();
    });
    let link = Link::start(upstream, 5 * MS);
    let mut stream = link.connect();
    stream.write_all(b"all of it").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "you said all of it");
}

#[test]
fn a_server_that_does_not_read_stops_its_client() {
    const FAR_TOO_MUCH: usize = 256 << 20;
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (counted, count) = std::sync::mpsc::channel();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let upstream = server(move |mut stream| {
        wait.lock().unwrap().recv().unwrap();
        counted
            .send(std::io::copy(&mut stream, &mut std::io::sink()).unwrap())
            .unwrap();
    });
    let link = Link::start(upstream, MS);
    let mut stream = link.connect();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut sent = 0;
    while sent < FAR_TOO_MUCH {
        match stream.write(&[1; 65_536]) {
            Ok(count) => sent += count,
            Err(_) => break,
        }
    }
    assert!(sent < FAR_TOO_MUCH, "the link took {sent} bytes that nobody read");
    go.send(()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(count.recv().unwrap(), sent as u64);
}

#[test]
fn a_reset_by_the_server_reaches_the_client() {
    // Closing with unread bytes makes the kernel send a reset instead of an orderly end.
    let upstream = server(|stream| {
        stream.peek(&mut [0; 1]).unwrap();
    });
    let mut link = Link::start(upstream, MS);
    let mut stream = link.connect();
    stream.write_all(b"hello").unwrap();
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    drop(stream);
    crate::support::eventually("the link forgets the connection", || {
        link.ask("stats")["connections"] == 0
    });
}

#[test]
fn a_client_is_closed_when_the_server_takes_no_connection() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut link = Link::start(gone, MS);
    let mut stream = link.connect();
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    assert_eq!(link.ask("stats")["connections"], 0);
}

#[test]
fn the_link_ends_with_its_input_and_takes_its_connections_along() {
    let mut link = Link::start(echo(), MS);
    let mut stream = link.connect();
    ping(&mut stream);
    assert!(link.hang_up().success());
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
}

#[test]
fn a_line_that_is_no_command_is_answered_with_what_is_wrong() {
    let mut link = Link::start(echo(), MS);
    assert!(link.ask("rtt fast")["error"].as_str().unwrap().contains("`fast`"));
    assert!(link.ask("slower")["error"].as_str().unwrap().contains("`slower`"));
    assert_eq!(link.ask("stats")["rtt_us"], 1000);
}

#[test]
fn a_port_that_is_taken_or_not_local_is_refused_with_its_name() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    for (listen, code) in [(taken.as_str(), 3), ("0.0.0.0:0", 2)] {
        let output = Command::new(env!("CARGO_BIN_EXE_rowlock-link"))
            .args(["--listen", listen, "--upstream", "127.0.0.1:1"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(listen), "{said}");
    }
}
