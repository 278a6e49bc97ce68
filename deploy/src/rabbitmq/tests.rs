//! Against a real broker.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions},
    types::FieldTable,
};

use super::RabbitMq;
use crate::{
    ports::Ports,
    secrets::Secrets,
    setup,
    testing::{Folder, Started, listening},
    topology::PortBase,
};

async fn declare(channel: &Channel, queue: &str, passive: bool) -> u32 {
    let options = QueueDeclareOptions {
        durable: true,
        passive,
        ..Default::default()
    };
    let queue = channel
        .queue_declare(queue.into(), options, FieldTable::default())
        .await
        .unwrap();
    queue.message_count()
}

async fn publish(channel: &Channel, queue: &str) {
    let properties = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions::default();
    let confirm = channel
        .basic_publish("".into(), queue.into(), options, b"tour", properties)
        .await
        .unwrap();
    confirm.await.unwrap();
}

/// One test, because a broker takes seconds to start.
#[tokio::test]
async fn a_broker_starts_without_epmd_on_loopback_purges_every_queue_and_keeps_them_over_a_restart() {
    let folder = Folder::new("rabbit");
    let (ports, held) = Ports::reserve(PortBase::Free).unwrap();
    drop(held);
    let mut secrets = Secrets::open(folder.path()).unwrap();
    let programs = setup::binaries().unwrap();
    let broker = RabbitMq::new(&programs, folder.path(), &ports, &mut secrets).unwrap();
    let started = Started::new(&broker.launch().unwrap(), || broker.probe()).await;

    let listens = [broker.port, broker.distribution].map(|port| format!("127.0.0.1:{port}"));
    assert_eq!(listening(started.pid()), listens);
    for file in ["rabbitmq.config", "home/.erlang.cookie"] {
        let mode = folder
            .path()
            .join("rabbitmq")
            .join(file)
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }

    let connection = Connection::connect(&broker.url(None), ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    for queue in ["tour.created", "nobody.told.the.stack.of.this.one"] {
        declare(&channel, queue, false).await;
        for _ in 0..3 {
            publish(&channel, queue).await;
        }
        assert_eq!(declare(&channel, queue, true).await, 3);
    }
    broker.purge().await.unwrap();
    for queue in ["tour.created", "nobody.told.the.stack.of.this.one"] {
        assert_eq!(declare(&channel, queue, true).await, 0, "{queue}");
    }

    publish(&channel, "tour.created").await;
    connection.close(200, "done".into()).await.unwrap();
    started.stop().await;
    assert!(broker.probe().await.is_err());
    let _started = Started::new(&broker.launch().unwrap(), || broker.probe()).await;
    let connection = Connection::connect(&broker.url(None), ConnectionProperties::default())
        .await
        .unwrap();
    let channel = connection.create_channel().await.unwrap();
    assert_eq!(
        declare(&channel, "tour.created", true).await,
        1,
        "a persistent message is kept"
    );
}

#[test]
fn no_secret_is_in_the_environment_or_an_argument() {
    let broker = RabbitMq {
        program: "/usr/lib/rabbitmq/bin/rabbitmq-server".into(),
        erl_call: "erl_call".into(),
        dir: "/state/rabbitmq".into(),
        port: 17404,
        distribution: 17407,
        password: "sesame".to_owned(),
        cookie: "biscuit".to_owned(),
    };
    assert!(broker.config().contains("<<\"sesame\">>"));
    let environment = format!("{:?}", broker.environment(Path::new("/state/plugins")));
    assert!(
        !environment.contains("sesame") && !environment.contains("biscuit"),
        "{environment}"
    );
}
