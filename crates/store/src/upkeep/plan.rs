//! The plan of a round: the rows that leave so that the limits hold. Each token, and each workflow
//! for what its steps put out, keeps up to a level that is the same for all: a holder of more loses
//! the oldest of it, and a holder of less loses nothing, whatever others record.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rusqlite::{Connection, Params};

use super::deletion::ExpiringRow;
use super::meter::part;
use super::rules::RetentionRules;
use crate::error::StoreError;

/// The bytes of a record's texts; numbers and indexes are in proportion to them.
const RECORD_BYTES: &str = "octet_length(concat(id, source, surface, server, tool, session_id,
    request_id, error_message, reason, receipt_id, trace_id, warnings, correlation_id))";

const PAYLOAD_BYTES: &str =
    "COALESCE(octet_length(arguments), 0) + COALESCE(octet_length(response), 0)";

/// The rows to delete, oldest first.
#[derive(Debug, Default)]
pub(crate) struct DeletionPlan {
    /// Records beyond the limit on their number.
    pub(crate) surplus: VecDeque<ExpiringRow>,
    pub(crate) payloads: VecDeque<ExpiringRow>,
    /// Steps of runs whose outputs leave.
    pub(crate) outputs: VecDeque<ExpiringRow>,
    /// Records that leave because even without payloads their holders have too much.
    pub(crate) records: VecDeque<ExpiringRow>,
}

/// The bytes of the pages of the tables.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TablePages {
    pub(crate) records: u64,
    pub(crate) payloads: u64,
    pub(crate) runs: u64,
}

/// The part of the ledger that one token has; bytes are those of texts.
#[derive(Default)]
struct TokenHolding {
    token: Arc<str>,
    records: u64,
    record_bytes: u64,
    payload_bytes: u64,
}

/// The tokens of the ledger, and which one an agent has.
#[derive(Default)]
struct TokenHoldings {
    tokens: Vec<TokenHolding>,
    by_agent: HashMap<i64, usize>,
}

/// The measure of a loss.
#[derive(Clone, Copy)]
enum LossUnit {
    Rows,
    Bytes,
}

/// The losses of the holders in bytes of texts; tokens are in their order.
struct ByteLosses {
    payloads: Vec<u64>,
    records: Vec<u64>,
    outputs: HashMap<Arc<str>, u64>,
}

impl DeletionPlan {
    /// Plans the deletions after which the limits hold; records from `day_us` on stay.
    pub(crate) fn new(
        db: &Connection,
        rules: &RetentionRules,
        day_us: i64,
        pages: TablePages,
    ) -> Result<DeletionPlan, StoreError> {
        let holdings = TokenHoldings::of(db)?;
        let outputs = step_outputs(db)?;
        let most = level(holdings.tokens.iter().map(|it| it.records), rules.records_max);
        let rows = holdings.tokens.iter().map(|it| it.records.saturating_sub(most)).collect();
        let losses = holdings.byte_losses(&outputs, rules.bytes_max(), pages);
        let payloads = format!(
            "SELECT payloads.number, agent, started_us, {PAYLOAD_BYTES}
             FROM payloads JOIN activity USING (number) ORDER BY payloads.number"
        );
        let records = format!(
            "SELECT number, agent, started_us, {RECORD_BYTES}
             FROM activity INDEXED BY activity_started WHERE started_us < ?1 ORDER BY started_us"
        );
        Ok(DeletionPlan {
            surplus: holdings.oldest((db, &records, [day_us]), rows, LossUnit::Rows)?,
            payloads: holdings.oldest((db, &payloads, []), losses.payloads, LossUnit::Bytes)?,
            outputs: oldest_outputs(outputs, losses.outputs),
            records: holdings.oldest((db, &records, [day_us]), losses.records, LossUnit::Bytes)?,
        })
    }
}

impl TokenHoldings {
    fn of(db: &Connection) -> Result<TokenHoldings, StoreError> {
        let mut holdings = TokenHoldings::default();
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        let mut agents =
            db.prepare("SELECT agent, token, octet_length(concat(name, client)) FROM agents")?;
        let mut rows = agents.query([])?;
        while let Some(row) = rows.next()? {
            let token: Arc<str> = row.get::<_, String>(1)?.into();
            let place = *places.entry(token.clone()).or_insert_with(|| {
                holdings.tokens.push(TokenHolding { token, ..TokenHolding::default() });
                holdings.tokens.len() - 1
            });
            holdings.tokens[place].record_bytes += row.get::<_, u64>(2)?;
            holdings.by_agent.insert(row.get(0)?, place);
        }
        let mut records = db.prepare(&format!(
            "SELECT agent, {RECORD_BYTES}, {PAYLOAD_BYTES}
             FROM activity NOT INDEXED LEFT JOIN payloads USING (number)"
        ))?;
        let mut rows = records.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(holding) = holdings.of_agent(row.get(0)?) {
                holding.records += 1;
                holding.record_bytes += row.get::<_, u64>(1)?;
                holding.payload_bytes += row.get::<_, u64>(2)?;
            }
        }
        // A name that several have touched counts as one agent's.
        let mut targets = db.prepare(
            "SELECT (SELECT who / 4 FROM touches WHERE touches.target = targets.target LIMIT 1),
               octet_length(resource) FROM targets",
        )?;
        let mut rows = targets.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(holding) = holdings.of_agent(row.get::<_, Option<i64>>(0)?.unwrap_or(0)) {
                holding.record_bytes += row.get::<_, u64>(1)?;
            }
        }
        Ok(holdings)
    }

    fn of_agent(&mut self, agent: i64) -> Option<&mut TokenHolding> {
        self.by_agent.get(&agent).map(|place| &mut self.tokens[*place])
    }

    /// Divides what is too much among those who hold more than the level; payloads leave first.
    fn byte_losses(
        &self,
        outputs: &[ExpiringRow],
        bytes_max: u64,
        pages: TablePages,
    ) -> ByteLosses {
        let sum = |bytes: fn(&TokenHolding) -> u64| self.tokens.iter().map(bytes).sum::<u64>();
        let (all_records, all_payloads) = (sum(|it| it.record_bytes), sum(|it| it.payload_bytes));
        let all_outputs: u64 = outputs.iter().map(|it| it.bytes).sum();
        let mut by_workflow: HashMap<Arc<str>, u64> = HashMap::new();
        for output in outputs {
            *by_workflow.entry(output.holder.clone().unwrap_or_default()).or_default() +=
                output.bytes;
        }
        let parts: Vec<(u64, u64)> = self
            .tokens
            .iter()
            .map(|it| {
                let records = part(pages.records, it.record_bytes, all_records);
                (records, part(pages.payloads, it.payload_bytes, all_payloads))
            })
            .collect();
        let of_workflow = |bytes: u64| part(pages.runs, bytes, all_outputs);
        let tokens = parts.iter().map(|(records, payloads)| records + payloads);
        let workflows = by_workflow.values().map(|bytes| of_workflow(*bytes));
        let most = level(tokens.chain(workflows), bytes_max);
        let mut losses =
            ByteLosses { payloads: Vec::new(), records: Vec::new(), outputs: HashMap::new() };
        for (holding, (records, payloads)) in self.tokens.iter().zip(parts) {
            let loss = (records + payloads).saturating_sub(most);
            let of_payloads = loss.min(payloads);
            losses.payloads.push(planned(holding.payload_bytes, of_payloads, payloads));
            losses.records.push(planned(holding.record_bytes, loss - of_payloads, records));
        }
        for (workflow, bytes) in by_workflow {
            let held = of_workflow(bytes);
            losses.outputs.insert(workflow, planned(bytes, held.saturating_sub(most), held));
        }
        losses
    }

    /// Returns the oldest rows of those who lose some, until each has lost as much as this.
    fn oldest(
        &self,
        (db, sql, values): (&Connection, &str, impl Params),
        mut losses: Vec<u64>,
        unit: LossUnit,
    ) -> Result<VecDeque<ExpiringRow>, StoreError> {
        let mut found = VecDeque::new();
        let mut losers = losses.iter().filter(|loss| **loss > 0).count();
        let mut statement = db.prepare(sql)?;
        let mut rows = statement.query(values)?;
        while losers > 0
            && let Some(row) = rows.next()?
        {
            let (number, at_us, bytes) = (row.get(0)?, row.get(2)?, row.get(3)?);
            let place = self.by_agent.get(&row.get(1)?).copied();
            let Some(place) = place.filter(|place| losses[*place] > 0) else {
                continue;
            };
            let cost = match unit {
                LossUnit::Rows => 1,
                LossUnit::Bytes => bytes,
            };
            losses[place] = losses[place].saturating_sub(cost);
            losers -= usize::from(losses[place] == 0);
            let holder = Some(self.tokens[place].token.clone());
            found.push_back(ExpiringRow { number, at_us, bytes, holder });
        }
        Ok(found)
    }
}

/// Returns the steps that have outputs, oldest first, with their workflows.
fn step_outputs(db: &Connection) -> Result<Vec<ExpiringRow>, StoreError> {
    let mut statement = db.prepare(
        "SELECT run_steps.rowid, run_steps.started_us, workflow,
           COALESCE(octet_length(output), 0) + COALESCE(octet_length(stderr), 0)
             + COALESCE((SELECT SUM(octet_length(text)) FROM run_texts
                 WHERE run_texts.run = run_steps.run AND step = run_steps.number), 0)
         FROM run_steps INDEXED BY run_steps_output JOIN runs ON runs.number = run
         WHERE output IS NOT NULL OR stderr IS NOT NULL ORDER BY run_steps.started_us",
    )?;
    let rows = statement.query_map([], |row| {
        let holder = Some(row.get::<_, String>(2)?.into());
        Ok(ExpiringRow { number: row.get(0)?, at_us: row.get(1)?, bytes: row.get(3)?, holder })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn oldest_outputs(
    outputs: Vec<ExpiringRow>,
    mut losses: HashMap<Arc<str>, u64>,
) -> VecDeque<ExpiringRow> {
    let mut outputs = VecDeque::from(outputs);
    outputs.retain(|output| {
        let loss = output.holder.as_ref().and_then(|workflow| losses.get_mut(workflow));
        loss.is_some_and(|loss| {
            let is_lost = *loss > 0;
            *loss = loss.saturating_sub(output.bytes);
            is_lost
        })
    });
    outputs
}

/// Returns the bytes of texts that correspond to so many bytes of pages, with a margin: pages
/// become free only when nothing is left in them. The round ends as soon as enough of them are
/// free.
fn planned(texts: u64, lost_pages: u64, pages: u64) -> u64 {
    let lost = part(texts, lost_pages, pages);
    lost + lost / 8
}

/// Returns the level up to which each may hold something, so that all together fit the limit.
fn level(held: impl Iterator<Item = u64>, limit: u64) -> u64 {
    let mut held: Vec<u64> = held.collect();
    held.sort_unstable();
    let (mut left, mut count) = (limit, held.len() as u64);
    for amount in held {
        let share = left / count;
        if amount > share {
            return share;
        }
        (left, count) = (left - amount, count - 1);
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_takes_from_those_above_it_alone() {
        for (held, limit, expected) in [
            (&[][..], 10, u64::MAX),
            (&[4, 6], 10, u64::MAX),
            (&[4, 7], 10, 6),
            (&[100, 1, 2], 10, 7),
            (&[100, 100, 1], 11, 5),
            (&[3, 3, 3], 0, 0),
        ] {
            assert_eq!(level(held.iter().copied(), limit), expected, "{held:?}");
        }
    }
}
