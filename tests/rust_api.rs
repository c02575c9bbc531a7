//! The Rust API, where it is more than the C functions under other names.

use libsplit::{Argument, DType, Error, Field, Lengths, Operator, Plan, Split, View, ViewMut};
use proptest::prelude::*;
use std::mem::MaybeUninit;

/// A matrix [rows, columns] with strides, and where to cut its columns.
#[derive(Debug, Clone)]
struct Case {
    rows: i64,
    lengths: Vec<i64>,
    /// Elements between the end of a row and the start of the next.
    gap: i64,
    turned: bool,
}

fn case() -> impl Strategy<Value = Case> {
    (0i64..6, prop::collection::vec(0i64..5, 1..6), 0i64..3, any::<bool>())
        .prop_map(|(rows, lengths, gap, turned)| Case { rows, lengths, gap, turned })
}

impl Case {
    fn columns(&self) -> i64 {
        self.lengths.iter().sum()
    }

    fn pitch(&self) -> i64 {
        self.columns() + self.gap
    }

    fn data(&self) -> Vec<u16> {
        (0..).take(usize::try_from(self.rows * self.pitch()).unwrap()).collect()
    }

    /// Returns a view with its rows forwards, or from the last to the first.
    fn view<'d>(&self, data: &'d [u16]) -> View<'d, u16> {
        let last = (self.rows - 1).max(0) * self.pitch();
        let (offset, step) = if self.turned { (last, -self.pitch()) } else { (0, self.pitch()) };
        let offset = usize::try_from(offset).unwrap();
        View::strided(data, offset, &[self.rows, self.columns()], &[step, 1]).unwrap()
    }

    /// Returns the pieces, element by element.
    fn expected(&self, data: &[u16]) -> Vec<Vec<u16>> {
        let mut begin = 0;
        let mut piece = |len: &i64| {
            let mut elements = vec![];
            for row in 0..self.rows {
                let row = if self.turned { self.rows - 1 - row } else { row };
                for column in begin..begin + len {
                    elements.push(data[usize::try_from(row * self.pitch() + column).unwrap()]);
                }
            }
            begin += len;
            elements
        };
        self.lengths.iter().map(&mut piece).collect()
    }

    fn split(&self) -> Split<'_> {
        Split::new(Operator::VariadicSplit1).axis(1).lengths(&self.lengths[..])
    }
}

/// Returns what a plan copies into slices of the pieces' sizes.
fn copied(plan: &Plan<u16>, data: &[u16]) -> Vec<Vec<u16>> {
    let count = |shape: &[i64]| usize::try_from(shape.iter().product::<i64>()).unwrap();
    let mut pieces: Vec<_> = plan.shapes().map(|shape| vec![0xDEAD; count(shape)]).collect();
    let mut outputs: Vec<&mut [u16]> = pieces.iter_mut().map(|piece| &mut piece[..]).collect();
    plan.copy(data, &mut outputs).unwrap();
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// A plan does with other data what the split does at once, even after the split and the first data are gone.
    #[test]
    fn a_plan_does_what_the_split_does(case in case()) {
        let plan = {
            let first = vec![0; case.data().len()];
            case.split().plan(&case.view(&first)).unwrap()
        };
        let (data, plan) = (case.data(), plan.clone());
        let expected = case.expected(&data);
        prop_assert_eq!(&copied(&plan, &data), &expected);
        prop_assert_eq!(&case.split().to_vecs(&case.view(&data)).unwrap(), &expected);
        let views = plan.views(&data).unwrap();
        prop_assert_eq!(&views, &case.split().views(&case.view(&data)).unwrap());
        for (view, expected) in views.iter().zip(&expected) {
            let mut elements = vec![0; expected.len()];
            view.copy_to(&mut elements).unwrap();
            prop_assert_eq!(&elements, expected);
            if let Some(first) = expected.first() {
                prop_assert_eq!(&view.data()[view.offset()], first);
                prop_assert_eq!(view.as_ptr(), &raw const data[view.offset()]);
            }
        }
    }

    /// The slices of a piece are its elements, and those of all pieces have each element once.
    #[test]
    fn mutable_slices_are_the_pieces(case in case(), inner in 1i64..3) {
        let case = Case { gap: 0, turned: false, ..case };
        let shape = [case.rows, case.columns(), inner];
        let len = case.data().len() * usize::try_from(inner).unwrap();
        let mut data: Vec<u16> = (0..).take(len).collect();
        let expected = case.split().to_vecs(&View::packed(&data, &shape).unwrap()).unwrap();
        let mut pieces = case.split().slices_mut(&mut data, &shape).unwrap();
        prop_assert_eq!(pieces.iter().map(|slices| slices.concat()).collect::<Vec<_>>(), expected);
        prop_assert!(pieces.iter().flatten().all(|slice| !slice.is_empty()));
        pieces.iter_mut().flatten().for_each(|slice| slice.fill(9));
        prop_assert_eq!(data, vec![9; len]);
    }

    /// Bytes of a type that is only known at run time are copied as elements of that type are.
    #[test]
    fn bytes_are_copied_as_elements_are(case in case()) {
        let case = Case { gap: 0, turned: false, ..case };
        let data: Vec<u8> = case.data().iter().flat_map(|element| element.to_ne_bytes()).collect();
        let bytes = |piece: &Vec<u16>| piece.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let expected: Vec<Vec<u8>> = case.expected(&case.data()).iter().map(bytes).collect();
        let mut copies: Vec<_> = expected.iter().map(|piece| vec![0; piece.len()]).collect();
        let mut outputs: Vec<&mut [u8]> = copies.iter_mut().map(|copy| &mut copy[..]).collect();
        let shape = [case.rows, case.columns()];
        case.split().copy_bytes(DType::Uint16, &shape, &data, &mut outputs).unwrap();
        prop_assert_eq!(copies, expected);
    }
}

#[test]
fn a_plan_refuses_slices_of_other_lengths() {
    let data: Vec<u8> = (0..12).collect();
    let split = Split::new(Operator::OpenVinoSplit1).num_outputs(2);
    let plan = split.plan(&View::strided(&data, 2, &[2, 3], &[6, 1]).unwrap()).unwrap();
    let (mut a, mut b) = ([99; 3], [99; 3]);
    let short = plan.copy(&data[..10], &mut [&mut a, &mut b]);
    assert_eq!(short, Err(Error::SliceLen { expected: 11, actual: 10 }));
    assert_eq!(plan.views(&data[..10]), Err(Error::SliceLen { expected: 11, actual: 10 }));
    let small = plan.copy(&data, &mut [&mut a, &mut b[..2]]);
    assert_eq!(small, Err(Error::SliceLen { expected: 3, actual: 2 }));
    let one = plan.copy(&data, &mut [&mut a]);
    assert_eq!(one, Err(Error::PlanOutputs { expected: 2, actual: 1 }));
    assert_eq!((a, b), ([99; 3], [99; 3]));
    plan.copy(&data[..11], &mut [&mut a, &mut b]).unwrap();
    assert_eq!((a, b), ([2, 3, 4], [8, 9, 10]));
}

#[test]
fn views_are_copied_to_slices_of_their_length() {
    let (data, mut one) = ([7u32], [0]);
    View::packed(&data, &[]).unwrap().copy_to(&mut one).unwrap();
    assert_eq!(one, [7]);
    let wrong = View::packed(&data, &[1]).unwrap().copy_to(&mut [0; 2]);
    assert_eq!(wrong, Err(Error::SliceLen { expected: 1, actual: 2 }));
}

/// As with the C functions: its strides could not be represented.
#[test]
fn extents_too_large_for_strides_are_refused_beside_one_of_0_too() {
    let packed = View::<u8>::packed(&[], &[i64::MAX, i64::MAX, 0]);
    let too_many = Err(Error::TooManyElements { argument: Argument::Input });
    assert_eq!(packed.map(|view| view.as_slice()), too_many);
}

#[test]
fn an_executor_is_lent_to_copies_in_new_memory() {
    struct Backwards;
    impl libsplit::Executor for Backwards {
        fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
            (0..count).rev().for_each(task);
            Ok(())
        }
    }
    let data: Vec<u32> = (0..1 << 19).collect();
    let input = View::packed(&data, &[1 << 18, 2]).unwrap();
    let split = Split::new(Operator::OpenVinoSplit1).axis(1).num_outputs(2);
    let copies = split.executor(&Backwards).to_vecs(&input).unwrap();
    assert_eq!(copies, split.to_vecs(&input).unwrap());
    let (mut even, mut odd) = (vec![0; 1 << 18], vec![0; 1 << 18]);
    let plan = split.plan(&input).unwrap();
    plan.copy_with(&data, &mut [&mut even, &mut odd], &Backwards).unwrap();
    assert_eq!(copies, [&even[..], &odd[..]]);
    assert!(matches!(ViewMut::packed(&mut even, &[3]), Err(Error::SliceLen { .. })));
}

/// What the split by these lengths makes from 7 elements.
fn sevenths<'a>(operator: Operator, lengths: impl Into<Lengths<'a>>) -> Result<Vec<i64>, Error> {
    let shapes = Split::new(operator).lengths(lengths).shapes::<f32>(&[7])?;
    Ok(shapes.iter().map(|shape| shape[0]).collect())
}

#[test]
fn lengths_may_be_integers_of_any_type() {
    for operator in Operator::ALL.iter().copied().filter(|op| *op != Operator::OpenVinoSplit1) {
        let expected = Ok(vec![2, 5]);
        assert_eq!(sevenths(operator, &[2, 5]), expected);
        assert_eq!(sevenths(operator, &[2u8, 5]), expected);
        assert_eq!(sevenths(operator, &[2i16, 5][..]), expected);
        assert_eq!(sevenths(operator, &[2isize, 5]), expected);
        assert_eq!(sevenths(operator, &[2u64, 5]), expected);
        assert_eq!(sevenths(operator, &vec![2usize, 5]), expected);
        assert_eq!(sevenths(operator, &vec![2u32, 5].into_boxed_slice()), expected);
    }
    let each = sevenths(Operator::SplitToSequence11, Lengths::scalar(&3usize));
    assert_eq!(each, Ok(vec![3, 3, 1]));
}

#[test]
fn lengths_that_are_no_int64_are_refused() {
    let large = sevenths(Operator::Split18, &[7, u64::MAX]);
    assert_eq!(large, Err(Error::LengthNotInteger { output: 1, dtype: DType::Uint64 }));
    let negative = sevenths(Operator::Split18, &[8i8, -1]);
    assert_eq!(negative, Err(Error::LengthNegative { output: 1, expected: 0, actual: -1 }));
    let floats = sevenths(Operator::Split18, &[2.0f32, 5.0]);
    let (operator, actual) = (Operator::Split18, DType::Float);
    assert_eq!(floats, Err(Error::LengthsDType { operator, actual, expected: "INT64" }));
    assert_eq!(sevenths(Operator::Split1, &[2.0f32, 5.0]), Ok(vec![2, 5]));
}

#[test]
fn copies_fill_memory_that_holds_no_values_yet() {
    let data: Vec<u16> = (0..12).collect();
    let input = View::packed(&data, &[3, 4]).unwrap();
    let split = Split::new(Operator::VariadicSplit1).axis(1).lengths(&[1, 3]);
    let (mut column, mut others) = ([MaybeUninit::uninit(); 3], [MaybeUninit::uninit(); 9]);
    let check = |column: &[MaybeUninit<u16>], others: &[MaybeUninit<u16>]| {
        // SAFETY: the copy says that it has written them.
        let value = |slot: &MaybeUninit<u16>| unsafe { slot.assume_init() };
        assert!(column.iter().map(value).eq([0, 4, 8]));
        assert!(others.iter().map(value).eq([1, 2, 3, 5, 6, 7, 9, 10, 11]));
    };
    let mut outputs = [
        ViewMut::strided_uninit(&mut column, 0, &[3, 1], &[1, 1]).unwrap(),
        ViewMut::packed_uninit(&mut others, &[3, 3]).unwrap(),
    ];
    split.copy(&input, &mut outputs).unwrap();
    check(&column, &others);

    let (mut column, mut others) = ([MaybeUninit::uninit(); 3], [MaybeUninit::uninit(); 9]);
    let plan = split.plan(&input).unwrap();
    let short = plan.copy_uninit(&data, &mut [&mut column, &mut others[..8]], None);
    assert_eq!(short, Err(Error::SliceLen { expected: 9, actual: 8 }));
    plan.copy_uninit(&data, &mut [&mut column, &mut others], None).unwrap();
    check(&column, &others);
}

#[test]
fn bytes_that_do_not_hold_a_tensor_are_refused() {
    let split = Split::new(Operator::OpenVinoSplit1).num_outputs(2);
    let copy = |input: &[u8], outputs: &mut [&mut [u8]]| {
        split.copy_bytes(DType::Float, &[2], input, outputs)
    };
    let (mut a, mut b) = ([9; 4], [9; 5]);
    let argument = Argument::Input;
    let short = copy(&[1; 7], &mut [&mut a, &mut b]);
    assert_eq!(short, Err(Error::DataBytes { argument, expected: 8, actual: 7 }));
    let absent = copy(&[], &mut [&mut a, &mut b]);
    assert_eq!(absent, Err(Error::Null { argument, field: Field::Data }));
    let small = copy(&[1; 8], &mut [&mut a, &mut b[..3]]);
    let argument = Argument::Output(1);
    assert_eq!(small, Err(Error::DataBytes { argument, expected: 4, actual: 3 }));
    assert!(matches!(copy(&[1; 8], &mut [&mut a]), Err(Error::NumOutputsGiven { .. })));
    assert_eq!((a, b), ([9; 4], [9; 5]));
    copy(&[1; 8], &mut [&mut [], &mut b]).unwrap();
    assert_eq!((a, b), ([9; 4], [1, 1, 1, 1, 9]));
    copy(&[2; 9], &mut [&mut a, &mut []]).unwrap();
    assert_eq!((a, b), ([2; 4], [1, 1, 1, 1, 9]));
}

/// There are as many parts as outputs, if the operator has no other number.
#[test]
fn bytes_are_copied_to_as_many_outputs_as_are_given() {
    let (mut a, mut b) = ([0], [0]);
    let split = Split::new(Operator::Split13);
    split.copy_bytes(DType::Bool, &[2], &[1, 2], &mut [&mut a, &mut b]).unwrap();
    assert_eq!((a, b), ([1], [2]));
}

/// Listing them would take all memory.
#[test]
fn pieces_that_are_too_many_are_refused() {
    let (data, shape, count) = ([7u8], [1 << 40], 1 << 40);
    let input = View::strided(&data, 0, &shape, &[0]).unwrap();
    let (argument, split) = (Argument::InputShape, Split::unbind(0));
    let refused = Error::TooManyOutputs { argument, expected: i32::MAX.into(), actual: count };
    assert_eq!(split.count::<u8>(&shape), Ok(count));
    assert_eq!(split.shapes::<u8>(&shape), Err(refused));
    assert_eq!(split.views(&input), Err(refused));
    assert_eq!(split.to_vecs(&input), Err(refused));
    assert_eq!(split.plan(&input).map(|_| ()), Err(refused));
}

#[test]
fn slices_of_other_lengths_are_refused() {
    let mut data = [0u8; 5];
    let pieces = Split::unbind(0).slices_mut(&mut data, &[2, 3]);
    assert_eq!(pieces, Err(Error::SliceLen { expected: 6, actual: 5 }));
}

#[test]
fn pieces_that_are_unbound_have_no_axis() {
    let data: Vec<u32> = (0..24).collect();
    let rows = Split::unbind(1).views(&View::packed(&data, &[2, 3, 4]).unwrap()).unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!((rows[2].shape(), rows[2].strides()), (&[2, 4][..], &[12, 1][..]));
    assert_eq!(rows[2].to_vec(), [8, 9, 10, 11, 20, 21, 22, 23]);
}

#[cfg(feature = "rayon")]
#[test]
fn rayon_runs_every_task_once() {
    use libsplit::{Executor, Rayon};
    use std::sync::atomic::{AtomicUsize, Ordering};
    for count in [0, 1, 100] {
        let ran: Vec<_> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        let task = |index: usize| {
            ran[index].fetch_add(1, Ordering::Relaxed);
        };
        Rayon.parallel_for(count, &task).unwrap();
        assert!(ran.iter().all(|times| times.load(Ordering::Relaxed) == 1));
    }
    assert!(Rayon.max_tasks() > 0);
}

#[cfg(feature = "ndarray")]
mod ndarrays {
    use super::*;
    use ndarray::{s, Array, Array3, ArrayViewD, Axis, IxDyn};

    /// Returns an array with axes of up to 3, in this order, some of them backwards.
    fn turned(data: &[u16], case: ([usize; 3], usize, [bool; 3])) -> ArrayViewD<'_, u16> {
        const ORDERS: [[usize; 3]; 6] =
            [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
        let (shape, order, backwards) = case;
        let array = ArrayViewD::from_shape(IxDyn(&shape), data).unwrap();
        let mut array = array.permuted_axes(IxDyn(&ORDERS[order]));
        for axis in (0..3).filter(|axis| backwards[*axis]) {
            array.invert_axis(Axis(axis));
        }
        array
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        /// An array, its view, and the array of that view hold the same.
        #[test]
        fn arrays_are_views_and_views_arrays(
            shape in [0usize..4, 0usize..4, 0usize..4],
            order in 0usize..6,
            backwards in any::<[bool; 3]>(),
        ) {
            let data: Vec<u16> = (0..).take(shape.iter().product()).collect();
            let array = turned(&data, (shape, order, backwards));
            let view = View::try_from(array.clone()).unwrap();
            prop_assert_eq!(view.to_vec(), array.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(&ArrayViewD::try_from(&view).unwrap(), &array);
            let rows = Split::unbind(1).views(&view).unwrap();
            prop_assert_eq!(rows.len(), array.len_of(Axis(1)));
            for (row, expected) in rows.iter().zip(array.axis_iter(Axis(1))) {
                prop_assert_eq!(ArrayViewD::try_from(row).unwrap(), expected);
            }
        }
    }

    #[test]
    fn arrays_with_gaps_are_refused() {
        let array = Array3::<f32>::zeros((2, 3, 4));
        assert_eq!(View::try_from(array.slice(s![.., ..2, ..])), Err(Error::ArrayGaps));
        assert_eq!(View::try_from(array.slice(s![.., .., ..;2])), Err(Error::ArrayGaps));
        assert_eq!(View::try_from(array.broadcast((2, 2, 3, 4)).unwrap()), Err(Error::ArrayGaps));
        assert_eq!(View::try_from(array.slice(s![1, .., ..])).unwrap().shape(), [3, 4]);
    }

    #[test]
    fn views_of_few_or_repeated_elements_are_arrays() {
        let data = [1u8, 2, 3];
        let one = View::strided(&data, 2, &[], &[]).unwrap();
        assert_eq!(ArrayViewD::try_from(&one).unwrap(), Array::from_elem(IxDyn(&[]), 3));
        let repeated = View::strided(&data, 1, &[2, 2], &[0, 1]).unwrap();
        let array = ArrayViewD::try_from(&repeated).unwrap();
        assert!(array.iter().eq(&[2, 3, 2, 3]));
        let wide = View::strided(&data, 0, &[1, 3], &[i64::MIN, 1]).unwrap();
        assert!(ArrayViewD::try_from(&wide).unwrap().iter().eq(&data));
        let none = View::strided(&data, 0, &[0, 3], &[i64::MIN, -7]).unwrap();
        assert_eq!(ArrayViewD::try_from(&none).unwrap().shape(), [0, 3]);
    }
}

#[test]
fn a_plan_says_what_call_it_is_of() {
    let data = [0u8; 24];
    let columns = View::strided(&data, 0, &[2, 10], &[12, 1]).unwrap();
    let split =
        |lengths: &'static [i64]| Split::new(Operator::VariadicSplit1).axis(1).lengths(lengths);
    let says = |lengths: &'static [i64]| split(lengths).plan(&columns).unwrap().to_string();
    let call = "UINT8 [2, 10] by strides [12, 1], axis 1 into ";
    assert!(says(&[5, 5]).starts_with(&format!("{call}2 pieces of 5")));
    assert!(says(&[10]).starts_with(&format!("{call}1 piece of 10")));
    let many = format!("{call}9 pieces of [1, 1, 1, 1, 1, 1, 1, 1] and so on");
    assert!(says(&[1, 1, 1, 1, 1, 1, 1, 1, 2]).starts_with(&many));

    let no_plan = [0u64; 64];
    let mut buffer = [7; 8];
    // SAFETY: memory that is no plan is not read beyond its first word.
    let len = unsafe {
        libsplit::ffi::libsplit_plan_describe(no_plan.as_ptr().cast(), buffer.as_mut_ptr(), 8)
    };
    assert_eq!((len, buffer), (0, [7; 8]));
}
