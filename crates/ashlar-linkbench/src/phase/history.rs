//! Lists that came back full: a later operation continues one of them behind its oldest link.

use crate::kv::Listing;
use crate::model::{Fan, LIST_LIMIT};
use ashlar_bench::Random;

/// The most lists that a requester remembers.
const MOST: usize = 2048;

/// The oldest link of each list that came back full, one per fan.
#[derive(Clone, Debug, Default)]
pub struct History(Vec<(Fan, u64)>);

impl History {
    /// A list to continue: links at or before the time of the oldest one, without that one. `None`: none came back full.
    pub fn next(&self, random: &mut Random) -> Option<Listing> {
        let place = usize::try_from(random.below(self.0.len() as u64)).ok()?;
        let (fan, time) = *self.0.get(place)?;
        Some(Listing { fan, time, offset: 1, limit: LIST_LIMIT })
    }

    /// Notes that a list returned `seen` links, the oldest of them at `oldest`.
    pub fn note(&mut self, listing: &Listing, seen: usize, oldest: u64, random: &mut Random) {
        let known = self.0.iter().position(|(fan, _)| *fan == listing.fan);
        match (seen >= listing.limit, known) {
            (true, Some(place)) => self.0[place].1 = oldest,
            (true, None) if self.0.len() < MOST => self.0.push((listing.fan, oldest)),
            (true, None) => {
                let place = usize::try_from(random.below(MOST as u64)).unwrap_or(0);
                self.0[place] = (listing.fan, oldest);
            }
            // The end of the list was reached: forget it.
            (false, Some(place)) if listing.offset > 0 => drop(self.0.swap_remove(place)),
            (false, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_lists_are_continued_until_they_end() {
        let (mut history, mut random) = (History::default(), Random::new(1, 0));
        assert_eq!(history.next(&mut random), None);
        let fan = Fan { id1: 1, link_type: 2 };
        let first = Listing { fan, time: u64::MAX, offset: 0, limit: LIST_LIMIT };
        history.note(&first, 7, 100, &mut random);
        assert_eq!(history.next(&mut random), None, "not full");
        history.note(&first, LIST_LIMIT, 100, &mut random);
        let second = history.next(&mut random).unwrap();
        assert_eq!(second, Listing { fan, time: 100, offset: 1, limit: LIST_LIMIT });
        history.note(&second, LIST_LIMIT, 50, &mut random);
        assert_eq!(history.next(&mut random).map(|listing| listing.time), Some(50));
        history.note(&second, 3, 40, &mut random);
        assert_eq!(history.next(&mut random), None);
        for id1 in 0..5000 {
            history.note(&Listing { fan: Fan { id1, ..fan }, ..first }, LIST_LIMIT, 1, &mut random);
        }
        assert_eq!(history.0.len(), MOST);
    }
}
