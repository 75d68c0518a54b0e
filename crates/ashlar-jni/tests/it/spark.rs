//! Spark's kvstore and its streaming queries over both native halves.

use crate::engine::Engine;

#[test]
fn spark_says_the_same_over_both_halves() {
    match Engine::build("spark") {
        Ok(spark) => spark.both_say_the_same(&["1000", "short"]),
        Err(skip) => skip.announce("spark_says_the_same_over_both_halves"),
    }
}
