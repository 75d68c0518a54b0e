//! One fixed list of steps, run again and again with another call failing.
