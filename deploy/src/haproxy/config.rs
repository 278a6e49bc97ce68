//! The generated configuration.

use minijinja::{Environment, UndefinedBehavior, context};

use super::Gateway;
use crate::DeployError;

/// The backend with the gateways.
pub(super) const BACKEND: &str = "gateways";
/// The admin socket, in HAProxy's working directory.
pub(super) const SOCKET: &str = "admin.sock";
/// How a gateway is checked: once a second while all is well, more often while it changes, so that a replica that became
/// ready waits for no more than a fifth of a second.
pub(super) const CHECK: &str = "check inter 1s fastinter 200ms downinter 200ms fall 2 rise 1";

const TEMPLATE: &str = include_str!("haproxy.cfg.j2");

pub(super) fn render(front: u16, stats: u16, gateways: &[Gateway]) -> Result<String, DeployError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let gateways: Vec<_> = gateways
        .iter()
        .map(|gateway| context! { number => gateway.number, http => gateway.http, admin => gateway.admin })
        .collect();
    let values = context! {
        front, stats, gateways, socket => SOCKET, backend => BACKEND, check => CHECK
    };
    let mut text = environment
        .render_str(TEMPLATE, values)
        .map_err(|error| DeployError::server("writing HAProxy's configuration", error))?;
    // HAProxy takes a last line without its end for a truncated file.
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gateway_is_a_numbered_server_checked_on_its_admin_port() {
        let gateways = [1, 2].map(|number| Gateway {
            number,
            http: 20000 + number,
            admin: 30000 + number,
        });
        let text = render(17400, 17401, &gateways).unwrap();
        for line in [
            "    bind 127.0.0.1:17400",
            "    server gateway-1 127.0.0.1:20001 port 30001 check inter 1s",
            "    server gateway-2 127.0.0.1:20002 port 30002 check inter 1s",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
