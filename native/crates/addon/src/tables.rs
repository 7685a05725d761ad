//! The process's routing tables, shared by its threads: one thread loads a table, the others attach to it by number. A
//! table is let go with the last function that routes by it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use guidevane_core::table::Table;

/// A table that other threads may find by its number, for as long as anyone holds it.
pub struct HeldTable {
    pub table: Table,
    pub id: u32,
}

#[derive(Default)]
struct Tables {
    next_id: u32,
    by_id: HashMap<u32, Weak<HeldTable>>,
}

static TABLES: Mutex<Option<Tables>> = Mutex::new(None);

/// Gives the table a number that no table held at present has.
pub fn register(table: Table) -> Arc<HeldTable> {
    let mut tables = lock();
    let tables = tables.get_or_insert_default();
    while tables.by_id.contains_key(&tables.next_id) {
        tables.next_id = tables.next_id.wrapping_add(1);
    }
    let id = tables.next_id;
    tables.next_id = id.wrapping_add(1);
    let held = Arc::new(HeldTable { table, id });
    tables.by_id.insert(id, Arc::downgrade(&held));
    held
}

/// The table of this number, or `None` once nobody holds it.
pub fn find(id: u32) -> Option<Arc<HeldTable>> {
    lock().as_ref()?.by_id.get(&id)?.upgrade()
}

/// How many tables this process holds.
pub fn count() -> u32 {
    lock().as_ref().map_or(0, |tables| tables.by_id.len() as u32)
}

impl Drop for HeldTable {
    fn drop(&mut self) {
        if let Some(tables) = lock().as_mut() {
            tables.by_id.remove(&self.id);
        }
    }
}

fn lock() -> MutexGuard<'static, Option<Tables>> {
    // Every change is whole before anything in it can panic.
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}
