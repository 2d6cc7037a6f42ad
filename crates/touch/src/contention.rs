//! Detects agents that touch the same resource. Touches arrive resource by resource, sorted by
//! time. The result is a graph of agents, with an edge where two of them met at one resource within
//! the window. A touch is compared only with the latest touches of the other agents, so the cost of
//! a busy resource is at most its touches times its agents.

mod closest;
mod crowd;
mod edge_id;
mod edges;
mod fresh;
mod graph;
mod meeting;
mod meetings;
mod nesting;
mod story;

#[cfg(test)]
mod tests;
mod touch;

use std::collections::HashMap;
use std::sync::Arc;

use crowd::Crowd;
pub use edge_id::EdgeId;
use edges::{Edges, Site};
pub use fresh::{FreshMeeting, FreshTouch, meeting};
pub use graph::{AgentNode, EDGES_MAX, Edge, Graph, NODES_MAX, RECORDS_MAX, RESOURCES_MAX};
use meeting::Meeting;
pub use meetings::CROWD_MAX;
use nesting::{Nest, Nesting};
pub use story::StoryTouch;
pub use touch::{AgentNumber, ContentionKind, Touch};

use crate::targets::Access;

/// The edges to include.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    pub window_us: i64,
    /// `None` includes every kind that is contention.
    pub kind: Option<ContentionKind>,
    /// Only the edge with this id.
    pub edge: Option<EdgeId>,
    pub nesting: ContainerMeetings,
}

/// The treatment of containers: with `Included`, a touch of one also meets touches of its contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerMeetings {
    #[default]
    Ignored,
    Included,
}

impl Question {
    fn wants(self, kind: ContentionKind) -> bool {
        self.kind.map_or(kind != ContentionKind::ReadRead, |only| only == kind)
    }
}

/// Takes touches one by one and keeps only the data needed for the graph.
pub struct Contention<R> {
    question: Question,
    wanted: [bool; ContentionKind::ALL.len()],
    agents: HashMap<String, u32>,
    nodes: Vec<AgentNode>,
    /// The resource at which each agent was last seen, to count its resources.
    seen_at: Vec<u64>,
    site_number: u64,
    system: String,
    resource: Arc<str>,
    crowd: Crowd<R>,
    nesting: Option<Nesting<R>>,
    edges: Edges<R>,
    /// The edges of earlier systems, in order.
    gathered: Vec<(String, Edges<R>)>,
}

impl<R: Copy> Contention<R> {
    pub fn new(question: Question) -> Contention<R> {
        Contention {
            question,
            wanted: ContentionKind::ALL.map(|kind| question.wants(kind)),
            agents: HashMap::new(),
            nodes: Vec::new(),
            seen_at: Vec::new(),
            site_number: 0,
            system: String::new(),
            resource: Arc::from(""),
            crowd: Crowd::default(),
            nesting: (question.nesting == ContainerMeetings::Included).then(Nesting::default),
            edges: Edges::default(),
            gathered: Vec::new(),
        }
    }

    /// Returns the number of an agent; a name always gets the same number.
    pub fn agent(&mut self, name: &str) -> AgentNumber {
        if let Some(agent) = self.agents.get(name) {
            return AgentNumber(*agent);
        }
        let agent = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.agents.insert(name.to_owned(), agent);
        self.nodes.push(AgentNode::new(name));
        self.seen_at.push(0);
        AgentNumber(agent)
    }

    /// Sets the resource of the touches that follow. Resources must come in order of system and
    /// name, each once.
    pub fn turn_to(&mut self, system: &str, resource: &str) {
        let site = Site { number: self.site_number, resource: &self.resource, container: None };
        self.crowd.leave_all(site, &mut self.edges);
        let resource = Arc::from(resource);
        if system != self.system {
            let complete = self.nesting.as_mut().map(|nesting| nesting.leave_all(&self.system));
            self.meet_nests(complete);
            self.gather();
            system.clone_into(&mut self.system);
        }
        let complete = self.nesting.as_mut().map(|nesting| nesting.enter(&self.system, &resource));
        self.meet_nests(complete);
        self.resource = resource;
        self.site_number += 1;
    }

    /// Adds a touch. Touches of one resource must be sorted by time.
    pub fn push(&mut self, touch: Touch<R>) {
        let AgentNumber(agent) = touch.agent;
        self.count(agent, touch.access);
        if let Some(nesting) = &mut self.nesting {
            nesting.push(&touch);
        }
        let site = Site { number: self.site_number, resource: &self.resource, container: None };
        let oldest = touch.at_us.saturating_sub(self.question.window_us);
        // Every earlier touch is outside the window.
        if self.crowd.latest_us().is_some_and(|latest| latest < oldest) {
            self.crowd.leave_all(site, &mut self.edges);
        }
        let place = self.crowd.place(agent, |meetings, place, agents| {
            meetings.leave(place, agents, site, &mut self.edges);
        });
        self.meet(place, &touch, oldest);
        self.crowd.remember(place, &touch);
    }

    /// Appends the results of resources that come after all of these.
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
        let is_wanted = |edge: &Edge<R>| self.question.edge.is_none_or(|id| id == edge.own_id());
        let edges = edges.filter(is_wanted).collect();
        self.nodes.retain(|node| node.calls > 0);
        Graph::new(self.nodes, edges)
    }

    fn end(&mut self) {
        self.turn_to("", "");
        self.gather();
    }

    fn meet_nests(&mut self, complete: Option<Vec<Nest<R>>>) {
        for nest in complete.into_iter().flatten() {
            let window_us = self.question.window_us;
            nest.meet(window_us, &self.wanted, &mut self.site_number, &mut self.edges);
        }
    }

    fn gather(&mut self) {
        let edges = std::mem::take(&mut self.edges);
        if !edges.is_empty() {
            self.gathered.push((self.system.clone(), edges));
        }
    }

    fn count(&mut self, agent: u32, access: Access) {
        let node = &mut self.nodes[agent as usize];
        node.calls += 1;
        match access {
            Access::Read => node.reads += 1,
            Access::Write => node.writes += 1,
            Access::Unknown => node.unknown += 1,
        }
        if std::mem::replace(&mut self.seen_at[agent as usize], self.site_number)
            != self.site_number
        {
            node.resources += 1;
        }
    }

    /// Compares a touch with everyone else's latest touches within the window.
    fn meet(&mut self, me: usize, touch: &Touch<R>, oldest: i64) {
        let Crowd { order, members, meetings, turn, .. } = &mut self.crowd;
        let my_read = members[me].last(Access::Read).filter(|_| touch.access == Access::Write);
        for &other in order.iter().rev() {
            let other = usize::from(other);
            let member = &members[other];
            if other == me {
                continue;
            }
            if member.latest_us < oldest {
                break;
            }
            for (access, last) in Access::ALL.into_iter().zip(member.last) {
                let kind = ContentionKind::of(access, touch.access);
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
            let Some(written) = member.last(Access::Write).filter(|write| write.turn > read.turn)
            else {
                continue;
            };
            if self.wanted[ContentionKind::StaleRead as usize] {
                let records = [read.record, written.record, touch.record];
                let meeting = Meeting::new(written.at_us, touch.at_us, *turn, records);
                meetings.add(me, other, ContentionKind::StaleRead, meeting);
            }
        }
    }
}
