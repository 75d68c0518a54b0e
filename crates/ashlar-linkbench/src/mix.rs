//! The ten operations and their shares.

use ashlar_peers::meter::Kinds;

/// An operation of the request phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Inserts or rewrites a link.
    AddLink,
    /// Hides a link.
    DeleteLink,
    /// The same code path as [`Op::AddLink`], on links that mostly exist.
    UpdateLink,
    /// Reads a count.
    CountLink,
    /// Reads several links of one fan.
    MultigetLink,
    /// Lists the visible links of a fan, newest first.
    GetLinksList,
    /// Reads a node.
    GetNode,
    /// Adds a node under the next id.
    AddNode,
    /// Rewrites a node.
    UpdateNode,
    /// Removes a node.
    DeleteNode,
}

impl Op {
    /// The property with the share, in the original's spelling.
    pub fn property(self) -> &'static str {
        match self {
            Op::AddLink => "addlink",
            Op::DeleteLink => "deletelink",
            Op::UpdateLink => "updatelink",
            Op::CountLink => "countlink",
            Op::MultigetLink => "getlink",
            Op::GetLinksList => "getlinklist",
            Op::GetNode => "getnode",
            Op::AddNode => "addnode",
            Op::UpdateNode => "updatenode",
            Op::DeleteNode => "deletenode",
        }
    }
}

impl Kinds for Op {
    const ALL: &'static [Op] = &[
        Op::AddLink,
        Op::DeleteLink,
        Op::UpdateLink,
        Op::CountLink,
        Op::MultigetLink,
        Op::GetLinksList,
        Op::GetNode,
        Op::AddNode,
        Op::UpdateNode,
        Op::DeleteNode,
    ];

    fn place(self) -> usize {
        self as usize
    }

    fn text(self) -> &'static str {
        match self {
            Op::AddLink => "ADD_LINK",
            Op::DeleteLink => "DELETE_LINK",
            Op::UpdateLink => "UPDATE_LINK",
            Op::CountLink => "COUNT_LINK",
            Op::MultigetLink => "MULTIGET_LINK",
            Op::GetLinksList => "GET_LINKS_LIST",
            Op::GetNode => "GET_NODE",
            Op::AddNode => "ADD_NODE",
            Op::UpdateNode => "UPDATE_NODE",
            Op::DeleteNode => "DELETE_NODE",
        }
    }
}

/// How far the sum of the shares may be from 100.
const TOLERANCE: f64 = 1e-5;

/// The shares of the operations.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// The sums of the shares up to each operation, in percent.
    sums: Vec<f64>,
    /// The place of the last operation with a share.
    last: usize,
}

impl Mix {
    /// A mix with these shares in percent, in the order of [`Op::ALL`].
    ///
    /// # Errors
    /// They do not sum to 100.
    pub fn new(shares: &[f64]) -> Result<Mix, String> {
        let mut sum = 0.0;
        let sums: Vec<f64> = shares
            .iter()
            .map(|share| {
                sum += share;
                sum
            })
            .collect();
        if (sum - 100.0).abs() > TOLERANCE {
            return Err(format!("the shares of the operations sum to {sum} %: they must sum to 100 %"));
        }
        let last = shares.iter().rposition(|share| *share > 0.0).unwrap_or(0);
        Ok(Mix { sums, last })
    }

    /// The operation at `percent`, from 0 to 100.
    pub fn at(&self, percent: f64) -> Op {
        // The shares may add up to slightly less than 100: the last operation with a share takes the rest.
        let place = self.sums.iter().position(|sum| percent < *sum).unwrap_or(self.last);
        Op::ALL[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGINAL: [f64; 10] = [
        8.988_660_1,
        2.990_766_4,
        8.012_212_5,
        4.886_356_7,
        0.526_114_2,
        50.711_914_5,
        12.932_668_3,
        2.573_278_9,
        7.366_437,
        1.011_591_4,
    ];

    #[test]
    fn the_originals_shares_sum_to_a_hundred_and_others_are_refused() {
        let mix = Mix::new(&ORIGINAL).unwrap();
        assert_eq!(
            [0.0, 8.98, 8.99, 25.0, 50.0, 99.99].map(|p| mix.at(p)),
            [Op::AddLink, Op::AddLink, Op::DeleteLink, Op::MultigetLink, Op::GetLinksList, Op::DeleteNode]
        );
        let reads: f64 = [3, 4, 5, 6].map(|place| ORIGINAL[place]).iter().sum();
        assert!((reads - 69.06).abs() < 0.005, "{reads}");
        let mut two = [0.0; 10];
        (two[1], two[2]) = (50.0, 49.999_995);
        assert_eq!(Mix::new(&two).unwrap().at(99.999_999), Op::UpdateLink, "no operation without a share");
        let why = Mix::new(&[50.0; 10]).unwrap_err();
        assert!(why.contains("sum to 500 %"), "{why}");
    }

    #[test]
    fn every_operation_knows_its_place() {
        for (place, op) in Op::ALL.iter().enumerate() {
            assert_eq!(op.place(), place);
        }
    }
}
