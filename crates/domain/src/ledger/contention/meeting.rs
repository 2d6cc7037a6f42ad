//! The meetings of agents at one resource, and the edges that they add up to.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::graph::{Closest, Edge, Node};
use super::{CROWD_MAX, Kind};

/// A resource at which two agents met, or all that is known of their meetings there.
#[derive(Clone, Copy)]
pub(super) struct Meeting<R> {
    pub(super) count: u64,
    pub(super) first_us: i64,
    /// Tells who came first where the times are equal.
    pub(super) first_turn: u64,
    pub(super) last_us: i64,
    pub(super) gap_us: i64,
    /// Of the closest meeting; the last one twice where two records tell it all.
    pub(super) records: [R; 3],
}

impl<R: Copy> Meeting<R> {
    /// A touch and what came before it.
    pub(super) fn new(before_us: i64, at_us: i64, turn: u64, records: [R; 3]) -> Meeting<R> {
        let gap_us = at_us.saturating_sub(before_us);
        Meeting { count: 1, first_us: at_us, first_turn: turn, last_us: at_us, gap_us, records }
    }

    fn earlier_than(&self, other: &Meeting<R>) -> bool {
        (self.first_us, self.first_turn) < (other.first_us, other.first_turn)
    }

    fn merge(&mut self, other: &Meeting<R>) {
        self.count += other.count;
        if other.earlier_than(self) {
            (self.first_us, self.first_turn) = (other.first_us, other.first_turn);
        }
        self.last_us = self.last_us.max(other.last_us);
        if other.gap_us < self.gap_us {
            self.gap_us = other.gap_us;
            self.records = other.records;
        }
    }
}

/// The resource at which agents meet, and its number among all.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) number: u64,
    pub(super) resource: &'a Arc<str>,
}

/// A square of places by places, one cell for each kind of meeting.
pub(super) struct Meetings<R> {
    cells: Vec<Option<Meeting<R>>>,
    /// The cells that hold something, and some that did: most are empty, and to look at each at every
    /// resource would cost more than all else.
    used: Vec<usize>,
}

const KINDS: usize = Kind::ALL.len();
const CELLS: usize = CROWD_MAX * CROWD_MAX * KINDS;

impl<R> Default for Meetings<R> {
    fn default() -> Meetings<R> {
        Meetings { cells: Vec::new(), used: Vec::new() }
    }
}

impl<R: Copy> Meetings<R> {
    /// `from` came first.
    pub(super) fn add(&mut self, from: usize, to: usize, kind: Kind, meeting: Meeting<R>) {
        if self.cells.is_empty() {
            self.cells.resize(CELLS, None);
        }
        let cell = cell(from, to, kind);
        match &mut self.cells[cell] {
            Some(known) => known.merge(&meeting),
            empty => {
                *empty = Some(meeting);
                self.used.push(cell);
            }
        }
    }

    /// Hands over all meetings of the agent at a place, which another one will take.
    pub(super) fn leave(
        &mut self,
        place: usize,
        agents: &[u32],
        key: Key<'_>,
        edges: &mut Edges<R>,
    ) {
        if self.used.is_empty() {
            return;
        }
        for other in 0..agents.len() {
            for (from, to) in [(place, other), (other, place)] {
                for kind in Kind::ALL {
                    self.hand_over(cell(from, to, kind), agents, key, edges);
                }
            }
        }
        if self.used.len() > CELLS {
            self.used.retain(|cell| self.cells[*cell].is_some());
            self.used.sort_unstable();
            self.used.dedup();
        }
    }

    /// In the order of the cells, so that of two meetings that are as close the same one is kept.
    pub(super) fn leave_all(&mut self, agents: &[u32], key: Key<'_>, edges: &mut Edges<R>) {
        let mut used = std::mem::take(&mut self.used);
        used.sort_unstable();
        for cell in used.drain(..) {
            self.hand_over(cell, agents, key, edges);
        }
        self.used = used;
    }

    fn hand_over(&mut self, cell: usize, agents: &[u32], key: Key<'_>, edges: &mut Edges<R>) {
        if let Some(meeting) = self.cells[cell].take() {
            let (from, to) = (cell / KINDS / CROWD_MAX, cell / KINDS % CROWD_MAX);
            edges.add((agents[from], agents[to]), Kind::ALL[cell % KINDS], key, &meeting);
        }
    }
}

fn cell(from: usize, to: usize, kind: Kind) -> usize {
    (from * CROWD_MAX + to) * KINDS + kind as usize
}

/// The edges of one system. Two agents share one for each kind, whoever came first; but a stale
/// read has a victim, and so a direction.
pub(super) struct Edges<R> {
    edges: HashMap<u64, Gathered<R>, BuildHasherDefault<Mix>>,
}

struct Gathered<R> {
    from: u32,
    to: u32,
    kind: Kind,
    whole: Meeting<R>,
    closest: Closest<R>,
}

impl<R> Default for Edges<R> {
    fn default() -> Edges<R> {
        Edges { edges: HashMap::default() }
    }
}

impl<R: Copy> Edges<R> {
    fn add(&mut self, pair: (u32, u32), kind: Kind, key: Key<'_>, meeting: &Meeting<R>) {
        let gathered = self.gathered(pair, kind, meeting);
        gathered.closest.add(key.number, key.resource, meeting);
    }

    /// The edge of two agents, with meetings added to it.
    fn gathered(
        &mut self,
        (from, to): (u32, u32),
        kind: Kind,
        meetings: &Meeting<R>,
    ) -> &mut Gathered<R> {
        let (low, high) =
            if kind == Kind::StaleRead { (from, to) } else { (from.min(to), from.max(to)) };
        // Thirty bits an agent; more agents than that do not fit into memory either.
        let place = u64::from(low) << 34 | u64::from(high) << 4 | kind as u64;
        let gathered = self.edges.entry(place).or_insert_with(|| Gathered {
            from,
            to,
            kind,
            whole: Meeting { count: 0, ..*meetings },
            closest: Closest::default(),
        });
        if meetings.earlier_than(&gathered.whole) {
            (gathered.from, gathered.to) = (from, to);
        }
        gathered.whole.merge(meetings);
        gathered
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Adds the edges of later resources of the same system, whose agents have these numbers here.
    pub(super) fn follow(&mut self, later: Edges<R>, numbers: &[u32]) {
        for edge in later.edges.into_values() {
            let pair = (numbers[edge.from as usize], numbers[edge.to as usize]);
            // Its turns were counted apart; where times are equal, the earlier resource was first.
            let whole = Meeting { first_turn: u64::MAX, ..edge.whole };
            self.gathered(pair, edge.kind, &whole).closest.follow(edge.closest);
        }
    }

    pub(super) fn publish(self, system: String, nodes: &[Node]) -> impl Iterator<Item = Edge<R>> {
        self.edges.into_values().map(move |gathered| {
            let Gathered { from, to, kind, whole, closest } = gathered;
            let name = |agent: u32| nodes[agent as usize].agent.clone();
            Edge::new((name(from), name(to)), kind, &system, &whole, closest)
        })
    }
}

/// The keys are numbers that were given here, so nobody can choose them to collide.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}
