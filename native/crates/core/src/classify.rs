//! The class of a request. The twin of `packages/selector/src/classify.ts`.

use crate::names::uses;
use crate::scan::Facts;
use crate::seam::{Status, head, path};
use crate::table::{Class, Table};

/// Index of the class, and how the classing ended: the one that a trusted header names if it is of the body's model, else
/// the model's first in file order all of whose capabilities the request uses and whose residency agrees. A request that
/// names no residency agrees with every class.
pub fn classify(table: &Table, head_words: &[u32; head::WORDS], body: &[u8], facts: &Facts) -> (Option<usize>, Status) {
    let model = if facts.model.is_empty() {
        if table.models.len() != 1 {
            return (None, Status::ModelRequired);
        }
        0
    } else {
        let name = &body[facts.model.start..facts.model.end];
        match table.models.iter().position(|model| *model.name == *name) {
            Some(model) => model,
            None => return (None, Status::ModelNotFound),
        }
    };
    let found = named_class(table, head_words, model).or_else(|| {
        let embeds = if head_words[head::PATH] == path::EMBEDDINGS { uses::EMBEDDINGS } else { 0 };
        let used = facts.uses | embeds;
        let fits = |class: &Class| class.uses & !used == 0 && agrees(class, head_words[head::RESIDENCY]);
        table.models[model].classes.iter().copied().find(|&class| fits(&table.classes[class]))
    });
    match found {
        Some(class) if table.classes[class].cell.is_some() => (found, Status::Ok),
        _ => (found, Status::NoEligibleEngine),
    }
}

fn named_class(table: &Table, head_words: &[u32; head::WORDS], model: usize) -> Option<usize> {
    let named = (head_words[head::CLASS_NAMED] as usize).checked_sub(1)?;
    (table.classes.get(named)?.model == model).then_some(named)
}

fn agrees(class: &Class, residency: u32) -> bool {
    residency == 0 || class.residencies.is_empty() || class.residencies.contains(&residency)
}
