//! One server's tools as weighted words. A segment knows nothing of other servers: field lengths
//! are measured against fixed pivots instead of catalog averages, so its impacts stay valid
//! whatever else is in the catalog, and only the rarity of words is left for the index.

use std::sync::{LazyLock, Mutex, MutexGuard};

use super::lexicon::{Known, Lexicon};
use super::schema::{self, Piece};
use super::splitter::{Form, Splitter};
use super::terms::Terms;

/// What is searched of one tool.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    pub name: &'a str,
    pub description: &'a str,
    /// The text of the schema; what is no JSON or no schema is passed over.
    pub input_schema: Option<&'a str>,
}

impl<'a> Document<'a> {
    /// A tool of which nothing but its name may be searched.
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
}

/// How much a term says about one tool. Catalogs have hundreds of thousands of them: six bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
pub(super) struct Posting {
    pub(super) tool: u32,
    pub(super) impact: Impact,
}

/// The saturated, weighted frequency of BM25F, in parts of the most that it can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Impact(u16);

impl Impact {
    const MAX: f32 = K1 + 1.0;

    pub(super) fn new(impact: f32) -> Impact {
        Impact((impact / Impact::MAX * f32::from(u16::MAX)).round() as u16)
    }

    pub(super) fn get(self) -> f32 {
        f32::from(self.0) * (Impact::MAX / f32::from(u16::MAX))
    }
}

/// Frequency saturation. With fields this short a second mention says little more.
const K1: f32 = 1.2;

/// Working memory is kept for this many postings, those of a server of a thousand tools: below a
/// megabyte. Terms are fewer.
const POSTINGS_KEPT_MAX: usize = 64 * 1024;

/// The impact of a word of the server's name on each of its tools: about that of a word which
/// stands once in a description.
pub(super) const SERVER_NAME_IMPACT: f32 = 0.9;

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
    /// How strongly a long field thins out its words: 0 not at all, 1 in proportion.
    thinning: f32,
    /// The length in words at which a field counts as neither short nor long.
    pivot: f32,
    /// What is read of the field. Texts beyond it are manuals: their later pages name everything.
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
    /// Splits and weighs the words of a server's tools. The costly half of indexing.
    pub fn build(tools: &[Document<'_>]) -> Segment {
        let mut builder = builder();
        builder.lexicon.begin_segment();
        for tool in tools {
            builder.add(tool);
        }
        let segment = builder.finish();
        if builder.found.capacity() > POSTINGS_KEPT_MAX {
            *builder = Builder::default();
        }
        segment
    }
}

/// So many segments are built at once. Each builder learns the words anew and takes a megabyte with
/// them, so that one per thread would cost more time than it saves.
const BUILDERS: usize = 2;

/// A builder that nobody else uses.
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
#[derive(Default)]
struct Builder {
    splitter: Splitter,
    lexicon: Lexicon,
    /// The terms of the tool at hand, by field, and what may still be read into each field.
    fields: [Vec<u32>; FIELDS.len()],
    room: [usize; FIELDS.len()],
    /// Weighted frequency of each term in the tool at hand, and which are not zero.
    frequency: Vec<f32>,
    present: Vec<u32>,
    /// The segment at hand: its terms, its postings in the order of the tools, its tools so far.
    terms: Terms,
    found: Vec<(u32, Posting)>,
    tools: u32,
    /// Where the next posting of each term belongs.
    next: Vec<u32>,
}

impl Builder {
    fn add(&mut self, tool: &Document<'_>) {
        self.fields.iter_mut().for_each(Vec::clear);
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
        let Builder { lexicon, fields, terms, .. } = self;
        let found = &mut fields[field as usize];
        self.splitter.split(text, |word, _: Form| {
            let stem = match lexicon.look_up(word) {
                Known::Stem(stem) => stem,
                // A tool may be called `who` or `what_is`: in names every word can be asked for.
                Known::Stop if matches!(field, Field::Name) => lexicon.number(word),
                Known::Stop => return,
            };
            found.push(lexicon.term(stem, terms));
        });
    }

    /// Turns the words of the tool at hand into postings.
    fn weigh(&mut self) {
        self.frequency.resize(self.terms.len().max(self.frequency.len()), 0.0);
        for (terms, field) in self.fields.iter().zip(&FIELDS) {
            let length = terms.len() as f32 / field.pivot;
            let share = field.weight / (1.0 - field.thinning + field.thinning * length);
            for &term in terms {
                if self.frequency[term as usize] == 0.0 {
                    self.present.push(term);
                }
                self.frequency[term as usize] += share;
            }
        }
        for term in self.present.drain(..) {
            let frequency = std::mem::take(&mut self.frequency[term as usize]);
            let impact = frequency * (K1 + 1.0) / (frequency + K1);
            self.found.push((term, Posting { tool: self.tools, impact: Impact::new(impact) }));
        }
    }

    /// Groups the postings by term; within a term they stay in the order of the tools.
    fn finish(&mut self) -> Segment {
        let mut starts = vec![0; self.terms.len() + 1];
        for (term, _) in &self.found {
            starts[*term as usize + 1] += 1;
        }
        for term in 1..starts.len() {
            starts[term] += starts[term - 1];
        }
        self.next.clone_from(&starts);
        let mut postings = vec![Posting { tool: 0, impact: Impact::default() }; self.found.len()];
        for (term, posting) in self.found.drain(..) {
            let next = &mut self.next[term as usize];
            postings[*next as usize] = posting;
            *next += 1;
        }
        let terms = self.terms.clone();
        self.terms.clear();
        Segment { tools: std::mem::take(&mut self.tools), terms, postings, starts }
    }
}
