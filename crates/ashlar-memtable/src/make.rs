//! Makes the memtable for an order of keys: its comparisons are compiled for that order.

use crate::memtable::Memtable;
use crate::rep::MemtableRep;
use crate::skiplist::SkipList;
use crate::tree::Tree;
use ashlar_base::Order;
use ashlar_base::ext::comparator::{BytewiseOrder, CustomOrder, ReverseBytewiseOrder};
use ashlar_base::memory::{MemoryBudget, MemoryCharge, MemoryUse};
use std::sync::Arc;

/// A new, empty memtable, not charged to a budget: a tree for the built-in orders, a skiplist for custom ones.
pub fn memtable(order: Order) -> Arc<dyn MemtableRep> {
    charged(order, MemoryCharge::none())
}

/// [`memtable`], with its memory charged to `budget`, chunk by chunk, as long as the memtable lives.
pub fn memtable_within(order: Order, budget: &Arc<MemoryBudget>) -> Arc<dyn MemtableRep> {
    charged(order, budget.charge(MemoryUse::Memtables, 0))
}

fn charged(order: Order, charge: MemoryCharge) -> Arc<dyn MemtableRep> {
    match &order {
        Order::Bytewise => Arc::new(Memtable::new(<Tree<_>>::new(BytewiseOrder, charge), order)),
        Order::ReverseBytewise => {
            Arc::new(Memtable::new(<Tree<_>>::new(ReverseBytewiseOrder, charge), order))
        }
        Order::Custom(c) => {
            let list = SkipList::new(CustomOrder(c.clone()), charge);
            Arc::new(Memtable::new(list, order))
        }
    }
}
