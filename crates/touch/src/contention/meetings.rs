//! The meetings of all agents at the current resource.

use super::edges::{AgentPair, Edges, Site};
use super::meeting::Meeting;
use super::touch::ContentionKind;

/// Agents of one resource that a touch is compared with, most recent first. More within one window
/// is a crowd that no reader can make sense of.
pub const CROWD_MAX: usize = 64;

/// A square matrix of places, one cell for each kind of meeting.
pub(super) struct Meetings<R> {
    cells: Vec<Option<Meeting<R>>>,
    /// The cells that hold or held something: most are empty, and checking each one for every
    /// resource would dominate the cost.
    used: Vec<usize>,
}

const KINDS: usize = ContentionKind::ALL.len();
const CELLS: usize = CROWD_MAX * CROWD_MAX * KINDS;

impl<R> Default for Meetings<R> {
    fn default() -> Meetings<R> {
        Meetings { cells: Vec::new(), used: Vec::new() }
    }
}

impl<R: Copy> Meetings<R> {
    /// Adds a meeting in which `from` came first.
    pub(super) fn add(
        &mut self,
        from: usize,
        to: usize,
        kind: ContentionKind,
        meeting: Meeting<R>,
    ) {
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

    /// Moves all meetings of the agent at a place to the edges, before another agent takes the
    /// place.
    pub(super) fn leave(
        &mut self,
        place: usize,
        agents: &[u32],
        site: Site<'_>,
        edges: &mut Edges<R>,
    ) {
        if self.used.is_empty() {
            return;
        }
        for other in 0..agents.len() {
            for (from, to) in [(place, other), (other, place)] {
                for kind in ContentionKind::ALL {
                    self.hand_over(cell(from, to, kind), agents, site, edges);
                }
            }
        }
        if self.used.len() > CELLS {
            self.used.retain(|cell| self.cells[*cell].is_some());
            self.used.sort_unstable();
            self.used.dedup();
        }
    }

    /// Moves all meetings in cell order, so that of two equally close meetings the same one is
    /// always kept.
    pub(super) fn leave_all(&mut self, agents: &[u32], site: Site<'_>, edges: &mut Edges<R>) {
        let mut used = std::mem::take(&mut self.used);
        used.sort_unstable();
        for cell in used.drain(..) {
            self.hand_over(cell, agents, site, edges);
        }
        self.used = used;
    }

    fn hand_over(&mut self, cell: usize, agents: &[u32], site: Site<'_>, edges: &mut Edges<R>) {
        if let Some(meeting) = self.cells[cell].take() {
            let (from, to) = (cell / KINDS / CROWD_MAX, cell / KINDS % CROWD_MAX);
            let pair = AgentPair { from: agents[from], to: agents[to] };
            edges.add(pair, ContentionKind::ALL[cell % KINDS], site, &meeting);
        }
    }
}

fn cell(from: usize, to: usize, kind: ContentionKind) -> usize {
    (from * CROWD_MAX + to) * KINDS + kind as usize
}
