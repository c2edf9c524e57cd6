//! The heap as data, without Ruby: what a dump says of each object ([`dump::record`]), the formats that it is written
//! in and read from ([`dump`]).

pub mod dump;
