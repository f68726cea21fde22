//! The control of the memory checks: reads one byte behind an allocation, where a checker must stop
//! it.
fn main() {
    let bytes = std::hint::black_box(vec![7_u8; 16]);
    // SAFETY: there is none, on purpose.
    let behind = unsafe { *bytes.as_ptr().add(16) };
    println!("nobody noticed: {behind}");
}
