//! Makes the memtable for an order of keys: a skiplist whose comparisons are compiled for that order.

use crate::rep::MemtableRep;
use crate::skiplist::SkipList;
use ashlar_base::Order;
use ashlar_base::ext::comparator::{BytewiseOrder, CustomOrder, ReverseBytewiseOrder};
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use std::sync::Arc;

/// A new, empty memtable: a concurrent skiplist in an arena, not charged to a budget. See the module `skiplist` for how it works.
pub fn skiplist(order: Order) -> Arc<dyn MemtableRep> {
    charged(order, MemoryCharge::none())
}

/// [`skiplist`], with its memory charged to `budget`, chunk by chunk, as long as the memtable lives.
pub fn skiplist_within(order: Order, budget: &Arc<MemoryBudget>) -> Arc<dyn MemtableRep> {
    charged(order, budget.charge(MemoryUse::Memtables, 0))
}

fn charged(order: Order, charge: MemoryCharge) -> Arc<dyn MemtableRep> {
    match &order {
        Order::Bytewise => Arc::new(SkipList::new(BytewiseOrder, order, charge)),
        Order::ReverseBytewise => Arc::new(SkipList::new(ReverseBytewiseOrder, order, charge)),
        Order::Custom(c) => Arc::new(SkipList::new(CustomOrder(c.clone()), order, charge)),
    }
}
