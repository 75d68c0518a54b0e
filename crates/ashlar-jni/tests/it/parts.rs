//! Clips, exports of parts, cancelled work and transactions, over both native halves.

use crate::walks::both_say_the_same;

#[test]
fn both_native_halves_clip_join_and_cancel_alike() {
    both_say_the_same("both_native_halves_clip_join_and_cancel_alike", "Parts", &crate::java::JARS[3..]);
}
