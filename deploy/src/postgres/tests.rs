//! Against a real server.

use std::{fs, os::unix::fs::PermissionsExt as _};

use sqlx::{Connection as _, Executor as _, PgConnection};

use super::{Applied, Database, Postgres, Preset};
use crate::{
    schema::Change,
    setup,
    testing::{Folder, Started, free_port, listening},
};

struct Server {
    postgres: Postgres,
    started: Option<Started>,
    // Last: the server must be gone before its folder is.
    _folder: Folder,
}

impl Server {
    async fn start(name: &str, preset: &str) -> Self {
        let folder = Folder::new(name);
        let bin = setup::binaries().unwrap().postgres;
        let postgres = Postgres::new(&bin, folder.path(), free_port(), "secret".to_owned(), None).unwrap();
        let mut server = Self {
            postgres,
            started: None,
            _folder: folder,
        };
        server.restart(&Preset::load(preset).unwrap()).await;
        server
    }

    async fn restart(&mut self, preset: &Preset) {
        if let Some(started) = self.started.take() {
            started.stop().await;
        }
        let launch = self.postgres.launch(preset).await.unwrap();
        self.started = Some(Started::new(&launch, || self.postgres.probe()).await);
    }

    async fn show(&self, parameter: &str) -> String {
        let mut connection = self.postgres.connect("postgres").await.unwrap();
        sqlx::query_scalar("SELECT current_setting($1)")
            .bind(parameter)
            .fetch_one(&mut connection)
            .await
            .unwrap()
    }

    async fn url(&self, url: &str) -> PgConnection {
        PgConnection::connect(url).await.unwrap()
    }
}

fn tours() -> Database {
    Database {
        name: "tours".to_owned(),
        password: "owner".to_owned(),
        variant: None,
    }
}

/// What migrations do for a service: a table with rows in the snapshot, made by the owner.
async fn migrate(server: &Server, database: &Database) {
    server.postgres.prepare_snapshot(database).await.unwrap();
    let url = server
        .postgres
        .url_as(&database.name, &database.password, &database.snapshot(), None);
    let mut connection = server.url(&url).await;
    connection
        .execute("CREATE TABLE tenant AS SELECT n AS id, 'tenant ' || n AS name FROM generate_series(1, 40) AS n")
        .await
        .unwrap();
    connection.close().await.unwrap();
}

async fn rows(server: &Server, database: &Database) -> i64 {
    let url = server
        .postgres
        .url_as(&database.name, &database.password, &database.name, None);
    let mut connection = server.url(&url).await;
    sqlx::query_scalar("SELECT count(*) FROM tenant")
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_switch_of_presets_asks_for_a_restart_and_show_agrees_after_it() {
    let mut server = Server::start("pg-presets", "default").await;
    let [default, tuned] = ["default", "tuned"].map(|name| Preset::load(name).unwrap());
    server.postgres.verify(&default).await.unwrap();
    assert_eq!(server.show("shared_buffers").await, "128MB");
    assert_eq!(server.show("wal_buffers").await, "4MB");

    assert_eq!(server.postgres.apply(&tuned).await.unwrap(), Applied::NeedsRestart);
    let error = server.postgres.verify(&tuned).await.unwrap_err().to_string();
    assert!(error.contains("shared_buffers should be 1GB and is 128MB"), "{error}");
    server.restart(&tuned).await;
    server.postgres.verify(&tuned).await.unwrap();
    for (parameter, value) in [
        ("shared_buffers", "1GB"),
        ("wal_buffers", "64MB"),
        ("synchronous_commit", "off"),
    ] {
        assert_eq!(server.show(parameter).await, value);
    }
    assert_eq!(server.postgres.apply(&tuned).await.unwrap(), Applied::InForce);

    assert_eq!(server.postgres.apply(&default).await.unwrap(), Applied::NeedsRestart);
    server.restart(&default).await;
    server.postgres.verify(&default).await.unwrap();
    assert_eq!(server.show("synchronous_commit").await, "on");
}

#[tokio::test]
async fn a_preset_that_needs_no_restart_is_in_force_at_once_and_a_wrong_one_is_refused_with_its_line() {
    let server = Server::start("pg-reload", "default").await;
    let default = Preset::load("default").unwrap();
    let relaxed = default.with("synchronous_commit = off");
    assert_eq!(server.postgres.apply(&relaxed).await.unwrap(), Applied::InForce);
    assert_eq!(server.show("synchronous_commit").await, "off");

    let wrong = default.with("synchronous_commit = perhaps");
    let error = server.postgres.apply(&wrong).await.unwrap_err().to_string();
    assert!(
        error.contains("synchronous_commit") && error.contains("line"),
        "{error}"
    );

    let unknown = default.with("io_method = worker");
    let error = server.postgres.apply(&unknown).await.unwrap_err().to_string();
    assert!(error.contains("io_method"), "{error}");
}

#[tokio::test]
async fn restoring_brings_the_rows_back_and_ends_the_sessions_in_the_way() {
    let server = Server::start("pg-restore", "default").await;
    let database = tours();
    migrate(&server, &database).await;
    server.postgres.restore(&database).await.unwrap();
    assert_eq!(rows(&server, &database).await, 40);

    let owner = server
        .postgres
        .url_as(&database.name, &database.password, &database.name, None);
    let mut busy = server.url(&owner).await;
    busy.execute("DELETE FROM tenant WHERE id > 3").await.unwrap();
    let change = |sql: &str| Change {
        name: "extra".to_owned(),
        service: "tours".to_owned(),
        sql: sql.to_owned(),
    };
    let made = change("CREATE TABLE extra (id int PRIMARY KEY); CLUSTER extra USING extra_pkey");
    server.postgres.change(&database, &made).await.unwrap();
    let wrong = change("CREATE TABLE half (); CREATE TABEL other ()");
    let error = server.postgres.change(&database, &wrong).await.unwrap_err().to_string();
    assert!(
        error.contains("schema change `extra`") && error.contains("TABEL"),
        "{error}"
    );
    assert!(
        busy.execute("SELECT FROM half").await.is_err(),
        "half of a change was made"
    );
    busy.execute("BEGIN").await.unwrap();
    // Also a session on the snapshot, which would keep it from being copied.
    let _idle = server.url(&server.postgres.url(&database.snapshot(), None)).await;
    server.postgres.restore(&database).await.unwrap();

    assert!(
        busy.execute("SELECT 1").await.is_err(),
        "the session outlived its database"
    );
    assert_eq!(rows(&server, &database).await, 40);
    let mut fresh = server.url(&owner).await;
    assert!(
        fresh.execute("SELECT FROM extra").await.is_err(),
        "a table outlived the restore"
    );
    fresh
        .execute("UPDATE tenant SET name = 'mine' WHERE id = 1")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_copy_that_differs_from_its_snapshot_is_noticed() {
    let server = Server::start("pg-compare", "default").await;
    let database = tours();
    migrate(&server, &database).await;
    server.postgres.restore(&database).await.unwrap();
    let url = server.postgres.url(&database.name, None);
    server
        .url(&url)
        .await
        .execute("DELETE FROM tenant WHERE id = 7")
        .await
        .unwrap();
    let compared = super::databases::compare(&server.postgres, &database.snapshot(), &database.name).await;
    let error = compared.unwrap_err().to_string();
    assert!(error.contains("public.tenant: 39 rows instead of 40"), "{error}");

    // As many rows as there should be, and one of them is another.
    server.postgres.restore(&database).await.unwrap();
    let rename = "UPDATE tenant SET name = 'another' WHERE id = 7";
    server.url(&url).await.execute(rename).await.unwrap();
    let differing = server.postgres.differs(&database).await.unwrap();
    assert_eq!(differing, ["public.tenant: its 40 rows have other contents"]);
}

#[tokio::test]
async fn the_cluster_listens_on_loopback_alone_wants_a_password_and_is_closed_to_others() {
    let server = Server::start("pg-closed", "default").await;
    let port = server.postgres.port;
    let pid = server.started.as_ref().unwrap().pid();
    assert_eq!(listening(pid), [format!("127.0.0.1:{port}")]);
    let wrong = format!("postgres://rowlock:wrong@127.0.0.1:{port}/postgres");
    assert!(PgConnection::connect(&wrong).await.is_err());
    for path in ["data", "data/postgresql.conf", "data/rowlock-preset.conf"] {
        let mode = server.postgres.dir.join(path).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{path}: {mode:o}");
    }
    assert!(
        !server.postgres.dir.join("password").exists(),
        "the file for initdb was left behind"
    );
}

#[tokio::test]
async fn a_cluster_is_kept_with_its_password_and_made_anew_without() {
    let mut server = Server::start("pg-kept", "default").await;
    let preset = Preset::load("default").unwrap();
    let database = tours();
    migrate(&server, &database).await;
    server.restart(&preset).await;
    server.postgres.restore(&database).await.unwrap();
    assert_eq!(rows(&server, &database).await, 40);

    // A stack whose secrets were removed has another password.
    let mut stranger = server.postgres.clone();
    stranger.password = "another".to_owned();
    let error = stranger.launch(&preset).await.unwrap_err().to_string();
    let pid = server.started.as_ref().unwrap().pid();
    assert!(
        error.contains(&pid.to_string()),
        "a running cluster must not be replaced: {error}"
    );
    server.started.take().unwrap().stop().await;
    server.postgres = stranger;
    server.restart(&preset).await;
    assert_eq!(server.show("port").await, server.postgres.port.to_string());
}

#[tokio::test]
async fn a_socket_path_that_is_too_long_leaves_tcp() {
    let folder = Folder::new("pg-deep");
    let deep = folder.path().join("d".repeat(100));
    fs::create_dir_all(&deep).unwrap();
    let bin = setup::binaries().unwrap().postgres;
    let postgres = Postgres::new(&bin, &deep, free_port(), "secret".to_owned(), None).unwrap();
    let launch = postgres.launch(&Preset::load("default").unwrap()).await.unwrap();
    let _started = Started::new(&launch, || postgres.probe()).await;
    let mut connection = postgres.connect("postgres").await.unwrap();
    let sockets: String = sqlx::query_scalar("SHOW unix_socket_directories")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(sockets, "");
}
