//! The example service `hello` as a process of its own.

pub(crate) use testkit::{Finished, Process};

/// Cargo builds examples beside the test binaries: target/PROFILE/{deps/it-…, examples/hello}.
fn hello() -> String {
    let test = std::env::current_exe().expect("the test binary has a path");
    let hello = test
        .parent()
        .and_then(|deps| deps.parent())
        .expect("target directory")
        .join("examples/hello");
    assert!(
        hello.exists(),
        "{} is missing: run all of `cargo test -p chassis`, which builds it",
        hello.display()
    );
    hello.to_str().expect("is UTF-8").to_owned()
}

/// Runs it to its end; for invocations that do not serve.
pub(crate) fn run(variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    testkit::run(&hello(), variables, arguments)
}

/// Starts it and waits until it listens.
pub(crate) fn serve(variables: &[(&str, &str)]) -> Process {
    Process::serve(&hello(), &[variables, &[("HELLO_API_KEY", "hunter2")]].concat())
}
