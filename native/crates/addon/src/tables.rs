//! The process's routing tables, shared by its threads: one thread loads a table, the others attach to it by number. A
//! table is let go with the last function that routes by it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use guidevane_core::table::Table;

#[derive(Default)]
struct Tables {
    next_id: u32,
    by_id: HashMap<u32, Weak<Table>>,
}

static TABLES: Mutex<Option<Tables>> = Mutex::new(None);

/// Gives the table a number that no table held at present has.
pub fn register(table: &Arc<Table>) -> u32 {
    let mut tables = lock();
    let tables = tables.get_or_insert_default();
    tables.by_id.retain(|_, table| table.strong_count() > 0);
    while tables.by_id.contains_key(&tables.next_id) {
        tables.next_id = tables.next_id.wrapping_add(1);
    }
    let id = tables.next_id;
    tables.next_id = id.wrapping_add(1);
    tables.by_id.insert(id, Arc::downgrade(table));
    id
}

/// The table of this number, or `None` once nobody holds it.
pub fn find(id: u32) -> Option<Arc<Table>> {
    lock().as_ref()?.by_id.get(&id)?.upgrade()
}

/// How many tables this process holds.
pub fn held() -> u32 {
    let tables = lock();
    let all = tables.iter().flat_map(|tables| tables.by_id.values());
    all.filter(|table| table.strong_count() > 0).count() as u32
}

fn lock() -> MutexGuard<'static, Option<Tables>> {
    // Every change is whole before anything in it can panic.
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}
