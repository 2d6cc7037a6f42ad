//! The edges that result from the meetings of agents.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::closest::{Closest, ClosestLists};
use super::edge_id::EdgeId;
use super::graph::{AgentNode, Edge};
use super::meeting::Meeting;
use super::touch::ContentionKind;

/// The resource at which agents meet, and its number.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) number: u64,
    pub(super) resource: &'a Arc<str>,
    /// The container that one of the agents touched in place of the resource.
    pub(super) container: Option<&'a Arc<str>>,
}

/// Two agents, by their numbers.
#[derive(Clone, Copy)]
pub(super) struct AgentPair {
    /// The agent that came first.
    pub(super) from: u32,
    pub(super) to: u32,
}

/// The edges of one system. Two agents share one edge per kind, regardless of which came first; a
/// stale read has a victim and so a direction.
pub(super) struct Edges<R> {
    edges: HashMap<u64, Bond<R>, BuildHasherDefault<Mix>>,
}

/// All meetings of two agents of one kind.
struct Bond<R> {
    pair: AgentPair,
    kind: ContentionKind,
    /// One agent touched a container, the other its contents.
    is_within: bool,
    whole: Meeting<R>,
    closest: Closest<R>,
}

impl<R> Default for Edges<R> {
    fn default() -> Edges<R> {
        Edges { edges: HashMap::default() }
    }
}

impl<R: Copy> Edges<R> {
    pub(super) fn add(
        &mut self,
        pair: AgentPair,
        kind: ContentionKind,
        site: Site<'_>,
        meeting: &Meeting<R>,
    ) {
        let bond = self.bond(pair, (kind, site.container.is_some()), meeting);
        bond.closest.add(site, meeting);
    }

    /// Returns the edge between two agents after adding meetings to it.
    fn bond(
        &mut self,
        pair: AgentPair,
        (kind, is_within): (ContentionKind, bool),
        meetings: &Meeting<R>,
    ) -> &mut Bond<R> {
        let AgentPair { from, to } = pair;
        let (low, high) = if kind == ContentionKind::StaleRead {
            (from, to)
        } else {
            (from.min(to), from.max(to))
        };
        // Thirty bits per agent; more agents would not fit into memory either.
        let place =
            u64::from(low) << 34 | u64::from(high) << 4 | u64::from(is_within) << 3 | kind as u64;
        let bond = self.edges.entry(place).or_insert_with(|| Bond {
            pair,
            kind,
            is_within,
            whole: Meeting { count: 0, ..*meetings },
            closest: Closest::default(),
        });
        if meetings.earlier_than(&bond.whole) {
            bond.pair = pair;
        }
        bond.whole.merge(meetings);
        bond
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Appends the edges of later resources of the same system; `numbers` maps their agents'
    /// numbers.
    pub(super) fn follow(&mut self, later: Edges<R>, numbers: &[u32]) {
        for edge in later.edges.into_values() {
            let number = |agent: u32| numbers[agent as usize];
            let pair = AgentPair { from: number(edge.pair.from), to: number(edge.pair.to) };
            // Its turns were counted separately; at equal times, the earlier resource was first.
            let whole = Meeting { first_turn: u64::MAX, ..edge.whole };
            self.bond(pair, (edge.kind, edge.is_within), &whole).closest.follow(edge.closest);
        }
    }

    /// Returns the edges, which get their ids once they are chosen.
    pub(super) fn publish(
        self,
        system: String,
        nodes: &[AgentNode],
    ) -> impl Iterator<Item = Edge<R>> {
        let name = |agent: u32| nodes[agent as usize].agent.clone();
        self.edges.into_values().map(move |bond| {
            let Bond { pair, kind, whole, closest, .. } = bond;
            let resources_total = closest.total;
            let ClosestLists { resources, containers, records } = closest.lists(kind);
            Edge {
                id: EdgeId::default(),
                from: name(pair.from),
                to: name(pair.to),
                kind,
                system: system.clone(),
                resources,
                containers,
                resources_total,
                meetings: whole.count,
                first: whole.first_us,
                last: whole.last_us,
                smallest_gap_ms: whole.gap_us / 1000,
                records,
            }
        })
    }
}

/// A hasher for keys that are assigned here, so an attacker cannot choose them to collide.
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
