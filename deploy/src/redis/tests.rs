//! Against a real server.

use std::{os::unix::fs::PermissionsExt as _, time::Duration};

use super::Redis;
use crate::{
    setup,
    testing::{Folder, Started, free_port, listening},
};

#[tokio::test]
async fn redis_listens_on_loopback_wants_its_password_and_forgets_everything_when_asked() {
    let folder = Folder::new("redis");
    let dir = folder.path().join("redis");
    let program = setup::binaries().unwrap().redis;
    let redis = Redis::new(&program, &dir, free_port(), "sesame".to_owned());
    let launch = redis.launch().unwrap();
    let started = Started::new(&launch, || redis.probe()).await;

    assert_eq!(listening(started.pid()), [format!("127.0.0.1:{}", redis.port)]);
    assert_eq!(
        dir.join("redis.conf").metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    let stranger = Redis {
        password: "wrong".to_owned(),
        ..redis.clone()
    };
    assert!(stranger.probe().await.unwrap_err().contains("WRONGPASS"));

    assert_eq!(redis.ask("SET tenant BEHNGT").await.unwrap(), "+OK");
    assert_eq!(redis.ask("DBSIZE").await.unwrap(), ":1");
    redis.flush().await.unwrap();
    assert_eq!(redis.ask("EXISTS tenant").await.unwrap(), ":0");

    redis.ask("SET tenant BEHNGT").await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), started.stop())
        .await
        .unwrap();
    let _started = Started::new(&launch, || redis.probe()).await;
    assert_eq!(redis.ask("DBSIZE").await.unwrap(), ":0", "nothing is kept on disk");
}
