use super::*;
use crate::pressure::{Memory, Resources};
use crate::wal::{Wal, WalShape};
use crate::write::{FamilySlot, WriteHost};
use ashlar_base::{FamilyId, FileNumber, Order};
use ashlar_env::DatabaseId;
use ashlar_env::sim::SimEnv;
use ashlar_memtable::memtable;
use ashlar_observe::WriteTally;
use ashlar_options::DbOptions;
use ashlar_sync::atomic::AtomicUsize;
use std::path::Path;

/// A database that takes every write.
struct Open;

impl WriteHost for Open {
    fn make_room(&self, _: &Asked, _: &mut dyn FnMut(Unfit) -> Result<()>) -> Result<()> {
        Ok(())
    }
    fn waits_for_lead(&self) {}
    fn is_holding(&self) -> bool {
        false
    }
    fn panicked(&self, _: &Error) {}
    fn log_failed(&self, _: &Error) {}
    fn wants_room(&self) -> bool {
        false
    }
    fn limits_disk(&self) -> bool {
        false
    }
    fn check_unlogged(&self, _: usize) -> Result<()> {
        Ok(())
    }
    fn log_lacks_room(&self, cause: Error) -> Error {
        cause
    }
}

/// Regression: the refused batch ended the group of records, and the batch before it was acknowledged without a write.
#[test]
fn a_batch_refused_on_a_full_disk_leaves_the_batches_before_it_in_the_wal() {
    let sim = SimEnv::new(1);
    let (env, dir) = (sim.env(), Path::new("/db"));
    env.fs.create_dir_all(dir).unwrap();
    let wal = Arc::new(Wal::create(&env, dir, FileNumber(1), WalShape::default()).unwrap());
    let limit = Arc::new(AtomicUsize::new(usize::MAX));
    let family = FamilySlot::new(FamilyId::DEFAULT, memtable(Order::Bytewise), limit);
    let options = DbOptions::default();
    let memory = Memory::new(&Resources::alone(&options, None), &options).unwrap();
    let set = WriteSet::new(Arc::clone(&wal), vec![family], memory.active_limit(0));
    let tally = WriteTally::new(Arc::new(ashlar_base::stats::Statistics::new()));
    let committer = Committer::new((env.clone(), DatabaseId::fresh()), Arc::new(set), SeqNum::ZERO, tally);
    committer.attach(Box::new(Open));
    sim.set_capacity(sim.used_bytes() + ROOM_FOR_DELETIONS + (16 << 10));

    let batch = |value: usize| {
        let mut batch = BatchEncoder::new();
        batch.put(FamilyId::DEFAULT, b"key", &vec![0; value]).unwrap();
        batch
    };
    let (mut small, mut large) = (batch(10), batch(200 << 10));
    let given_up = || Error::closed();
    let mut group = committer.queue.try_lead().unwrap().group(GROUP_BYTES, &given_up);
    let mut members = [&mut small, &mut large].map(|batch| Member::new(batch, WriteOptions::default()));
    committer.run_group(&mut members, group.parts().1, None);
    let [small, large] = members.map(Member::outcome);
    assert_eq!(large.map(drop).unwrap_err().kind(), ErrorKind::Io(IoKind::NoSpace));
    let (_, end) = small.unwrap().log_end;
    assert_eq!(wal.log().position(), end, "published");
    let written = env.fs.open_read(&dir.join("000001.log")).unwrap().len();
    assert_eq!(written, end, "the operating system has the record");
}
