//! Whether requests reach everybody who should get some.

use std::collections::BTreeMap;

use anyhow::Context;

use super::{Found, Scene};
use crate::run::target::{CLIENT, reading};
use crate::token;

/// Requests for each member: with fewer an uneven start of the round would decide.
const EACH: usize = 4;
/// A check must not become a load.
const MOST: usize = 96;

/// Sends `count` requests to a service through the front, whatever is answered.
pub(super) async fn send(scene: &Scene<'_>, service: &str, count: usize) -> anyhow::Result<()> {
    let front = format!("http://{}", scene.stack.front());
    let client = scene.stack.client(CLIENT);
    let client = client.with_context(|| format!("the stack has no client `{CLIENT}`"))?;
    let reading = reading(service, &client).with_context(|| format!("nothing is known to ask {service} for"))?;
    let token = match reading.with_token {
        true => Some(token::fetch(&scene.http, &front, &client).await?),
        false => None,
    };
    for _ in 0..count {
        let request = scene.http.get(format!("{front}{}", reading.path));
        let request = match &token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        // Read to its end, so that the next one can use the connection.
        request.send().await?.bytes().await?;
    }
    Ok(())
}

/// How many requests show whether they are spread over so many members by so many who each take turns of their own.
pub(super) fn enough(members: usize, spreaders: usize) -> usize {
    (EACH * members * spreaders.max(1)).min(MOST)
}

/// Requests that each member got: everybody must have at least half of an even share.
pub(super) fn judge(by: &str, got: &BTreeMap<String, u64>) -> Found {
    let all: u64 = got.values().sum();
    let said: Vec<String> = got.iter().map(|(member, count)| format!("{member} {count}")).collect();
    let said = format!("of {all} requests {by} sent {}", said.join(", "));
    let least = all.div_ceil(2 * got.len().max(1) as u64).max(1);
    let short: Vec<&str> = got
        .iter()
        .filter(|(_, count)| **count < least)
        .map(|(member, _)| member.as_str())
        .collect();
    if short.is_empty() {
        Found::good(said)
    } else {
        Found::wrong(format!(
            "{said}; {} should have got {least} at least",
            short.join(" and ")
        ))
    }
}

/// How much each counter has grown; one that is gone has not.
pub(super) fn grown(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let grown = before.iter().map(|(name, count)| {
        (
            name.clone(),
            after.get(name).map_or(0, |now| now.saturating_sub(*count)),
        )
    });
    grown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(counts: &[u64]) -> BTreeMap<String, u64> {
        counts
            .iter()
            .zip(1..)
            .map(|(count, n)| (format!("gateway-{n}"), *count))
            .collect()
    }

    #[test]
    fn whoever_gets_less_than_half_of_an_even_share_is_named() {
        assert!(judge("HAProxy", &got(&[4, 4])).ok);
        assert!(judge("HAProxy", &got(&[6, 3, 4])).ok);
        assert!(judge("HAProxy", &got(&[3])).ok);
        let found = judge("HAProxy", &got(&[8, 0]));
        assert_eq!(
            found,
            Found::wrong("of 8 requests HAProxy sent gateway-1 8, gateway-2 0; gateway-2 should have got 2 at least")
        );
        assert!(!judge("HAProxy", &got(&[0])).ok);
    }

    #[test]
    fn a_counter_that_is_gone_has_not_grown() {
        let after = BTreeMap::from([("gateway-1".to_owned(), 9)]);
        assert_eq!(grown(&got(&[5, 5]), &after), got(&[4, 0]));
    }
}
