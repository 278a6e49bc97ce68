//! The configuration as others may see it, and the digest that tells whether two replicas run the same one.

use aws_lc_rs::digest::{SHA256, digest};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Common, Surface};
use crate::service::StartError;

/// The body of `/config`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct View {
    service: &'static str,
    version: &'static str,
    instance_id: String,
    /// SHA-256, in hexadecimal, of the settings: addresses and what tells replicas apart are left out, secrets count
    /// as the same.
    pub(crate) digest: String,
    config: Value,
}

/// Secrets and credentials hide themselves when they are serialized.
pub(crate) fn view<C: clap::Args + Serialize>(
    service: &'static str,
    instance_id: &str,
    common: &Common,
    config: &C,
) -> Result<View, StartError> {
    let fields = |value: Result<Value, serde_json::Error>| match value {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(StartError::Config(format!(
            "the configuration of {service} is not a struct but {other}"
        ))),
        Err(error) => Err(StartError::Config(format!(
            "the configuration of {service} cannot be shown: {error}"
        ))),
    };
    let mut shown = fields(serde_json::to_value(common))?;
    shown.insert("instance_id".to_owned(), instance_id.into());
    shown.extend(fields(serde_json::to_value(config))?);

    let surface = Surface::of::<C>(service);
    let local: Vec<&str> = surface
        .fields
        .iter()
        .filter(|field| field.local())
        .map(|field| field.id.as_str())
        .collect();
    let settings = settings(&shown, &local).to_string();
    let digest = digest(&SHA256, settings.as_bytes())
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(View {
        service,
        version: env!("CARGO_PKG_VERSION"),
        instance_id: instance_id.to_owned(),
        digest,
        config: Value::Object(shown),
    })
}

/// The fields without the local ones, in alphabetical order at every depth.
fn settings(fields: &Map<String, Value>, local: &[&str]) -> Value {
    let mut kept: Vec<(&String, Value)> = fields
        .iter()
        .filter(|(name, _)| !local.contains(&name.as_str()))
        .map(|(name, value)| match value {
            Value::Object(inner) => (name, settings(inner, local)),
            value => (name, value.clone()),
        })
        .collect();
    kept.sort_by_key(|(name, _)| *name);
    Value::Object(kept.into_iter().map(|(name, value)| (name.clone(), value)).collect())
}
