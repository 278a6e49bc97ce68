//! What a group gets that wants everything.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::group::Group;
use crate::process::{MARKER, cpu_time};

/// Counts as fast as it can; it ends by itself should nobody be left to end it.
const PROGRAM: &str = "i=0; while [ $i -lt 20000000 ]; do i=$((i+1)); done";
/// A group that has rested may use up what it was given for the period first.
const SETTLE: Duration = Duration::from_millis(100);
/// Several of the periods in which the kernel deals out CPU.
const FOR: Duration = Duration::from_millis(500);

/// Cores that programs in the group got which together want more than `cores`.
pub(super) async fn burn(group: &Group, cores: f64, run: &str) -> io::Result<f64> {
    let count = cores.floor() as usize + 1;
    let mut burning = Vec::with_capacity(count);
    for _ in 0..count {
        burning.push(start(group, run)?);
    }
    sleep(SETTLE).await;
    let (began, before) = (Instant::now(), used(&burning)?);
    sleep(FOR).await;
    let (passed, after) = (began.elapsed(), used(&burning)?);
    for mut child in burning {
        child.kill().await?;
    }
    Ok((after - before).as_secs_f64() / passed.as_secs_f64())
}

fn start(group: &Group, run: &str) -> io::Result<Child> {
    let child = Command::new("/bin/sh")
        .args(["-c", PROGRAM])
        .env_clear()
        .env(MARKER, run)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    group.take(id(&child)?)?;
    Ok(child)
}

fn used(burning: &[Child]) -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for child in burning {
        sum += cpu_time(id(child)?).ok_or_else(|| io::Error::other("a program that should use CPU has ended"))?;
    }
    Ok(sum)
}

fn id(child: &Child) -> io::Result<u32> {
    child
        .id()
        .ok_or_else(|| io::Error::other("a program that should use CPU has ended"))
}
