//! What a service is told of the issuer whose tokens it takes.

use crate::config::{Address, HumanDuration, Secret};

/// How a token is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// By the service itself, with the issuer's public keys: no request per token, and a token that was revoked counts
    /// until it expires.
    Jwks,
    /// By the issuer, asked for every token (RFC 7662): a revoked token stops at once, and without the issuer nobody gets
    /// in.
    Introspection,
}

/// Where tokens come from and whom they must be meant for.
#[derive(Clone, Debug, clap::Args, serde::Serialize)]
pub struct AuthConfig {
    /// URL of the token issuer; tokens must carry it as `iss`, character for character.
    #[arg(long)]
    pub auth_issuer: Address,
    /// Audience that tokens must name in `aud`.
    #[arg(long, default_value = "rowlock")]
    pub auth_audience: String,
    /// How tokens are checked: `jwks` with the issuer's public keys, `introspection` by asking the issuer each time.
    #[arg(long, value_enum, default_value = "jwks")]
    pub auth_check: Check,
    /// URL of the issuer's keys (JWKS); by default the one its discovery document names.
    #[arg(long)]
    pub auth_jwks_url: Option<Address>,
    /// URL of the issuer's introspection endpoint; by default the one its discovery document names.
    #[arg(long)]
    pub auth_introspection_url: Option<Address>,
    /// Client as which the service asks the introspection endpoint.
    #[arg(long)]
    pub auth_client_id: Option<String>,
    /// Secret of that client.
    #[arg(long)]
    pub auth_client_secret: Option<Secret>,
    /// How long a token that was found good counts as good without another check, at most until it expires; 0s checks each
    /// time. A token revoked meanwhile is let in for as long.
    #[arg(long, default_value = "0s")]
    pub auth_cache: HumanDuration,
    /// `typ` in the header of the issuer's access tokens; some issuers write JWT. Then nothing but the audience tells an
    /// access token from an ID token.
    #[arg(long, default_value = "at+jwt")]
    pub auth_token_type: String,
    /// Claim that holds the key of the tenant.
    #[arg(long, default_value = "tenant")]
    pub auth_tenant_claim: String,
}
