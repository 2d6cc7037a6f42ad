//! Names of the ledger that are close to one which no record has: a slip in the name of a resource
//! must not pass for the answer that nobody touched it.

use std::collections::BTreeSet;

use rusqlite::{Connection, params_from_iter};
use text::near;
use touch::container::{contains, possible_containers};

use super::filter::{RecordFilter, is_pattern};
use super::reader::Reader;
use super::search::Conditions;
use crate::error::StoreError;

/// The names that are returned.
const NAMES_MAX: usize = 3;

/// The names that are compared: those next to the one asked for, and the newest.
const BESIDE_MAX: usize = 64;
const NEWEST_MAX: usize = 2_000;

/// The folders of a name that are compared, from the outermost: a name can have thousands.
const CONTAINERS_MAX: usize = 16;

/// The systems that are compared.
const SYSTEMS_MAX: usize = 200;

/// Stored names close to one of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearNames {
    /// The field of the filter: `target_system`, `target_resource` or `under`.
    pub field: &'static str,
    /// The closest first.
    pub names: Vec<String>,
}

impl Reader {
    /// Returns the stored names closest to the resource, folder or system of a filter, unless that is
    /// stored itself. Compares a bounded number of names.
    pub fn near_targets(&self, filter: &RecordFilter) -> Result<Option<NearNames>, StoreError> {
        self.pool.ask_at_once(|db| {
            let found = match near_system(db, filter)? {
                Some(found) => Some(found),
                None => near_resource(db, filter)?,
            };
            Ok(found.filter(|found| !found.names.is_empty()))
        })
    }
}

/// Returns the systems near to one that is not stored; none if it is, or none is asked for.
fn near_system(db: &Connection, filter: &RecordFilter) -> Result<Option<NearNames>, StoreError> {
    let Some(system) = &filter.target_system else {
        return Ok(None);
    };
    let mut is = Conditions::default();
    is.add("system = ?", [system.clone().into()]);
    if exists(db, &is)? {
        return Ok(None);
    }
    // One seek in the index for each.
    let sql = "WITH RECURSIVE known (name) AS (
        SELECT MIN(system) FROM targets
        UNION ALL
        SELECT (SELECT MIN(system) FROM targets WHERE system > known.name) FROM known
        WHERE known.name IS NOT NULL
      ) SELECT name FROM known WHERE name IS NOT NULL LIMIT ?";
    let mut statement = db.prepare_cached(sql)?;
    let systems = statement.query_map([SYSTEMS_MAX], |row| row.get(0))?;
    let systems: Vec<String> = systems.collect::<Result<_, _>>()?;
    let near = near::names(system, systems.iter().map(String::as_str), NAMES_MAX);
    let names = near.into_iter().map(str::to_owned).collect();
    Ok(Some(NearNames { field: "target_system", names }))
}

fn near_resource(db: &Connection, filter: &RecordFilter) -> Result<Option<NearNames>, StoreError> {
    let (field, asked) = match (&filter.under, &filter.target_resource) {
        (Some(folder), _) => ("under", folder),
        (None, Some(resource)) if !is_pattern(resource) => ("target_resource", resource),
        (None, _) => return Ok(None),
    };
    let is_folder = field == "under";
    let only = RecordFilter {
        target_system: filter.target_system.clone(),
        target_resource: (!is_folder).then(|| asked.clone()),
        under: is_folder.then(|| asked.clone()),
        ..RecordFilter::default()
    };
    if exists(db, &only.targets())? {
        return Ok(None);
    }
    let known = beside(db, filter.target_system.as_deref(), asked)?;
    let mut candidates: BTreeSet<&str> = known.iter().map(|one| one.name.as_str()).collect();
    if is_folder {
        for KnownResource { system, name } in &known {
            let containers = possible_containers(name).filter(|name| !name.ends_with('/'));
            let containers = containers.filter(|container| contains(system, container, name));
            candidates.extend(containers.take(CONTAINERS_MAX));
        }
    }
    let names = near::paths(asked, candidates, NAMES_MAX);
    Ok(Some(NearNames { field, names: names.into_iter().map(str::to_owned).collect() }))
}

/// A resource of the ledger.
struct KnownResource {
    system: String,
    name: String,
}

/// Returns resources next to a name in their order, and the newest.
fn beside(
    db: &Connection,
    system: Option<&str>,
    asked: &str,
) -> Result<Vec<KnownResource>, StoreError> {
    let newest = format!("target > (SELECT MAX(target) FROM targets) - {NEWEST_MAX}");
    let mut found = Vec::new();
    for (sql, value, order) in [
        ("resource >= ?", Some(asked), "resource"),
        ("resource < ?", Some(asked), "resource DESC"),
        (&newest, None, "target DESC"),
    ] {
        let mut conditions = Conditions::default();
        conditions.add_if("system = ?", system.map(str::to_owned));
        conditions.add(sql, value.map(|value| value.to_owned().into()));
        let limit = if value.is_some() { BESIDE_MAX } else { NEWEST_MAX };
        let tail = format!("ORDER BY {order} LIMIT {limit}");
        let sql = conditions.select("system, resource", "targets", &tail);
        let mut statement = db.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(conditions.values()), |row| {
            Ok(KnownResource { system: row.get(0)?, name: row.get(1)? })
        })?;
        for row in rows {
            found.push(row?);
        }
    }
    Ok(found)
}

fn exists(db: &Connection, targets: &Conditions) -> Result<bool, StoreError> {
    let mut statement = db.prepare_cached(&targets.select("1", "targets", "LIMIT 1"))?;
    Ok(statement.exists(params_from_iter(targets.values()))?)
}
