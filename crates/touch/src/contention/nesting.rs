//! Containers and their contents: a folder and its files, a repository and its issues, a table and
//! its rows. Resources come in the order of their names, so that the contents of a container follow
//! it; siblings never meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::edges::{AgentPair, Edges, Site};
use super::meeting::Meeting;
use super::meetings::CROWD_MAX;
use super::touch::{ContentionKind, Touch};
use crate::container::contains;
use crate::targets::Access;

/// Touches that are held until their containers are complete. It bounds the memory; further ones
/// are not compared with containers.
const HELD_MAX: usize = 1_000_000;

/// The resources that the current one may lie in.
pub(super) struct Nesting<R> {
    frames: Vec<Frame<R>>,
    held: usize,
}

/// A resource with its own touches, and those of its contents.
struct Frame<R> {
    resource: Arc<str>,
    own: Vec<Touch<R>>,
    contents: Vec<Content<R>>,
}

struct Content<R> {
    resource: Arc<str>,
    touches: Vec<Touch<R>>,
}

/// A container and its contents, all of them touched.
pub(super) struct Nest<R> {
    container: Arc<str>,
    own: Vec<Touch<R>>,
    contents: Vec<Content<R>>,
}

impl<R> Default for Nesting<R> {
    fn default() -> Nesting<R> {
        Nesting { frames: Vec::new(), held: 0 }
    }
}

impl<R: Copy> Nesting<R> {
    /// Turns to another resource of the same system; returns the containers that are complete.
    pub(super) fn enter(&mut self, system: &str, resource: &Arc<str>) -> Vec<Nest<R>> {
        let mut complete = Vec::new();
        while let Some(last) = self.frames.last() {
            if resource.starts_with(&*last.resource) && !last.resource.is_empty() {
                break;
            }
            complete.extend(self.leave(system));
        }
        let resource = Arc::clone(resource);
        self.frames.push(Frame { resource, own: Vec::new(), contents: Vec::new() });
        complete
    }

    /// Leaves all resources of a system.
    pub(super) fn leave_all(&mut self, system: &str) -> Vec<Nest<R>> {
        let mut complete = Vec::new();
        while !self.frames.is_empty() {
            complete.extend(self.leave(system));
        }
        self.held = 0;
        complete
    }

    pub(super) fn push(&mut self, touch: &Touch<R>) {
        if self.held < HELD_MAX
            && let Some(frame) = self.frames.last_mut()
        {
            self.held += 1;
            frame.own.push(*touch);
        }
    }

    /// Leaves the innermost resource, which becomes part of its container.
    fn leave(&mut self, system: &str) -> Option<Nest<R>> {
        let Frame { resource, own, contents } = self.frames.pop()?;
        let container =
            self.frames.iter_mut().rfind(|frame| contains(system, &frame.resource, &resource));
        let is_nest = !own.is_empty() && !contents.is_empty();
        let nest = |contents| Nest { container: resource.clone(), own: own.clone(), contents };
        match container {
            Some(container) => {
                let copy = |content: &Content<R>| Content {
                    resource: content.resource.clone(),
                    touches: content.touches.clone(),
                };
                let found = is_nest.then(|| nest(contents.iter().map(copy).collect()));
                container.contents.extend(contents);
                if !own.is_empty() {
                    container.contents.push(Content { resource, touches: own });
                }
                found
            }
            None => {
                let gone = own.len() + contents.iter().map(|one| one.touches.len()).sum::<usize>();
                self.held = self.held.saturating_sub(gone);
                is_nest.then(|| nest(contents))
            }
        }
    }
}

/// A touch of the container (no content), or of one of its contents.
struct NestedTouch<R> {
    touch: Touch<R>,
    content: Option<usize>,
}

/// The latest touches of one agent, of the container and of its contents.
struct NestMember<R> {
    agent: u32,
    latest_us: i64,
    container: [Option<LastNested<R>>; Access::ALL.len()],
    contents: [Option<LastNested<R>>; Access::ALL.len()],
}

#[derive(Clone, Copy)]
struct LastNested<R> {
    at_us: i64,
    record: R,
    content: Option<usize>,
}

/// Two agents, by their numbers, and the content at which they met, in a fixed order.
type NestPlace = (usize, u32, u32, ContentionKind);

impl<R: Copy> Nest<R> {
    /// Adds the meetings of agents that touched the container with others that touched its contents.
    /// `site` is the number of the last site, and counts on.
    pub(super) fn meet(
        self,
        window_us: i64,
        wanted: &[bool],
        site: &mut u64,
        edges: &mut Edges<R>,
    ) {
        let (found, container) = (self.meetings(window_us), self.container);
        let mut last = None;
        for ((content, from, to, kind), meeting) in found {
            if !wanted[kind as usize] {
                continue;
            }
            *site += u64::from(last != Some(content));
            last = Some(content);
            let resource = &self.contents[content].resource;
            let site = Site { number: *site, resource, container: Some(&container) };
            edges.add(AgentPair { from, to }, kind, site, &meeting);
        }
        *site += 1;
    }

    fn meetings(&self, window_us: i64) -> BTreeMap<NestPlace, Meeting<R>> {
        let own = self.own.iter().map(|touch| NestedTouch { touch: *touch, content: None });
        let contents = self.contents.iter().enumerate().flat_map(|(content, of)| {
            of.touches
                .iter()
                .map(move |touch| NestedTouch { touch: *touch, content: Some(content) })
        });
        let mut touches: Vec<NestedTouch<R>> = own.chain(contents).collect();
        touches.sort_by_key(|nested| nested.touch.at_us);
        let mut members: Vec<NestMember<R>> = Vec::new();
        let mut found: BTreeMap<NestPlace, Meeting<R>> = BTreeMap::new();
        for (turn, nested) in (0u64..).zip(&touches) {
            let touch = &nested.touch;
            let oldest = touch.at_us.saturating_sub(window_us);
            members.retain(|member| member.latest_us >= oldest);
            for other in members.iter().filter(|other| other.agent != touch.agent.0) {
                let theirs =
                    if nested.content.is_some() { &other.container } else { &other.contents };
                for (access, last) in Access::ALL.into_iter().zip(theirs) {
                    let Some(last) = last.filter(|last| last.at_us >= oldest) else { continue };
                    let Some(content) = nested.content.or(last.content) else { continue };
                    let kind = ContentionKind::of(access, touch.access);
                    let place = (content, other.agent, touch.agent.0, kind);
                    let records = [last.record, touch.record, touch.record];
                    let meeting = Meeting::new(last.at_us, touch.at_us, turn, records);
                    found.entry(place).and_modify(|known| known.merge(&meeting)).or_insert(meeting);
                }
            }
            remember(&mut members, nested);
        }
        found
    }
}

fn remember<R: Copy>(members: &mut Vec<NestMember<R>>, nested: &NestedTouch<R>) {
    let NestedTouch { touch, content } = nested;
    let at = members.iter().position(|member| member.agent == touch.agent.0);
    let mut member = match at {
        Some(at) => members.remove(at),
        None => NestMember {
            agent: touch.agent.0,
            latest_us: touch.at_us,
            container: [None; Access::ALL.len()],
            contents: [None; Access::ALL.len()],
        },
    };
    let last = LastNested { at_us: touch.at_us, record: touch.record, content: *content };
    member.latest_us = touch.at_us;
    let places = if content.is_some() { &mut member.contents } else { &mut member.container };
    places[touch.access as usize] = Some(last);
    // The agent that has been quiet longest is first.
    if members.len() == CROWD_MAX {
        members.remove(0);
    }
    members.push(member);
}
