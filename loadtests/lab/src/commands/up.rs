//! `up`: brings the stack up and keeps it up until Ctrl-C.

mod background;

use std::collections::BTreeMap;
use std::time::Duration;

use deploy::control::Remote;
use deploy::{LinkName, PortBase, Stack, Topology};

use crate::commands::{DEFAULT_STACK, setup, table};
use crate::describe::Descriptions;
use crate::failure::{Failure, Outcome};
use crate::run::CLIENT;
use crate::{binaries, cli, duration};

/// Arguments of `up`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Replicas of a service, e.g. tour-data=2 (repeatable)
    #[arg(long, value_name = "SERVICE=N", value_parser = cli::replicas)]
    replicas: Vec<(String, u16)>,
    /// PostgreSQL preset: a file in deploy/postgres without .conf
    #[arg(long, value_name = "PRESET", default_value = "default")]
    postgres: String,
    /// How the tenant's row is written
    #[arg(long, value_name = "NAME")]
    touch: Option<String>,
    /// How the rows get in
    #[arg(long, value_name = "NAME")]
    inserts: Option<String>,
    /// How the message gets out
    #[arg(long, value_name = "NAME")]
    announce: Option<String>,
    /// Change of the schema beyond the migrations: a file in migrations/SERVICE/changes without .sql (repeatable)
    #[arg(long, value_name = "NAME")]
    schema: Vec<String>,
    /// Emulated round trip of a link (db, redis, broker), e.g. db=2ms (repeatable)
    #[arg(long, value_name = "LINK=TIME", value_parser = rtt)]
    rtt: Vec<(LinkName, Duration)>,
    /// Volume of fixed size for a server's data alone, so that its disk can be filled (root only), e.g. postgres=256MB
    #[arg(long, value_name = "SERVER=SIZE", value_parser = volume)]
    volume: Vec<(String, u64)>,
    /// Cores that each replica of a service may use, e.g. tour-data=0.5 (repeatable); takes control groups
    #[arg(long, value_name = "SERVICE=CORES", value_parser = cores)]
    cpus: Vec<(String, f64)>,
    /// Variable of a service, e.g. TOUR_DATA_DB_POOL_MAX=5 (repeatable)
    #[arg(long, value_name = "VARIABLE=VALUE", value_parser = cli::pair)]
    set: Vec<(String, String)>,
    /// First of the ports; `free` picks free ones
    #[arg(long, value_name = "PORT", value_parser = port_base)]
    port_base: Option<PortBase>,
    /// Name of the stack; its state is kept under that name
    #[arg(long, default_value = DEFAULT_STACK)]
    name: String,
    /// Return once the stack is ready and leave it running in the background
    #[arg(long)]
    detach: bool,
    /// This process is the background half of `--detach`
    #[arg(long, hide = true)]
    background: bool,
}

pub(crate) async fn run(args: Args) -> Outcome {
    if args.background {
        background::become_session_leader()?;
    } else {
        setup::ensure().await?;
        binaries::build().await?;
    }
    let topology = topology(&args)?;
    Descriptions::ask(topology.replicas.keys())
        .await?
        .check(&topology.settings)?;
    if Remote::find(&args.name).is_some() {
        return Err(Failure::Usage(format!(
            "stack `{0}` is already running; `cargo rowlock down --name {0}` ends it, --name gives this one another name",
            args.name
        )));
    }
    if args.detach {
        return background::start(&args.name).await;
    }
    let stack = Stack::up(topology, &mut |line| eprintln!("{line}")).await?;
    if let Some((replica, why)) = stack.unlimited().into_iter().next() {
        stack.down().await?;
        return Err(Failure::Missing(format!("--cpus: {replica} cannot be limited: {why}")));
    }
    println!("{}\n{}", addresses(&stack)?, background::READY);
    stack.supervise(&mut |line| eprintln!("{line}")).await?;
    Ok(())
}

fn topology(args: &Args) -> Outcome<Topology> {
    let mut topology = Topology::standard(&args.name);
    topology.postgres_preset.clone_from(&args.postgres);
    topology.schema.clone_from(&args.schema);
    topology.rtt = args.rtt.iter().copied().collect();
    topology.volumes = args.volume.iter().cloned().collect();
    topology.cpus = args.cpus.iter().cloned().collect();
    topology.port_base = args.port_base.unwrap_or(topology.port_base);
    for (service, replicas) in &args.replicas {
        let known: Vec<String> = topology.replicas.keys().cloned().collect();
        let Some(number) = topology.replicas.get_mut(service) else {
            return Err(Failure::Usage(format!(
                "there is no service `{service}`; services are: {}",
                known.join(", ")
            )));
        };
        *number = *replicas;
    }
    let axes = [
        ("TOUCH", &args.touch),
        ("INSERTS", &args.inserts),
        ("ANNOUNCE", &args.announce),
    ];
    let chosen = axes
        .iter()
        .filter_map(|(axis, name)| Some((format!("TOUR_DATA_{axis}"), (*name).clone()?)));
    topology.settings = merged(chosen.chain(args.set.iter().cloned()))?;
    Ok(topology)
}

/// Settings from several options; one variable must not be given two values.
fn merged(settings: impl Iterator<Item = (String, String)>) -> Outcome<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for (variable, value) in settings {
        if let Some(other) = all.insert(variable.clone(), value.clone())
            && other != value
        {
            return Err(Failure::Usage(format!(
                "{variable} is given twice: `{other}` and `{value}`"
            )));
        }
    }
    Ok(all)
}

fn addresses(stack: &Stack) -> Outcome<String> {
    let front = stack.front();
    let client = stack
        .client(CLIENT)
        .ok_or_else(|| Failure::Missing(format!("the stack has no client `{CLIENT}` to make requests with")))?;
    let mut table = table(["WHAT", "ADDRESS"]);
    table.add_row(["front (HAProxy)".to_owned(), format!("http://{front}")]);
    for service in stack.topology().replicas.keys() {
        for admin in stack.admin(service) {
            table.add_row([format!("{service}, admin"), format!("http://{admin}")]);
        }
    }
    table.add_row(["PostgreSQL".to_owned(), stack.postgres("tour_data")]);
    table.add_row(["Redis".to_owned(), stack.redis()]);
    table.add_row(["RabbitMQ".to_owned(), stack.amqp()]);
    Ok(format!(
        "{table}\n\nTOKEN=$(curl -s -u {}:{} -d grant_type=client_credentials http://{front}/oauth2/token | \
         sed 's/.*\"access_token\":\"\\([^\"]*\\)\".*/\\1/')\n\
         curl -i -H \"authorization: Bearer $TOKEN\" -H 'content-type: application/json' \
         -d @loadtests/payloads/create-tour.json http://{front}/api/v1/tours\n",
        client.id, client.secret
    ))
}

fn rtt(text: &str) -> Result<(LinkName, Duration), String> {
    let (link, time) = cli::pair(text)?;
    Ok((
        link.parse().map_err(|error: deploy::DeployError| error.to_string())?,
        duration::parse(&time)?,
    ))
}

fn cores(text: &str) -> Result<(String, f64), String> {
    let (service, cores) = cli::pair(text)?;
    match cores.parse() {
        Ok(cores) => Ok((service, cores)),
        Err(_) => Err(format!("`{cores}` is not a number of cores, such as 0.5")),
    }
}

fn volume(text: &str) -> Result<(String, u64), String> {
    let (server, size) = cli::pair(text)?;
    let wrong = || format!("`{size}` is not a size; write a number with a unit, such as 256MB or 1GB");
    let split = size.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = size[..split].parse().map_err(|_| wrong())?;
    let unit: u64 = match &size[split..] {
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    Ok((server, number.checked_mul(unit).ok_or_else(wrong)?))
}

fn port_base(text: &str) -> Result<PortBase, String> {
    if text == "free" {
        return Ok(PortBase::Free);
    }
    text.parse()
        .map(PortBase::Fixed)
        .map_err(|_| format!("`{text}` is neither a port nor `free`"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(arguments: &[&str]) -> Outcome<Topology> {
        topology(&Line::try_parse_from([&["up"], arguments].concat()).unwrap().args)
    }

    #[test]
    fn options_become_a_topology() {
        let topology = parse(&[
            "--replicas",
            "tour-data=2",
            "--touch",
            "none",
            "--rtt",
            "db=2ms",
            "--volume",
            "postgres=256MB",
            "--cpus",
            "tour-data=0.5",
            "--port-base",
            "free",
        ])
        .unwrap();
        assert_eq!(topology.cpus["tour-data"], 0.5);
        assert_eq!(topology.volumes["postgres"], 256_000_000);
        assert_eq!(topology.replicas["tour-data"], 2);
        assert_eq!(topology.replicas["gateway"], 1);
        assert_eq!(topology.settings["TOUR_DATA_TOUCH"], "none");
        assert_eq!(topology.rtt[&LinkName::Db], Duration::from_millis(2));
        assert_eq!(topology.port_base, PortBase::Free);
    }

    #[test]
    fn contradictions_and_unknown_services_are_wrong_usage() {
        for (arguments, told) in [
            (&["--replicas", "tourdata=2"][..], "tour-data"),
            (
                &["--touch", "none", "--set", "TOUR_DATA_TOUCH=update-last"],
                "given twice",
            ),
        ] {
            let failure = parse(arguments).unwrap_err();
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.to_string().contains(told), "{failure}");
        }
    }
}
