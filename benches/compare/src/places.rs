//! Generated places.

/// Latitudes and longitudes, uniform on the sphere. The same seed gives the same places.
pub fn uniform(seed: u64) -> impl Iterator<Item = (f64, f64)> {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(move || {
        let height: f64 = random.f64() * 2.0 - 1.0;
        (height.asin().to_degrees(), random.f64() * 360.0 - 180.0)
    })
}
