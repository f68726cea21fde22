//! The functions on paths, compared with the same functions on lists of labels.

use fastrand::Rng;
use keyloom::{List, pack};
use keyloom_tables::parts::KeyShape;
use keyloom_trees::path::{LabelPath, PathError, lca};

use crate::language::path;
use crate::naive;

fn of(labels: &[String]) -> LabelPath {
    LabelPath::new(labels.to_vec()).unwrap()
}

#[test]
fn the_functions_of_the_documentation_give_what_it_says() {
    let path_ = path("Top.Child1.Child2");
    assert_eq!(path_.subltree(1, 2).unwrap(), path("Child1"));
    assert_eq!(path_.subpath(0, 2).unwrap(), path("Top.Child1"));
    assert_eq!(path_.subpath_from(1).unwrap(), path("Child1.Child2"));
    assert_eq!(path_.nlevel(), 3);
    let digits = path("0.1.2.3.5.4.5.6.8.5.6.8");
    assert_eq!(digits.index(&path("5.6")), Some(6));
    assert_eq!(digits.index_from(&path("5.6"), -4), Some(9));
    assert_eq!(lca(&[path("1.2.3"), path("1.2.3.4.5.6")]).unwrap(), path("1.2"));
    assert_eq!(lca(&[path("1.2.3"), path("1.2.3.4")]).unwrap(), path("1.2"));
    assert_eq!(lca(&[]), None);
    assert_eq!(lca(&[path("1"), path("")]), None);
}

/// Schemas compare key layouts: a path is packed like the list of its labels.
#[test]
fn paths_are_packed_like_lists_of_labels() {
    assert_eq!(LabelPath::key_shape(), "LabelPath(List<Vec<string>>)");
    let mut rng = Rng::with_seed(22);
    for _ in 0..1_000 {
        let labels = naive::path(&mut rng);
        assert_eq!(pack(&of(&labels)), pack(&List(labels)));
    }
}

#[test]
fn parts_are_those_of_the_list_of_labels() {
    let mut rng = Rng::with_seed(21);
    for _ in 0..10_000 {
        let labels = naive::path(&mut rng);
        let (from, to) = (rng.i32(-9..9), rng.i32(-9..9));
        let len = labels.len() as i32;
        let part = of(&labels).subltree(from, to);
        match 0 <= from && from < len && from <= to {
            true => assert_eq!(part.unwrap(), of(&labels[from as usize..to.min(len) as usize])),
            false => assert!(matches!(part, Err(PathError::InvalidPositions { .. }))),
        }
        let start = if from >= 0 { from } else { len + from };
        // PostgreSQL counts from the end a second time if the result is still negative.
        let start = if start >= 0 { start } else { len + start };
        if !(0..len).contains(&start) {
            assert!(of(&labels).subpath_from(from).is_err());
            assert!(of(&labels).subpath(from, to).is_err());
        } else {
            let rest = &labels[start as usize..];
            assert_eq!(of(&labels).subpath_from(from).unwrap(), of(rest));
            let taken =
                if to >= 0 { to as usize } else { (rest.len() as i32 + to).max(-1) as usize };
            match rest.get(..taken.min(if to >= 0 { rest.len() } else { taken })) {
                Some(part) => assert_eq!(of(&labels).subpath(from, to).unwrap(), of(part)),
                None => assert!(of(&labels).subpath(from, to).is_err()),
            }
        }
        let other = naive::path(&mut rng);
        let offset = if from >= 0 { from } else { (len + from).max(0) } as usize;
        let places = (0..labels.len()).filter(|at| *at >= offset);
        let first =
            places.into_iter().find(|at| !other.is_empty() && labels[*at..].starts_with(&other));
        assert_eq!(of(&labels).index_from(&of(&other), from), first);

        let both = [&labels[..], &other[..]].concat();
        assert_eq!(of(&labels).concat(&of(&other)).unwrap(), of(&both));
        assert!(of(&labels).is_ancestor_of(&of(&both)) && of(&both).is_descendant_of(&of(&labels)));
        assert_eq!(of(&labels).is_ancestor_of(&of(&other)), other.starts_with(&labels));
        assert_eq!(of(&labels).cmp(&of(&other)), labels.cmp(&other));
        // The order of the keys is the order of the paths.
        let (one, two) = (keyloom::pack(&of(&labels)), keyloom::pack(&of(&other)));
        assert_eq!(one.cmp(&two), labels.cmp(&other));
        assert_eq!(keyloom::unpack::<LabelPath>(&one).unwrap(), of(&labels));
    }
}

#[test]
fn the_common_ancestor_is_the_longest_proper_beginning_of_all() {
    let mut rng = Rng::with_seed(22);
    for _ in 0..5_000 {
        let stem = naive::path(&mut rng);
        let lists: Vec<Vec<String>> =
            (0..rng.usize(1..4)).map(|_| [stem.clone(), naive::path(&mut rng)].concat()).collect();
        let paths: Vec<LabelPath> = lists.iter().map(|labels| of(labels)).collect();
        let is_common = |labels: &&[String]| {
            lists.iter().all(|list| list.len() > labels.len() && list.starts_with(labels))
        };
        let mut beginnings = (0..=lists[0].len()).map(|len| &lists[0][..len]);
        let longest = beginnings.rfind(is_common);
        assert_eq!(lca(&paths), longest.map(of), "{lists:?}");
    }
}
