//! One row of a comparison: several ways to the same tool under the same load, measured in turn.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::figures::{median, quantile};
use tokio::process::Command;

use super::load::{Burst, Crew, Target};
use super::pipes::PipeCrew;
use super::tree;

/// Fills caches and pools before the first round.
const WARM_UP: Duration = Duration::from_millis(200);

#[derive(Clone, Copy)]
pub(crate) struct Rounds {
    pub(crate) count: usize,
    /// The time of each way in a round.
    pub(crate) time: Duration,
}

#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) clients: usize,
    pub(crate) payload_bytes: usize,
}

pub(crate) struct Way {
    pub(crate) name: String,
    pub(crate) route: Route,
    /// The process whose processor time and memory count, with its children.
    pub(crate) pid: Option<u32>,
}

pub(crate) enum Route {
    Http(Target),
    /// Starts a server, or what stands in for it, on pipes.
    Pipes(Box<dyn Fn() -> Command>),
}

enum WayCrew {
    Http(Crew),
    Pipes(Box<PipeCrew>),
}

impl WayCrew {
    async fn open(route: &Route, clients: usize) -> Result<WayCrew, String> {
        match route {
            Route::Http(target) => Crew::open(target, clients).await.map(WayCrew::Http),
            Route::Pipes(command) => {
                let crew = PipeCrew::start(&mut command(), clients).await?;
                Ok(WayCrew::Pipes(Box::new(crew)))
            }
        }
    }

    async fn work(&mut self, time: Duration, payload_bytes: usize) -> Burst {
        match self {
            WayCrew::Http(crew) => crew.work(time, payload_bytes).await,
            WayCrew::Pipes(crew) => crew.work(time, payload_bytes).await,
        }
    }

    fn pid(&self) -> Option<u32> {
        match self {
            WayCrew::Http(_) => None,
            WayCrew::Pipes(crew) => crew.pid(),
        }
    }
}

/// The figures of one way in one round.
struct Round {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: Option<f64>,
}

/// A way as it was measured.
#[derive(Default)]
struct WayFigures {
    name: String,
    /// `None` for a round in which no call succeeded.
    rounds: Vec<Option<Round>>,
    rss_mb: Option<f64>,
    errors: usize,
    fault: Option<String>,
}

/// The measured ways, in the order given: the first is the direct one, and the one named `floor`
/// the relay.
pub(crate) struct Row {
    load: Load,
    ways: Vec<WayFigures>,
}

pub(crate) const FLOOR: &str = "floor";

impl Row {
    pub(crate) async fn measure(ways: &[Way], load: Load, rounds: Rounds) -> Row {
        let mut crews = Vec::with_capacity(ways.len());
        let mut measured = Vec::with_capacity(ways.len());
        for way in ways {
            let mut crew = WayCrew::open(&way.route, load.clients).await;
            let mut of_way = WayFigures { name: way.name.clone(), ..WayFigures::default() };
            match &mut crew {
                Ok(crew) => drop(crew.work(WARM_UP, load.payload_bytes).await),
                Err(fault) => of_way.fault = Some(fault.clone()),
            }
            let crew = crew.ok();
            let pid = way.pid.or(crew.as_ref().and_then(WayCrew::pid));
            crews.push((crew, pid));
            measured.push(of_way);
        }
        for _ in 0..rounds.count {
            for ((crew, pid), of_way) in crews.iter_mut().zip(&mut measured) {
                if let Some(crew) = crew {
                    let before = pid.map(tree::cpu_seconds);
                    let burst = crew.work(rounds.time, load.payload_bytes).await;
                    let cpu = pid.map(tree::cpu_seconds).zip(before).map(|(now, then)| now - then);
                    of_way.add(burst, cpu);
                    of_way.rss_mb = pid.map(tree::rss_mb);
                }
            }
        }
        Row { load, ways: measured }
    }

    #[allow(clippy::print_stdout, reason = "the table is what the program is for")]
    pub(crate) fn print(&self, stage: &str) {
        let (clients, bytes) = (self.load.clients, self.load.payload_bytes);
        let payload = match bytes {
            1_048_576.. => format!("{} MB", bytes >> 20),
            1_024.. => format!("{} KB", bytes >> 10),
            _ => format!("{bytes} B"),
        };
        println!("\n{stage}, {payload}, C = {clients}\n");
        println!("| way | calls a second | p50 | p99 | CPU per call | RSS | adds p50 | adds p99 |");
        println!("|---|---|---|---|---|---|---|---|");
        for way in &self.ways {
            println!("| {} |", self.cells(way).join(" | "));
        }
        for way in &self.ways {
            if let Some(fault) = &way.fault {
                println!("\n{}: {fault}", way.name);
            }
        }
    }

    fn cells(&self, way: &WayFigures) -> Vec<String> {
        let cell = |value: Option<f64>, unit: &str| match value {
            Some(value) => format!("{value:.0}{unit}"),
            None => "–".to_owned(),
        };
        let added = |of: fn(&Round) -> f64| match (self.added(way, of), self.beside_floor(way, of))
        {
            (Some(adds), Some(ratio)) => format!("{adds:+.0} µs, {ratio:.2} × floor"),
            (Some(adds), None) => format!("{adds:+.0} µs"),
            _ => "–".to_owned(),
        };
        let mut name = way.name.clone();
        if way.errors > 0 {
            name = format!("{name} ({} errors)", way.errors);
        }
        vec![
            name,
            cell(way.median(|round| Some(round.per_second)), ""),
            cell(way.median(|round| Some(round.p50_us)), " µs"),
            cell(way.median(|round| Some(round.p99_us)), " µs"),
            cell(way.median(|round| round.cpu_us), " µs"),
            cell(way.rss_mb, " MB"),
            added(|round| round.p50_us),
            added(|round| round.p99_us),
        ]
    }

    /// Returns the median over the rounds of what a way takes longer than the direct one.
    fn added(&self, way: &WayFigures, of: fn(&Round) -> f64) -> Option<f64> {
        let direct = self.ways.first().filter(|direct| direct.name != way.name)?;
        let pairs = way.rounds.iter().zip(&direct.rounds);
        let differences: Vec<f64> = pairs
            .filter_map(|(way, direct)| Some(of(way.as_ref()?) - of(direct.as_ref()?)))
            .collect();
        (!differences.is_empty()).then(|| median(&differences))
    }

    /// Returns what a way adds as a multiple of what the relay adds.
    fn beside_floor(&self, way: &WayFigures, of: fn(&Round) -> f64) -> Option<f64> {
        let floor = self.ways.iter().find(|other| other.name == FLOOR)?;
        let least = self.added(floor, of).filter(|least| *least > 0.0)?;
        (way.name != FLOOR).then(|| self.added(way, of)).flatten().map(|adds| adds / least)
    }

    pub(crate) fn json(&self) -> Value {
        let ways: Vec<Value> = self.ways.iter().map(|way| self.way_json(way)).collect();
        json!({
            "clients": self.load.clients,
            "payload_bytes": self.load.payload_bytes,
            "ways": ways,
        })
    }

    fn way_json(&self, way: &WayFigures) -> Value {
        let p50 = |round: &Round| round.p50_us;
        let p99 = |round: &Round| round.p99_us;
        json!({
            "way": way.name,
            "served": way.rounds.iter().any(Option::is_some),
            "calls_per_second": tenth(way.median(|round| Some(round.per_second))),
            "p50_us": tenth(way.median(|round| Some(round.p50_us))),
            "p99_us": tenth(way.median(|round| Some(round.p99_us))),
            "cpu_us_per_call": tenth(way.median(|round| round.cpu_us)),
            "rss_mb": tenth(way.rss_mb),
            "added_p50_us": tenth(self.added(way, p50)),
            "added_p99_us": tenth(self.added(way, p99)),
            "added_p50_by_floor": hundredth(self.beside_floor(way, p50)),
            "added_p99_by_floor": hundredth(self.beside_floor(way, p99)),
            "errors": way.errors,
            "evidence": way.fault,
        })
    }
}

impl WayFigures {
    fn add(&mut self, burst: Burst, cpu_seconds: Option<f64>) {
        let calls = burst.samples_us.len();
        self.errors += burst.errors;
        self.fault = self.fault.take().or(burst.first_error);
        self.rounds.push((calls > 0).then(|| Round {
            per_second: calls as f64 / burst.seconds,
            p50_us: median(&burst.samples_us),
            p99_us: quantile(&burst.samples_us, 0.99),
            cpu_us: cpu_seconds.map(|seconds| seconds * 1e6 / calls as f64),
        }));
    }

    fn median(&self, of: fn(&Round) -> Option<f64>) -> Option<f64> {
        let figures: Vec<f64> = self.rounds.iter().flatten().filter_map(of).collect();
        (!figures.is_empty()).then(|| median(&figures))
    }
}

fn tenth(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 10.0).round() / 10.0)
}

fn hundredth(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 100.0).round() / 100.0)
}
