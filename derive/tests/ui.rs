//! Each misuse is a compile error at its place, with the remedy in words.

#[test]
fn misuse_is_a_compile_error_with_the_remedy() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
