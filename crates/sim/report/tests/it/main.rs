//! All tests from outside in one program: linking one for each file takes longer.

mod lab;
mod lab_story;
mod story;
