//! The class of a request. The twin of `packages/selector/src/classify.ts`.

use crate::names::uses;
use crate::scan::Facts;
use crate::seam::{Status, head, path};
use crate::table::{Class, Table};

/// What a request was found to be of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classed {
    pub model: Option<usize>,
    /// The body names the model by an alias.
    pub is_aliased: bool,
    pub class: Option<usize>,
}

/// The model of the name or alias that the body has, or the only one there is; and the class: the one that a trusted
/// header names if it is of that model, else the model's first in file order all of whose capabilities the request uses
/// and whose residency agrees. A request that names no residency agrees with every class.
pub fn classify(table: &Table, head_words: &[u32; head::WORDS], body: &[u8], facts: &Facts) -> (Classed, Status) {
    let mut found = Classed::default();
    let model = if facts.model.is_empty() {
        // What is no name can't mean the only model: the engine would refuse it.
        if table.models.len() != 1 || facts.model_is_odd {
            return (found, Status::ModelRequired);
        }
        0
    } else {
        let text = &body[facts.model.start..facts.model.end];
        let Some(name) = table.names.iter().position(|name| *name.text == *text) else {
            return (found, Status::ModelNotFound);
        };
        found.is_aliased = name >= table.models.len();
        table.names[name].model
    };
    found.model = Some(model);
    found.class = named_class(table, head_words, model).or_else(|| {
        let used = facts.uses | uses_of_path(head_words[head::PATH]);
        let fits = |class: &Class| class.uses & !used == 0 && agrees(class, head_words[head::RESIDENCY]);
        table.models[model].classes.iter().copied().find(|&class| fits(&table.classes[class]))
    });
    match found.class {
        Some(class) if table.classes[class].cell.is_some() => (found, Status::Ok),
        _ => (found, Status::NoEligibleEngine),
    }
}

fn uses_of_path(path: u32) -> u32 {
    match path {
        path::EMBEDDINGS => uses::EMBEDDINGS,
        path::RERANK | path::SCORE => uses::RERANK,
        _ => 0,
    }
}

fn named_class(table: &Table, head_words: &[u32; head::WORDS], model: usize) -> Option<usize> {
    let named = (head_words[head::CLASS_NAMED] as usize).checked_sub(1)?;
    (table.classes.get(named)?.model == model).then_some(named)
}

fn agrees(class: &Class, residency: u32) -> bool {
    residency == 0 || class.residencies.is_empty() || class.residencies.contains(&residency)
}
