//! Integration tests in one binary, because linking one for each file takes longer.

mod lab;
mod lab_story;
mod pages;
mod story;
