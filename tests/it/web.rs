//! The pages, through a real listener, and the sign-ins behind them.

mod sign_ins;
