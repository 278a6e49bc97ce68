//! A quantity of the arms against another: where it bends, what law it follows, what was predicted.

use serde::{Deserialize, Serialize};

/// Throughput over some arms' users, replicas, round trip or setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    pub(crate) title: String,
    /// What `x` is, with its unit.
    pub(crate) x_label: String,
    /// Sorted by `x`.
    pub(crate) points: Vec<CurvePoint>,
    pub(crate) knee: Knee,
    pub(crate) scalability: Scalability,
}

/// One arm on a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CurvePoint {
    pub(crate) arm: String,
    pub(crate) x: f64,
    /// Completed iterations a second, mean over the rounds.
    pub(crate) throughput: f64,
    pub(crate) ci95: Option<[f64; 2]>,
    pub(crate) p95_ms: f64,
    /// What the measured hold time of the hot row predicts as the most; absent where no hold was seen.
    pub(crate) ceiling_per_s: Option<f64>,
}

/// Where a curve bends most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Knee {
    /// Absent where there is none.
    pub(crate) x: Option<f64>,
    /// What was found, and by which method.
    pub(crate) says: String,
}

/// The Universal Scalability Law, fitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Scalability {
    /// Absent where there is nothing to fit.
    pub(crate) fit: Option<UslFit>,
    /// The fit in a sentence, or why there is none.
    pub(crate) says: String,
}

/// X(N) = λN / (1 + σ(N−1) + κN(N−1)), with λ > 0, 0 ≤ σ ≤ 1, κ ≥ 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct UslFit {
    /// Iterations a second at N = 1.
    pub(crate) lambda: f64,
    /// Contention: the share that is done one at a time.
    pub(crate) sigma: f64,
    /// Coherence: what each pair costs.
    pub(crate) kappa: f64,
    /// 95 % intervals from resampled rounds; absent with fewer than 4 rounds.
    pub(crate) lambda_ci95: Option<[f64; 2]>,
    pub(crate) sigma_ci95: Option<[f64; 2]>,
    pub(crate) kappa_ci95: Option<[f64; 2]>,
    /// N at which throughput is highest; absent where the law has no peak (κ = 0) or has it beyond the measured range.
    pub(crate) peak: Option<f64>,
    /// Interval of the peak; an end that is absent lies beyond the measured range. Absent with fewer than 4 rounds.
    pub(crate) peak_ci95: Option<[Option<f64>; 2]>,
    /// Largest distance of a point from the law, as a share of the point.
    pub(crate) worst_residual: f64,
}

impl UslFit {
    /// Throughput at `n`, which is at least 1.
    pub(crate) fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }
}
