//! Agents that touch the same thing. Touches come in resource by resource, sorted by time; what
//! comes out is a graph of agents, with an edge where two of them met at one resource within the
//! window. A touch is compared with the latest touches of the other agents only, so that a
//! resource that everybody works on costs its touches times its agents and no more.

mod graph;
mod meeting;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

pub use graph::{EDGES_MAX, Edge, Graph, NODES_MAX, Node, RECORDS_MAX, RESOURCES_MAX};
use meeting::{Edges, Key, Meeting, Meetings};
use serde::Serialize;

/// Agents of one resource that a touch is compared with, the latest first. More within one window
/// is a crowd, not a contention that anybody can read.
pub const CROWD_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Doing {
    Read,
    Write,
}

/// The worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One read, another wrote, and the first wrote on without looking again.
    StaleRead,
    WriteWrite,
    ReadWrite,
    /// No contention; shown only to who asks for it.
    ReadRead,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::StaleRead, Kind::WriteWrite, Kind::ReadWrite, Kind::ReadRead];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::StaleRead => "stale-read",
            Kind::WriteWrite => "write-write",
            Kind::ReadWrite => "read-write",
            Kind::ReadRead => "read-read",
        }
    }

    pub fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    fn of(first: Doing, second: Doing) -> Kind {
        match (first, second) {
            (Doing::Write, Doing::Write) => Kind::WriteWrite,
            (Doing::Read, Doing::Write) | (Doing::Write, Doing::Read) => Kind::ReadWrite,
            (Doing::Read, Doing::Read) => Kind::ReadRead,
        }
    }
}

/// An agent by the number that [`Contention::agent`] gave its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentNumber(u32);

/// One agent's touch of the present resource. `R` names the record: its number while touches are
/// read, its id when the graph is published.
#[derive(Clone, Copy, Debug)]
pub struct Touch<R> {
    pub agent: AgentNumber,
    pub doing: Doing,
    pub at_us: i64,
    pub record: R,
}

/// Which edges are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub window_us: i64,
    /// `None`: every kind that is contention.
    pub kind: Option<Kind>,
}

impl Question {
    fn wants(self, kind: Kind) -> bool {
        self.kind.map_or(kind != Kind::ReadRead, |only| only == kind)
    }
}

/// Takes touches one by one and keeps only what the graph needs.
pub struct Contention<R> {
    question: Question,
    wanted: [bool; 4],
    agents: HashMap<String, u32>,
    nodes: Vec<Node>,
    /// The resource at which each agent was seen last, so that its resources can be counted.
    seen_at: Vec<u64>,
    key_number: u64,
    system: String,
    resource: Arc<str>,
    crowd: Crowd<R>,
    edges: Edges<R>,
    /// Those of the systems before, in order.
    gathered: Vec<(String, Edges<R>)>,
}

impl<R: Copy> Contention<R> {
    pub fn new(question: Question) -> Contention<R> {
        Contention {
            question,
            wanted: Kind::ALL.map(|kind| question.wants(kind)),
            agents: HashMap::new(),
            nodes: Vec::new(),
            seen_at: Vec::new(),
            key_number: 0,
            system: String::new(),
            resource: Arc::from(""),
            crowd: Crowd::default(),
            edges: Edges::default(),
            gathered: Vec::new(),
        }
    }

    /// The number of an agent, the same for the same name.
    pub fn agent(&mut self, name: &str) -> AgentNumber {
        if let Some(agent) = self.agents.get(name) {
            return AgentNumber(*agent);
        }
        let agent = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.agents.insert(name.to_owned(), agent);
        self.nodes.push(Node::new(name));
        self.seen_at.push(0);
        AgentNumber(agent)
    }

    /// What the touches that follow are of. Resources must come in order of system and name, each
    /// once.
    pub fn turn_to(&mut self, system: &str, resource: &str) {
        let key = Key { number: self.key_number, resource: &self.resource };
        self.crowd.leave_all(key, &mut self.edges);
        if system != self.system {
            self.gather();
            system.clone_into(&mut self.system);
        }
        self.resource = Arc::from(resource);
        self.key_number += 1;
    }

    /// Touches of one resource must come sorted by time.
    pub fn push(&mut self, touch: Touch<R>) {
        let AgentNumber(agent) = touch.agent;
        self.count(agent, touch.doing);
        let key = Key { number: self.key_number, resource: &self.resource };
        let oldest = touch.at_us.saturating_sub(self.question.window_us);
        // Whoever was here is too long gone to be met.
        if self.crowd.latest_us().is_some_and(|latest| latest < oldest) {
            self.crowd.leave_all(key, &mut self.edges);
        }
        let place = self.crowd.place(agent, |meetings, place, agents| {
            meetings.leave(place, agents, key, &mut self.edges);
        });
        self.meet(place, &touch, oldest);
        self.crowd.remember(place, &touch);
    }

    /// Adds what was gathered of resources that come after all of these.
    #[must_use]
    pub fn followed_by(mut self, mut later: Contention<R>) -> Contention<R> {
        self.end();
        later.end();
        let numbers: Vec<u32> = later.nodes.iter().map(|node| self.agent(&node.agent).0).collect();
        for (node, number) in later.nodes.iter().zip(&numbers) {
            self.nodes[*number as usize].add(node);
        }
        for (system, edges) in later.gathered {
            match self.gathered.last_mut() {
                Some((last, known)) if *last == system => known.follow(edges, &numbers),
                Some(_) | None => {
                    let mut known = Edges::default();
                    known.follow(edges, &numbers);
                    self.gathered.push((system, known));
                }
            }
        }
        self
    }

    pub fn finish(mut self) -> Graph<R> {
        self.end();
        let (gathered, nodes) = (self.gathered, &self.nodes);
        let edges = gathered.into_iter().flat_map(|(system, edges)| edges.publish(system, nodes));
        let edges = edges.collect();
        self.nodes.retain(|node| node.calls > 0);
        Graph::new(self.nodes, edges)
    }

    fn end(&mut self) {
        self.turn_to("", "");
        self.gather();
    }

    fn gather(&mut self) {
        let edges = std::mem::take(&mut self.edges);
        if !edges.is_empty() {
            self.gathered.push((self.system.clone(), edges));
        }
    }

    fn count(&mut self, agent: u32, doing: Doing) {
        let node = &mut self.nodes[agent as usize];
        node.calls += 1;
        match doing {
            Doing::Read => node.reads += 1,
            Doing::Write => node.writes += 1,
        }
        if std::mem::replace(&mut self.seen_at[agent as usize], self.key_number) != self.key_number
        {
            node.resources += 1;
        }
    }

    /// Compares a touch with the latest ones of everybody else within the window.
    fn meet(&mut self, me: usize, touch: &Touch<R>, oldest: i64) {
        let Crowd { order, members, meetings, turn, .. } = &mut self.crowd;
        let my_read = members[me].last_read.filter(|_| touch.doing == Doing::Write);
        for &other in order.iter().rev() {
            let other = usize::from(other);
            let member = &members[other];
            if other == me {
                continue;
            }
            if member.latest_us < oldest {
                break;
            }
            for (doing, last) in
                [(Doing::Read, member.last_read), (Doing::Write, member.last_write)]
            {
                let kind = Kind::of(doing, touch.doing);
                let Some(last) = last.filter(|last| last.at_us >= oldest) else { continue };
                if self.wanted[kind as usize] {
                    let records = [last.record, touch.record, touch.record];
                    meetings.add(
                        other,
                        me,
                        kind,
                        Meeting::new(last.at_us, touch.at_us, *turn, records),
                    );
                }
            }
            let Some(read) = my_read.filter(|read| read.at_us >= oldest) else { continue };
            let Some(written) = member.last_write.filter(|write| write.turn > read.turn) else {
                continue;
            };
            if self.wanted[Kind::StaleRead as usize] {
                let records = [read.record, written.record, touch.record];
                let meeting = Meeting::new(written.at_us, touch.at_us, *turn, records);
                meetings.add(me, other, Kind::StaleRead, meeting);
            }
        }
    }
}

/// The agents of the present resource, by places that are given anew for every resource.
struct Crowd<R> {
    /// Who is at which place.
    agents: Vec<u32>,
    members: Vec<Member<R>>,
    /// Places, the latest agent last.
    order: Vec<u8>,
    meetings: Meetings<R>,
    turn: u64,
}

struct Member<R> {
    latest_us: i64,
    last_read: Option<Last<R>>,
    last_write: Option<Last<R>>,
}

#[derive(Clone, Copy)]
struct Last<R> {
    at_us: i64,
    /// Tells what came first where the times are equal.
    turn: u64,
    record: R,
}

impl<R> Default for Crowd<R> {
    fn default() -> Crowd<R> {
        Crowd {
            agents: Vec::new(),
            members: Vec::new(),
            order: Vec::new(),
            meetings: Meetings::default(),
            turn: 0,
        }
    }
}

impl<R: Copy> Crowd<R> {
    /// The place of an agent. In a full crowd the agent that was quiet for longest makes room.
    fn place(
        &mut self,
        agent: u32,
        mut leave: impl FnMut(&mut Meetings<R>, usize, &[u32]),
    ) -> usize {
        if let Some(place) = self.agents.iter().position(|known| *known == agent) {
            self.come_last(place);
            return place;
        }
        let member = Member { latest_us: i64::MIN, last_read: None, last_write: None };
        if self.members.len() < CROWD_MAX {
            let place = self.members.len();
            self.agents.push(agent);
            self.members.push(member);
            self.order.push(u8::try_from(place).expect("a crowd is small"));
            return place;
        }
        let place = usize::from(self.order[0]);
        leave(&mut self.meetings, place, &self.agents);
        self.come_last(place);
        self.agents[place] = agent;
        self.members[place] = member;
        place
    }

    fn latest_us(&self) -> Option<i64> {
        self.order.last().map(|place| self.members[usize::from(*place)].latest_us)
    }

    fn come_last(&mut self, place: usize) {
        let rank = self.order.iter().rposition(|other| usize::from(*other) == place);
        let rank = rank.expect("every place has a rank");
        self.order[rank..].rotate_left(1);
    }

    fn remember(&mut self, place: usize, touch: &Touch<R>) {
        self.turn += 1;
        let last = Last { at_us: touch.at_us, turn: self.turn, record: touch.record };
        let member = &mut self.members[place];
        member.latest_us = touch.at_us;
        match touch.doing {
            Doing::Read => member.last_read = Some(last),
            Doing::Write => member.last_write = Some(last),
        }
    }

    fn leave_all(&mut self, key: Key<'_>, edges: &mut Edges<R>) {
        self.meetings.leave_all(&self.agents, key, edges);
        self.agents.clear();
        self.members.clear();
        self.order.clear();
    }
}
