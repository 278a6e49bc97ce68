//! Where the replicas of each service listen, from a file that may change while the edge runs, and which are ready.

mod file;
mod health;
mod metrics;
mod replicas;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chassis::readiness::{Dependency, Kind};
use chassis::service::StartError;
use futures::FutureExt;

pub(crate) use health::check;
pub(crate) use replicas::{Keys, Replica, Rotation};
pub(crate) use watch::watch;

use file::{EndpointsFile, Unusable};

/// The services behind the edge.
#[derive(Clone, Copy)]
pub(crate) enum Backend {
    User,
    TourData,
}

/// The replicas of each backend as last read.
pub(crate) struct Endpoints {
    path: PathBuf,
    user: Rotation,
    tour_data: Rotation,
}

impl Endpoints {
    /// A file that is missing or malformed at start is wrong configuration. One without any replica is not: they may
    /// come later, and until then the routes answer 503.
    pub(crate) fn load(path: &str) -> Result<Arc<Self>, StartError> {
        let path = PathBuf::from(path);
        let file = EndpointsFile::read(&path).map_err(|problem| {
            StartError::Config(format!(
                "GATEWAY_ENDPOINTS_FILE: {}: {problem}; write {{\"services\":{{\"tour-data\":[{{\"http\":\"IP:PORT\"}}],…}}}} \
                 before the gateway starts",
                path.display()
            ))
        })?;
        let endpoints = Self {
            path,
            user: Rotation::new("user", Keys::Ignored),
            tour_data: Rotation::new("tour-data", Keys::Honoured),
        };
        endpoints.apply(&file);
        let endpoints = Arc::new(endpoints);
        metrics::observe(&endpoints);
        Ok(endpoints)
    }

    pub(crate) fn backend(&self, backend: Backend) -> &Rotation {
        match backend {
            Backend::User => &self.user,
            Backend::TourData => &self.tour_data,
        }
    }

    /// The backends as `/readyz` names them. None of them makes the edge unready: one lost backend would otherwise take
    /// every route down with it.
    pub(crate) fn dependencies(self: &Arc<Self>) -> Vec<Dependency> {
        let dependency = |backend| {
            let endpoints = Arc::clone(self);
            Dependency::new(self.backend(backend).service(), Kind::Degradable, move || {
                let state = endpoints.backend(backend).state();
                async move { state }.boxed()
            })
        };
        [Backend::User, Backend::TourData].map(dependency).into()
    }

    fn all(&self) -> impl Iterator<Item = &Rotation> {
        [&self.user, &self.tour_data].into_iter()
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file again; on any problem the last good state stays.
    fn reload(&self) -> Result<(), Unusable> {
        self.apply(&EndpointsFile::read(&self.path)?);
        Ok(())
    }

    fn apply(&self, file: &EndpointsFile) {
        for rotation in self.all() {
            let entries = file.replicas(rotation.service());
            if rotation.set(entries) {
                tracing::info!(backend = rotation.service(), replicas = ?entries, "the replicas changed");
            }
        }
    }
}
