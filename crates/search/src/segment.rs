//! One server's tools as weighted words. A segment is independent of other servers: field lengths
//! are measured against fixed pivots instead of catalog averages, so its impacts stay valid
//! whatever else is in the catalog. Only the rarity of words is left to the index.

use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock};

use embed::Vector;

use super::lexicon::{Lexicon, Stem};
use super::schema::{self, Piece};
use super::splitter::{Form, Splitter};
use super::terms::Terms;

/// The searchable parts of one tool.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    pub name: &'a str,
    pub description: &'a str,
    /// The text of the schema; invalid JSON or schemas are skipped.
    pub input_schema: Option<&'a str>,
}

impl<'a> Document<'a> {
    /// Returns a document for a tool of which only the name may be searched.
    pub fn named(name: &'a str) -> Document<'a> {
        Document { name, description: "", input_schema: None }
    }
}

/// One server's tools, split into words and weighted once; kept and shared between indexes.
#[derive(Debug, Default)]
pub struct Segment {
    pub(super) tools: u32,
    pub(super) terms: Terms,
    /// Grouped by term: those of term `t` are `postings[starts[t]..starts[t + 1]]`.
    pub(super) postings: Vec<Posting>,
    pub(super) starts: Vec<u32>,
    /// One per tool. Made in the background; until then, words decide alone.
    vectors: OnceLock<Box<[Vector]>>,
}

/// The impact of a term on one tool. Catalogs have hundreds of thousands of them, so each takes six
/// bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
pub(super) struct Posting {
    pub(super) tool: u32,
    pub(super) impact: Impact,
}

/// The saturated, weighted frequency of BM25F, as a fraction of its maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Impact(u16);

impl Impact {
    const MAX: f32 = K1 + 1.0;

    pub(super) fn new(impact: f32) -> Impact {
        Impact((impact * (f32::from(u16::MAX) / Impact::MAX) + 0.5) as u16)
    }

    pub(super) fn get(self) -> f32 {
        f32::from(self.0) * (Impact::MAX / f32::from(u16::MAX))
    }
}

/// Frequency saturation. In fields this short, a second mention adds little.
const K1: f32 = 1.2;

/// The number of postings that working memory is kept for, those of a server with a thousand tools:
/// less than a megabyte. There are fewer terms.
const POSTINGS_KEPT_MAX: usize = 64 * 1024;

/// The impact of a word of the server's name on each of its tools, about half that of a word that
/// occurs once in a description: it tells servers apart, not the tools of one.
pub(super) const SERVER_NAME_IMPACT: f32 = 0.45;

#[derive(Clone, Copy)]
enum Field {
    Name,
    Description,
    ParameterName,
    ParameterDescription,
    Value,
}

struct FieldWeight {
    weight: f32,
    /// The degree to which a long field dilutes its words: 0 not at all, 1 in proportion.
    thinning: f32,
    /// The length in words at which a field counts as neither short nor long.
    pivot: f32,
    /// The length read of the field. Longer texts are manuals, whose later pages mention
    /// everything.
    bytes_max: usize,
}

const FIELDS: [FieldWeight; 5] = [
    FieldWeight { weight: 1.5, thinning: 0.3, pivot: 3.0, bytes_max: 256 },
    FieldWeight { weight: 1.0, thinning: 0.6, pivot: 12.0, bytes_max: 2048 },
    FieldWeight { weight: 0.6, thinning: 0.3, pivot: 5.0, bytes_max: 1024 },
    FieldWeight { weight: 0.5, thinning: 0.7, pivot: 25.0, bytes_max: 2048 },
    FieldWeight { weight: 0.5, thinning: 0.7, pivot: 5.0, bytes_max: 1024 },
];

impl Segment {
    /// Splits and weighs the words of a server's tools. This is the expensive half of indexing.
    pub fn build(tools: &[Document<'_>]) -> Segment {
        let mut builder = builder();
        for tool in tools {
            builder.add(tool);
        }
        let segment = builder.finish();
        let large = builder.found.capacity() > POSTINGS_KEPT_MAX || builder.lexicon.is_large();
        if large || builder.segment == u32::MAX {
            *builder = Builder::default();
        }
        segment
    }

    /// Reports whether the tools have no vectors yet.
    pub fn lacks_vectors(&self) -> bool {
        self.tools > 0 && self.vectors.get().is_none()
    }

    /// Sets the vectors of the tools, in the order of [`Segment::build`]. The first ones stay.
    pub fn set_vectors(&self, vectors: Vec<Vector>) {
        if vectors.len() == self.tools as usize {
            self.vectors.get_or_init(|| vectors.into());
        }
    }

    pub(super) fn vectors(&self) -> Option<&[Vector]> {
        self.vectors.get().map(|vectors| &**vectors)
    }
}

/// The number of segments built at once. Each builder learns the words again and takes a megabyte
/// for them, so one per thread would cost more time than it saves.
const BUILDERS: usize = 2;

/// Returns a free builder; waits for one if all are in use.
fn builder() -> MutexGuard<'static, Builder> {
    static ALL: LazyLock<[Mutex<Builder>; BUILDERS]> = LazyLock::new(Default::default);
    let free = ALL.iter().find_map(|builder| builder.try_lock().ok());
    free.unwrap_or_else(|| {
        ALL[0].lock().unwrap_or_else(|broken_off| {
            let mut builder = broken_off.into_inner();
            *builder = Builder::default();
            builder
        })
    })
}

/// Working memory, kept from one segment to the next.
///
/// Words come in an order that a processor cannot predict. The code therefore never branches on the
/// word itself: unwanted values are written too, and then overwritten.
#[derive(Default)]
struct Builder {
    splitter: Splitter,
    lexicon: Lexicon,
    /// The stems of the current tool by field, and the remaining length that may be read into each
    /// field.
    fields: [StemList; FIELDS.len()],
    room: [usize; FIELDS.len()],
    /// The weighted frequency of each stem in the current tool, and which are not zero.
    frequency: Vec<f32>,
    present: StemList,
    /// The current segment: its postings in tool order, its tools so far, and at the end its terms.
    found: Vec<(Stem, Posting)>,
    tools: u32,
    terms: Terms,
    /// The latest segment in which each stem occurred, and its term there.
    latest: Vec<(u32, u32)>,
    segment: u32,
    /// The number of occurrences of each term, later the position of its next posting.
    next: Vec<u32>,
}

/// A list of stems.
#[derive(Default)]
struct StemList {
    stems: Vec<Stem>,
    length: usize,
}

impl StemList {
    /// Adds a stem if `wanted`, without branching.
    fn add(&mut self, stem: Stem, wanted: bool) {
        if self.length == self.stems.len() {
            self.stems.resize(2 * self.length + 64, Stem::NONE);
        }
        self.stems[self.length] = stem;
        self.length += usize::from(wanted);
    }

    fn all(&self) -> &[Stem] {
        &self.stems[..self.length]
    }
}

impl Builder {
    fn add(&mut self, tool: &Document<'_>) {
        self.fields.iter_mut().for_each(|field| field.length = 0);
        self.room = std::array::from_fn(|field| FIELDS[field].bytes_max);
        self.read(Field::Name, tool.name);
        self.read(Field::Description, tool.description);
        if let Some(schema) = tool.input_schema {
            schema::read(schema, &mut |piece, text| {
                let field = match piece {
                    Piece::ParameterName => Field::ParameterName,
                    Piece::ParameterDescription => Field::ParameterDescription,
                    Piece::Value => Field::Value,
                };
                self.read(field, text);
            });
        }
        self.weigh();
        self.tools += 1;
    }

    fn read(&mut self, field: Field, text: &str) {
        let text = &text[..text.floor_char_boundary(self.room[field as usize])];
        self.room[field as usize] -= text.len();
        let Builder { lexicon, fields, .. } = self;
        let found = &mut fields[field as usize];
        self.splitter.split(text, |word, _: Form| {
            let mut stem = lexicon.look_up(word);
            // A tool may be called `who` or `what_is`: in names, every word is searchable.
            if matches!(field, Field::Name) && stem == Stem::NONE {
                stem = lexicon.number(word);
            }
            found.add(stem, stem != Stem::NONE);
        });
    }

    /// Turns the words of the current tool into postings.
    fn weigh(&mut self) {
        self.frequency.resize(self.lexicon.len(), 0.0);
        self.present.length = 0;
        for (stems, field) in self.fields.iter().zip(&FIELDS) {
            let length = stems.length as f32 / field.pivot;
            let share = field.weight / (1.0 - field.thinning + field.thinning * length);
            for &stem in stems.all() {
                let frequency = &mut self.frequency[stem.index()];
                self.present.add(stem, *frequency == 0.0);
                *frequency += share;
            }
        }
        for &stem in self.present.all() {
            let frequency = std::mem::take(&mut self.frequency[stem.index()]);
            let impact = frequency * (K1 + 1.0) / (frequency + K1);
            self.found.push((stem, Posting { tool: self.tools, impact: Impact::new(impact) }));
        }
    }

    /// Groups the postings by term; within a term they stay in tool order.
    fn finish(&mut self) -> Segment {
        self.segment += 1;
        self.latest.resize(self.lexicon.len(), (0, 0));
        self.next.clear();
        for (stem, _) in &self.found {
            let (segment, term) = &mut self.latest[stem.index()];
            if *segment != self.segment {
                (*segment, *term) = (self.segment, self.terms.push(self.lexicon.text(*stem)));
                self.next.push(0);
            }
            self.next[*term as usize] += 1;
        }
        let mut starts = Vec::with_capacity(self.next.len() + 1);
        let mut start = 0;
        for next in &mut self.next {
            starts.push(start);
            start += std::mem::replace(next, start);
        }
        starts.push(start);
        let mut postings = vec![Posting { tool: 0, impact: Impact::default() }; self.found.len()];
        for (stem, posting) in self.found.drain(..) {
            let (_, term) = self.latest[stem.index()];
            let next = &mut self.next[term as usize];
            postings[*next as usize] = posting;
            *next += 1;
        }
        let terms = self.terms.clone();
        self.terms.clear();
        let vectors = OnceLock::new();
        Segment { tools: std::mem::take(&mut self.tools), terms, postings, starts, vectors }
    }
}
