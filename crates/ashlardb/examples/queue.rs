//! A queue that survives its process: jobs are taken in order, and a job that was not finished is there after a restart.
//!
//! `cargo run -p ashlardb --example queue [DIRECTORY]`

use ashlardb::Result;
use ashlardb::prelude::*;
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "queue.db".to_owned());
    run(Path::new(&dir))
}

/// Jobs by number, oldest first.
struct Queue {
    db: Db,
    next: u64,
}

impl Queue {
    fn open(dir: &Path) -> Result<Queue> {
        let db = Db::open(dir)?;
        let last = db.scan(..).next_back().transpose()?;
        let number = |key: &[u8]| key.try_into().map_or(0, u64::from_be_bytes);
        Ok(Queue { next: last.map_or(0, |(key, _)| number(&key) + 1), db })
    }

    fn push(&mut self, job: &str) -> Result<()> {
        self.db.put(self.next.to_be_bytes(), job)?;
        self.next += 1;
        Ok(())
    }

    /// Does the oldest `most` jobs. Each goes only after `work` has done it.
    fn work(&self, most: usize, mut work: impl FnMut(&[u8])) -> Result<usize> {
        let mut cursor = self.db.scan(..).cursor()?;
        let mut done = 0;
        while done < most {
            // The cursor shows the queue as it was when it was opened: jobs pushed since wait for the next round.
            let Some((key, job)) = cursor.next()? else { break };
            work(job);
            // A queue's keys are put once and removed once.
            self.db.single_delete(key)?;
            done += 1;
        }
        Ok(done)
    }
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    let mut queue = Queue::open(dir)?;
    for job in ["resize", "encode", "publish"] {
        queue.push(job)?;
    }
    let mut done = Vec::new();
    queue.work(2, |job| done.push(job.escape_ascii().to_string()))?;
    assert_eq!(done, ["resize", "encode"]);
    queue.db.close()?;

    let queue = Queue::open(dir)?;
    let left = queue.work(usize::MAX, |job| println!("after the restart: {}", job.escape_ascii()))?;
    assert_eq!(left, 1);
    queue.db.close()
}
