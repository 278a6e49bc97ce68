//! Inflicting faults on a running stack, and healing them when their time has come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::{oneshot, watch};

use super::Stack;
use super::ground::{Ground, Hit};
use crate::error::DeployError;
use crate::faults::{Crashes, Fault, Heal, On, Spec};
use crate::process::ProcessInfo;

/// A fault that a stack suffers. Dropping this does not end it: it heals when its time has come.
#[derive(Debug)]
pub struct Inflicted {
    /// The fault.
    pub fault: Fault,
    /// The processes it was aimed at, as they were before; none for a link.
    pub hit: Vec<ProcessInfo>,
    healed: oneshot::Receiver<Result<Healed, DeployError>>,
}

/// A fault that is over.
#[derive(Debug, Clone, Copy)]
pub struct Healed {
    /// When what it hit answered again.
    pub at: SystemTime,
    /// When what it hit could not write down what it held in memory: the time in which that was.
    pub crashed: Option<[SystemTime; 2]>,
}

impl Inflicted {
    /// Waits until the fault is over and what it hit answers again.
    ///
    /// # Errors
    /// What it hit does not come back.
    pub async fn healed(self) -> Result<Healed, DeployError> {
        self.healed.await.unwrap_or_else(|_| Err(cut_short(&self.fault)))
    }
}

/// The faults a stack suffers at the moment.
#[derive(Debug, Default)]
pub(super) struct Suffered {
    leaving: Arc<AtomicBool>,
    now: Arc<Mutex<Vec<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    /// Names of the processes or of the link.
    parts: Vec<String>,
    says: String,
    /// Set to true to have it heal at once.
    heal: watch::Sender<bool>,
}

impl Suffered {
    /// Heals everything now, and waits for it.
    pub(super) async fn end(&self) {
        self.end_of(|_| true).await;
    }

    /// The same for a stack that goes down: what was ended stays ended.
    pub(super) async fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        self.end().await;
    }

    /// The same for faults on parts of these names.
    pub(super) async fn end_of(&self, concerned: impl Fn(&str) -> bool) {
        let senders: Vec<watch::Sender<bool>> = locked(&self.now)
            .iter()
            .filter(|entry| entry.parts.iter().any(|part| concerned(part)))
            .map(|entry| entry.heal.clone())
            .collect();
        for sender in senders {
            sender.send_replace(true);
            // The receiver is dropped when the fault is over.
            sender.closed().await;
        }
    }
}

pub(super) async fn inflict(stack: &Stack, fault: &Fault) -> Result<Inflicted, DeployError> {
    let spec = fault.spec()?;
    let ground = Ground::of(stack, Arc::clone(&stack.suffered.leaving));
    let hit = ground.aim(spec, fault)?;
    let (heal, told) = watch::channel(false);
    let place = enter(&stack.suffered.now, parts(&hit), fault, heal)?;
    let infos = match &hit {
        Hit::Processes(processes) => processes.iter().map(|process| process.info().clone()).collect(),
        Hit::Link(_) => Vec::new(),
    };
    let (tell_begun, begun) = oneshot::channel();
    let (tell_healed, healed) = oneshot::channel();
    let suffered = fault.clone();
    // A task of its own: a caller that is dropped half-way must not leave a fault that nobody heals.
    tokio::spawn(async move {
        let result = suffer(&ground, spec, &hit, &suffered, tell_begun, told).await;
        drop(place);
        // Whoever does not wait for the end need not be told of it.
        let _ = tell_healed.send(result);
    });
    match begun.await {
        Ok(()) => Ok(Inflicted {
            fault: fault.clone(),
            hit: infos,
            healed,
        }),
        // It could not be inflicted, and says why where it would have said that it is over.
        Err(_) => match healed.await {
            Ok(Err(error)) => Err(error),
            _ => Err(cut_short(fault)),
        },
    }
}

/// The whole course of a fault.
async fn suffer(
    ground: &Ground,
    spec: &Spec,
    hit: &Hit,
    fault: &Fault,
    tell_begun: oneshot::Sender<()>,
    mut told: watch::Receiver<bool>,
) -> Result<Healed, DeployError> {
    let from = SystemTime::now();
    let heal = strike(ground, spec, hit, fault).await?;
    let struck = SystemTime::now();
    // Whoever asked for it may have gone; it heals all the same.
    let _ = tell_begun.send(());
    // The sender lives in the list of faults, from which this one is taken when it is over.
    let _ = tokio::time::timeout(fault.duration, told.wait_for(|now| *now)).await;
    heal(ground).await?;
    let at = SystemTime::now();
    let crashed = match spec.crashes {
        Crashes::Not => None,
        Crashes::AtOnce => Some([from, struck]),
        Crashes::Meanwhile => Some([from, at]),
    };
    Ok(Healed { at, crashed })
}

async fn strike(ground: &Ground, spec: &Spec, hit: &Hit, fault: &Fault) -> Result<Heal, DeployError> {
    match (spec.on, hit) {
        (On::Processes(inflict), Hit::Processes(processes)) => inflict(processes).await,
        (On::Servers(_, inflict), Hit::Processes(processes)) if processes.len() == 1 => {
            inflict(ground, &processes[0]).await
        }
        (On::Link(inflict), Hit::Link(link)) => inflict(link, fault).await,
        _ => Err(DeployError::Usage(format!(
            "`{}` cannot be aimed at `{}`",
            fault.kind, fault.target
        ))),
    }
}

fn parts(hit: &Hit) -> Vec<String> {
    match hit {
        Hit::Processes(processes) => processes.iter().map(|process| process.info().name.clone()).collect(),
        Hit::Link(link) => vec![link.name().to_string()],
    }
}

/// Refuses a second fault on the same part: the first one's healing would not know what it heals.
fn enter(
    now: &Arc<Mutex<Vec<Entry>>>,
    parts: Vec<String>,
    fault: &Fault,
    heal: watch::Sender<bool>,
) -> Result<Place, DeployError> {
    let mut entries = locked(now);
    let overlaps = |entry: &&Entry| entry.parts.iter().any(|part| parts.contains(part));
    if let Some(other) = entries.iter().find(overlaps) {
        let reason = format!("suffers `{}` at the moment; wait until that has healed", other.says);
        return Err(DeployError::start(&fault.target, reason, None));
    }
    entries.push(Entry {
        parts: parts.clone(),
        says: fault.says(),
        heal,
    });
    Ok(Place {
        now: Arc::clone(now),
        parts,
    })
}

/// A fault's place in the list; taken away with it.
struct Place {
    now: Arc<Mutex<Vec<Entry>>>,
    parts: Vec<String>,
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.now).retain(|entry| entry.parts != self.parts);
    }
}

fn locked(now: &Mutex<Vec<Entry>>) -> MutexGuard<'_, Vec<Entry>> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cut_short(fault: &Fault) -> DeployError {
    DeployError::start(
        format!("the fault `{}`", fault.says()),
        "was cut short with its stack",
        None,
    )
}
