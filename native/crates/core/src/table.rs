//! A snapshot made ready for routing: read once from the columns that the TypeScript side compiles, checked whole, so that
//! no later index needs to be. Places have the numbers of `packages/selector/src/table-columns.ts`.

/// The columns as they come. Places in `words` are absolute unless said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'a> {
    /// Header, then rows: cells, candidates, classes, models, names, in any order.
    pub words: &'a [u32],
    /// Two per candidate: weight, part.
    pub numbers: &'a [f64],
    /// Slot owners of all cells, each an index into its cell's candidates.
    pub ring: &'a [u16],
    /// UTF-8 of the models' names and aliases, as JSON writes them.
    pub names: &'a [u8],
}

#[derive(Debug)]
pub struct Table {
    pub models: Box<[Model]>,
    /// The models' own names, in their order, then the aliases.
    pub names: Box<[Name]>,
    pub classes: Box<[Class]>,
    pub cells: Box<[Cell]>,
    /// Sizes of the shared state that it was checked against.
    pub engine_slots: usize,
    pub cell_rows: usize,
    bytes: usize,
}

#[derive(Debug)]
pub struct Name {
    /// As a JSON body spells it.
    pub text: Box<[u8]>,
    /// Index of the model that it names.
    pub model: usize,
}

#[derive(Debug)]
pub struct Model {
    /// Indices of its classes, in file order.
    pub classes: Box<[usize]>,
}

#[derive(Debug)]
pub struct Class {
    pub model: usize,
    /// Bits that a request must all use to be of this class.
    pub uses: u32,
    /// Those it allows, each 1 + index; none = any.
    pub residencies: Box<[u32]>,
    /// Index into `Table::cells`; `None` where no engine may serve it.
    pub cell: Option<usize>,
}

#[derive(Debug)]
pub struct Cell {
    /// Index in the snapshot's cells.
    pub index: u32,
    pub in_flight_row: usize,
    /// A power of two slot owners, or none: indices below `engines`.
    pub ring: Box<[u16]>,
    /// The engines that the ring's owners count in, then the reserves.
    pub candidates: Box<[Candidate]>,
    /// Of the candidates, one after the other: what all of them are asked for.
    pub id_hashes: Box<[u32]>,
    pub weights: Box<[f64]>,
    pub engines: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// State slot.
    pub slot: u32,
    /// XXH32 of the engine's id.
    pub id_hash: u32,
    /// Bits of needs that it can't take.
    pub lacks: u32,
    /// `u32::MAX` where not known.
    pub max_context_tokens: u32,
    /// 1 + index; 0 = none.
    pub residency: u32,
    /// Rendezvous weight. 0 = takes nothing.
    pub weight: f64,
    /// Its part of the cell's streams, not normalised.
    pub part: f64,
}

/// What is wrong with columns, in one sentence.
pub type BadTable = String;

const HEADER_WORDS: usize = 7;
const MODEL_WORDS: usize = 2;
const NAME_WORDS: usize = 3;
const CLASS_WORDS: usize = 5;
const CELL_WORDS: usize = 9;
const CANDIDATE_WORDS: usize = 5;
const CANDIDATE_NUMBERS: usize = 2;
const NO_CELL: u32 = 0;

impl Table {
    /// Reads and checks the columns; `engine_slots` and `cell_rows` are the sizes of the shared state they point into.
    pub fn read(columns: &Columns, engine_slots: usize, cell_rows: usize) -> Result<Self, BadTable> {
        let reader = Reader { columns, engine_slots, cell_rows };
        let header = reader.words::<HEADER_WORDS>(0, "header")?;
        let [model_count, model_at, class_count, class_at, name_count, name_at, _cell_count] = header;
        let mut cells = Vec::new();
        let mut classes = Vec::new();
        for index in 0..class_count as usize {
            let row = reader.words::<CLASS_WORDS>(class_at as usize + index * CLASS_WORDS, "class")?;
            let [model, uses, residency_at, residency_count, cell] = row;
            if model >= model_count {
                return Err(format!("class {index} is of model {model} of {model_count}"));
            }
            let residencies = reader.list(residency_at, residency_count, "residencies")?.into();
            let cell = match cell {
                NO_CELL => None,
                place => {
                    cells.push(reader.cell(place as usize)?);
                    Some(cells.len() - 1)
                }
            };
            classes.push(Class { model: model as usize, uses, residencies, cell });
        }
        let mut models = Vec::new();
        for index in 0..model_count as usize {
            let row = reader.words::<MODEL_WORDS>(model_at as usize + index * MODEL_WORDS, "model")?;
            let [list_at, list_count] = row;
            let list = reader.list(list_at, list_count, "classes of a model")?;
            if let Some(stranger) = list.iter().find(|&&class| class >= class_count) {
                return Err(format!("model {index} has class {stranger} of {class_count}"));
            }
            models.push(Model { classes: list.iter().map(|&class| class as usize).collect() });
        }
        let mut names = Vec::new();
        for index in 0..name_count as usize {
            let row = reader.words::<NAME_WORDS>(name_at as usize + index * NAME_WORDS, "name")?;
            let [start, end, model] = row;
            let text = columns.names.get(start as usize..end as usize);
            let text = text.ok_or_else(|| format!("name {index}: {start} .. {end} is not there"))?;
            if model >= model_count {
                return Err(format!("name {index} is of model {model} of {model_count}"));
            }
            names.push(Name { text: text.into(), model: model as usize });
        }
        let bytes = size_of_val(columns.words) + size_of_val(columns.numbers) + size_of_val(columns.ring);
        let (models, names, classes, cells) = (models.into(), names.into(), classes.into(), cells.into());
        Ok(Self { models, names, classes, cells, engine_slots, cell_rows, bytes })
    }

    /// About how much memory it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

struct Reader<'a> {
    columns: &'a Columns<'a>,
    engine_slots: usize,
    cell_rows: usize,
}

impl Reader<'_> {
    fn words<const N: usize>(&self, at: usize, what: &str) -> Result<[u32; N], BadTable> {
        let row = self.columns.words.get(at..).and_then(|rest| rest.first_chunk::<N>());
        row.copied().ok_or_else(|| format!("{what}: no {N} words at {at} of {}", self.columns.words.len()))
    }

    fn list(&self, at: u32, count: u32, what: &str) -> Result<&[u32], BadTable> {
        let (at, count) = (at as usize, count as usize);
        let list = self.columns.words.get(at..at.saturating_add(count));
        list.ok_or_else(|| format!("{what}: no {count} words at {at} of {}", self.columns.words.len()))
    }

    fn cell(&self, place: usize) -> Result<Cell, BadTable> {
        let row = self.words::<CELL_WORDS>(place, "cell")?;
        let [index, in_flight_row, ring_at, slots, candidate_at, number_at, engines, reserves, _place] = row;
        let [in_flight_row, ring_at, slots] = [in_flight_row, ring_at, slots].map(|word| word as usize);
        if in_flight_row >= self.cell_rows {
            return Err(format!("cell {index} has in-flight row {in_flight_row} of {}", self.cell_rows));
        }
        if slots != 0 && !slots.is_power_of_two() {
            return Err(format!("cell {index} has a ring of {slots} slots, not a power of two"));
        }
        let ring = self.columns.ring.get(ring_at..ring_at.saturating_add(slots));
        let ring = ring.ok_or_else(|| format!("cell {index}: no {slots} ring slots at {ring_at}"))?;
        if let Some(stranger) = ring.iter().find(|&&owner| u32::from(owner) >= engines) {
            return Err(format!("cell {index}: a ring slot is owned by engine {stranger} of {engines}"));
        }
        let count = engines as usize + reserves as usize;
        let mut candidates = Vec::new();
        for i in 0..count {
            let words = self.words::<CANDIDATE_WORDS>(candidate_at as usize + i * CANDIDATE_WORDS, "candidate")?;
            let number = number_at as usize + i * CANDIDATE_NUMBERS;
            let pair = self.columns.numbers.get(number..).and_then(|rest| rest.first_chunk::<CANDIDATE_NUMBERS>());
            let &[weight, part] = pair.ok_or_else(|| format!("candidate {i} of cell {index} has no numbers"))?;
            let [slot, id_hash, lacks, max_context_tokens, residency] = words;
            if [weight, part].iter().any(|number| !number.is_finite() || *number < 0.0) {
                return Err(format!("candidate {i} of cell {index} has weight {weight} and part {part}"));
            }
            if slot as usize >= self.engine_slots {
                return Err(format!("candidate {i} of cell {index} has slot {slot} of {}", self.engine_slots));
            }
            candidates.push(Candidate { slot, id_hash, lacks, max_context_tokens, residency, weight, part });
        }
        Ok(Cell {
            index,
            in_flight_row,
            ring: ring.into(),
            id_hashes: candidates.iter().map(|candidate| candidate.id_hash).collect(),
            weights: candidates.iter().map(|candidate| candidate.weight).collect(),
            candidates: candidates.into(),
            engines: engines as usize,
        })
    }
}
