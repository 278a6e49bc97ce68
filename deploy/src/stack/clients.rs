//! The OAuth clients of a stack.

use std::collections::BTreeMap;

use crate::error::DeployError;
use crate::secrets::Secrets;
use crate::services::{Client, Description};
use crate::topology::Topology;

/// The clients that every stack has, each with the tenant of its tokens: the one the published load used, and another for
/// everything that one tenant must not do to the next.
const BASE: [(&str, &str); 2] = [("rowlock-load", "BEHNGT"), ("rowlock-other", "NORDEX")];

/// The clients that every stack has; the first is the load's.
pub(super) fn base(secrets: &mut Secrets) -> Result<Vec<Client>, DeployError> {
    BASE.iter().map(|(id, tenant)| client(id, tenant, secrets)).collect()
}

/// A client for each tenant that the topology asks for: the load's own, and further ones named after it.
///
/// # Errors
/// As of [`tenants`].
pub(super) fn of_load(
    topology: &Topology,
    descriptions: &BTreeMap<String, Description>,
    secrets: &mut Secrets,
) -> Result<Vec<Client>, DeployError> {
    let (own, _) = BASE[0];
    let numbered = tenants(topology, descriptions)?.into_iter().zip(1..);
    let clients = numbered.map(|(tenant, number)| match number {
        1 => client(own, tenant, secrets),
        _ => client(&format!("{own}-{number}"), tenant, secrets),
    });
    clients.collect()
}

/// The tenants that the topology asks for, by their keys: that of the load's own client first.
///
/// # Errors
/// Wrong usage: the services know fewer.
pub(super) fn tenants<'a>(
    topology: &Topology,
    descriptions: &'a BTreeMap<String, Description>,
) -> Result<Vec<&'a str>, DeployError> {
    let (_, first) = BASE[0];
    let described = descriptions.values().flat_map(Description::tenants);
    let mut known: Vec<&str> = std::iter::once(first)
        .chain(described.filter(|key| *key != first))
        .collect();
    if known.len() < usize::from(topology.tenants) {
        return Err(DeployError::Usage(format!(
            "clients for {} tenants are not possible: the services of this stack know {}",
            topology.tenants,
            known.len()
        )));
    }
    known.truncate(usize::from(topology.tenants));
    Ok(known)
}

fn client(id: &str, tenant: &str, secrets: &mut Secrets) -> Result<Client, DeployError> {
    Ok(Client {
        id: id.to_owned(),
        secret: secrets.get(&format!("client {id}"))?,
        tenant: tenant.to_owned(),
    })
}
