//! The control of the memory checks: it reads one byte after an allocation, which a checker must
//! detect.
fn main() {
    let bytes = std::hint::black_box(vec![7_u8; 16]);
    // SAFETY: none, on purpose.
    let behind = unsafe { *bytes.as_ptr().add(16) };
    println!("nobody noticed: {behind}");
}
