//! SST files on storage: builder, reader, iterators, verification.
