use super::*;

#[test]
fn thin_path() {
    let shape = Shape::JUNGFRAU_MODULE;
    let mut finder = PeakFinder::new(
        shape,
        512,
        distance_from(256.0, 512.0),
        PeakConfig::default(),
    )
    .unwrap();
    let mut image = vec![0i16; shape.pixels()];
    image[1024 * 100 + 200] = 50;
    image[1024 * 100 + 201] = 50;
    let peaks = finder.find(&image).unwrap();
    assert_eq!(peaks.list().len(), 1, "{peaks:?}");
    assert_eq!(peaks.list()[0].column, 200.5);
}
