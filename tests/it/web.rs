//! The pages, through a real listener, and the sign-ins behind them.

mod bounds;
mod connecting;
mod guard;
mod house;
mod left;
mod looks;
mod product;
mod secrets;
mod sign_ins;
mod signing_in;
mod strangers;
