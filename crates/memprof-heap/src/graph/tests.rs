mod basics;
mod deep;
mod dominance;
mod reaching;
