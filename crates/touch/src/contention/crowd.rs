//! The agents that a touch is compared with.

use super::edges::{Edges, Site};
use super::meetings::{CROWD_MAX, Meetings};
use super::touch::Touch;
use crate::targets::Access;

/// The agents of the current resource, by places assigned anew for every resource.
pub(super) struct Crowd<R> {
    /// The agent at each place.
    agents: Vec<u32>,
    pub(super) members: Vec<CrowdMember<R>>,
    /// Places, the most recent agent last.
    pub(super) order: Vec<u8>,
    pub(super) meetings: Meetings<R>,
    pub(super) turn: u64,
}

pub(super) struct CrowdMember<R> {
    pub(super) latest_us: i64,
    /// The last touch of each access, in the order of `Access::ALL`.
    pub(super) last: [Option<LastTouch<R>>; ACCESSES],
}

const ACCESSES: usize = Access::ALL.len();

impl<R: Copy> CrowdMember<R> {
    pub(super) fn last(&self, access: Access) -> Option<LastTouch<R>> {
        self.last[access as usize]
    }
}

#[derive(Clone, Copy)]
pub(super) struct LastTouch<R> {
    pub(super) at_us: i64,
    /// Breaks ties between equal times.
    pub(super) turn: u64,
    pub(super) record: R,
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
    /// Returns the place of an agent. In a full crowd, the agent that has been quiet longest makes
    /// room.
    pub(super) fn place(
        &mut self,
        agent: u32,
        mut leave: impl FnMut(&mut Meetings<R>, usize, &[u32]),
    ) -> usize {
        if let Some(place) = self.agents.iter().position(|known| *known == agent) {
            self.come_last(place);
            return place;
        }
        let member = CrowdMember { latest_us: i64::MIN, last: [None; ACCESSES] };
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

    pub(super) fn latest_us(&self) -> Option<i64> {
        self.order.last().map(|place| self.members[usize::from(*place)].latest_us)
    }

    fn come_last(&mut self, place: usize) {
        let rank = self.order.iter().rposition(|other| usize::from(*other) == place);
        let rank = rank.expect("every place has a rank");
        self.order[rank..].rotate_left(1);
    }

    pub(super) fn remember(&mut self, place: usize, touch: &Touch<R>) {
        self.turn += 1;
        let last = LastTouch { at_us: touch.at_us, turn: self.turn, record: touch.record };
        let member = &mut self.members[place];
        member.latest_us = touch.at_us;
        member.last[touch.access as usize] = Some(last);
    }

    pub(super) fn leave_all(&mut self, site: Site<'_>, edges: &mut Edges<R>) {
        self.meetings.leave_all(&self.agents, site, edges);
        self.agents.clear();
        self.members.clear();
        self.order.clear();
    }
}
