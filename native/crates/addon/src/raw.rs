#![allow(unsafe_code)]
//! The hot path: a hand-written Node-API callback, a function object per loaded table, and words shared with JavaScript.
//!
//! Every `unsafe` of the addon is here. What each relies on:
//!
//! * `env`, `info` and values are those that Node passed to this call or returned from it; none is kept beyond it.
//! * A slice over a JavaScript array lives only within the call that asked for it. No JavaScript runs in between, so the
//!   array can't be detached, and memory shared with other threads is refused.
//! * Shared words are read and written through atomics only. They stay alive because a reference holds their typed array, and stay
//!   where they are because a SharedArrayBuffer can be neither detached nor shrunk.
//! * A function's state is freed by the finalizer of that function, after which nothing can call it.

use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use guidevane_core::guard::guard;
use guidevane_core::route::{Scratch, route};
use guidevane_core::seam::{head, out};
use guidevane_core::state::SharedState;
use napi::bindgen_prelude::{FromNapiValue, ToNapiValue, TypeName};
use napi::{Error, Result, Status, ValueType, sys};

use crate::tables::HeldTable;

/// A `Uint32Array` over a SharedArrayBuffer, kept alive for as long as this is.
pub struct SharedWords {
    data: *const AtomicU32,
    length: usize,
    env: sys::napi_env,
    reference: sys::napi_ref,
}

impl SharedWords {
    pub fn get(&self, index: usize) -> Option<u32> {
        self.words().get(index).map(|word| word.load(Ordering::Relaxed))
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: the whole array, which `reference` keeps alive for as long as `self`; aligned and non-null as checked when
        // it was taken. Other threads change the words by atomics alone, and so does who has this slice.
        unsafe { std::slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: dropped on the thread of `env`, in a call or in a finalizer; the reference is ours. A failure has
        // nobody to go to here, and costs no more than the array's memory.
        unsafe { sys::napi_delete_reference(self.env, self.reference) };
    }
}

impl FromNapiValue for SharedWords {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: `env` and `value` are Node's, by this trait's contract.
        let array = unsafe { TypedArray::of(env, value) };
        let Some(array) = array.filter(|array| array.is_words(1)) else {
            return Err(Error::new(Status::InvalidArg, "a Uint32Array of one word or more is needed"));
        };
        // SAFETY: as above.
        if !unsafe { array.is_shared(env) } {
            return Err(Error::new(Status::InvalidArg, "the Uint32Array must be over a SharedArrayBuffer"));
        }
        let mut reference = ptr::null_mut();
        // SAFETY: as above.
        if unsafe { sys::napi_create_reference(env, value, 1, &mut reference) } != sys::Status::napi_ok {
            return Err(Error::new(Status::GenericFailure, "the shared array can't be referenced"));
        }
        Ok(Self { data: array.data.cast::<AtomicU32>().cast_const(), length: array.length, env, reference })
    }
}

impl TypeName for SharedWords {
    fn type_name() -> &'static str {
        "Uint32Array"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

/// One thread's router; in JavaScript a function `(headWords, headBytes, body, out) => status`.
pub struct RouteFunction {
    held: Arc<HeldTable>,
    shared: SharedColumns,
    scratch: RefCell<Scratch>,
}

/// The process's shared state as this thread holds it.
pub struct SharedColumns {
    pub engines: SharedWords,
    pub version: SharedWords,
    pub in_flight: SharedWords,
    pub moves: SharedWords,
    pub cells: usize,
}

impl SharedColumns {
    pub fn state(&self) -> Result<SharedState<'_>> {
        let [engines, version] = [&self.engines, &self.version].map(SharedWords::words);
        let [in_flight, moves] = [&self.in_flight, &self.moves].map(SharedWords::words);
        SharedState::new(engines, version, in_flight, moves, self.cells)
            .map_err(|bad| Error::new(Status::InvalidArg, bad))
    }
}

impl RouteFunction {
    pub fn new(held: Arc<HeldTable>, shared: SharedColumns) -> Self {
        let scratch = RefCell::new(Scratch::for_table(&held.table));
        Self { held, shared, scratch }
    }

    /// What the garbage collector should think a function costs: the table, though threads share it, since one of them
    /// may be the last to hold it.
    fn bytes(&self) -> i64 {
        i64::try_from(self.held.table.bytes()).unwrap_or(i64::MAX)
    }
}

impl ToNapiValue for RouteFunction {
    unsafe fn to_napi_value(env: sys::napi_env, function: Self) -> Result<sys::napi_value> {
        let bytes = function.bytes();
        let table_id = function.held.id;
        let data = Box::into_raw(Box::new(function));
        let mut value = ptr::null_mut();
        // SAFETY: `env` is Node's. `data` stays valid until `finalize`, which Node runs once, after the last call.
        let status = unsafe {
            let name = c"route";
            let created = sys::napi_create_function(env, name.as_ptr(), 5, Some(call), data.cast(), &mut value);
            if created == sys::Status::napi_ok {
                let none = ptr::null_mut();
                sys::napi_add_finalizer(env, value, data.cast(), Some(finalize), none, ptr::null_mut())
            } else {
                created
            }
        };
        if status != sys::Status::napi_ok {
            // SAFETY: nobody else has `data`: without a finalizer the function is not handed out.
            drop(unsafe { Box::from_raw(data) });
            return Err(Error::new(Status::GenericFailure, "the route function can't be made"));
        }
        // SAFETY: `env` and `value` are Node's.
        unsafe {
            let mut total = 0;
            let told = sys::napi_adjust_external_memory(env, bytes, &mut total);
            let mut id = ptr::null_mut();
            let made = sys::napi_create_uint32(env, table_id, &mut id);
            let set = sys::napi_set_named_property(env, value, c"tableId".as_ptr(), id);
            if [told, made, set].iter().any(|&status| status != sys::Status::napi_ok) {
                return Err(Error::new(Status::GenericFailure, "the route function can't be made"));
            }
        }
        Ok(value)
    }
}

unsafe extern "C" fn finalize(env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: `data` came from `Box::into_raw` in `to_napi_value`, and Node finalizes it once.
    let function = unsafe { Box::from_raw(data.cast::<RouteFunction>()) };
    let mut total = 0;
    // SAFETY: `env` is Node's. A failure only leaves the collector with an old figure.
    unsafe { sys::napi_adjust_external_memory(env, -function.bytes(), &mut total) };
}

/// The callback itself. Nothing unwinds out of it: a fault becomes a JavaScript error.
unsafe extern "C" fn call(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    // SAFETY: `env` and `info` are those of this call.
    match guard(|| unsafe { decide(env, info) }) {
        Ok(status) => {
            let mut value = ptr::null_mut();
            // SAFETY: as above. On failure `value` stays null, which is `undefined` to the caller.
            unsafe { sys::napi_create_uint32(env, status, &mut value) };
            value
        }
        Err(message) => {
            let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
            // SAFETY: as above; both texts end in a null byte.
            unsafe { sys::napi_throw_error(env, c"InvalidArg".as_ptr(), message.as_ptr()) };
            ptr::null_mut()
        }
    }
}

unsafe fn decide(env: sys::napi_env, info: sys::napi_callback_info) -> std::result::Result<u32, String> {
    const ARGUMENTS: usize = 4;
    let mut values = [ptr::null_mut(); ARGUMENTS];
    let mut count = ARGUMENTS;
    let mut data = ptr::null_mut();
    // SAFETY: `values` has room for `count`; missing arguments arrive as `undefined`.
    let status =
        unsafe { sys::napi_get_cb_info(env, info, &mut count, values.as_mut_ptr(), ptr::null_mut(), &mut data) };
    if status != sys::Status::napi_ok || data.is_null() {
        return Err("route was called outside its function".into());
    }
    // SAFETY: `data` is the box of this very function, which is being called and so not yet finalized. Only shared
    // references to it are ever made.
    let function = unsafe { &*data.cast::<RouteFunction>() };
    let [head_words, head_bytes, body, found] = values;

    // SAFETY: each value is an argument of this call. The words are copied and the bytes borrowed until `route` returns;
    // meanwhile no JavaScript runs. `found` is written when nothing is borrowed any more, so arrays that share memory do
    // no harm.
    unsafe {
        let head_words = TypedArray::of(env, head_words).and_then(|array| array.words::<{ head::WORDS }>());
        let head_words = head_words.ok_or("headWords must be a Uint32Array of HEAD_WORDS")?;
        let found = TypedArray::of(env, found).filter(|array| array.is_words(out::WORDS));
        let found = found.ok_or("out must be a Uint32Array of OUT_WORDS")?;
        let head_bytes = TypedArray::of(env, head_bytes).and_then(|array| array.bytes(env));
        let head_bytes = head_bytes.ok_or("headBytes must be a Uint8Array, not over shared memory")?;
        let body = TypedArray::of(env, body).and_then(|array| array.bytes(env));
        let body = body.ok_or("body must be a Uint8Array, not over shared memory")?;

        let mut scratch = function.scratch.try_borrow_mut().map_err(|_| "route was called from within itself")?;
        let mut words = [0; out::WORDS];
        let shared = function.shared.state().map_err(|bad| bad.reason.clone())?;
        let status = route(&function.held.table, shared, &mut scratch, &head_words, head_bytes, body, &mut words);
        ptr::copy_nonoverlapping(words.as_ptr(), found.data.cast::<u32>(), out::WORDS);
        Ok(status as u32)
    }
}

/// Where a JavaScript typed array lies.
struct TypedArray {
    kind: sys::napi_typedarray_type,
    data: *mut c_void,
    length: usize,
    buffer: sys::napi_value,
}

impl TypedArray {
    /// `None` for what is no typed array.
    ///
    /// # Safety
    /// `env` and `value` are those of the call in progress.
    unsafe fn of(env: sys::napi_env, value: sys::napi_value) -> Option<Self> {
        let mut array = Self { kind: 0, data: ptr::null_mut(), length: 0, buffer: ptr::null_mut() };
        let Self { kind, data, length, buffer } = &mut array;
        // SAFETY: by this function's contract; Node checks what the value is.
        let status = unsafe { sys::napi_get_typedarray_info(env, value, kind, length, data, buffer, ptr::null_mut()) };
        (status == sys::Status::napi_ok).then_some(array)
    }

    /// Whether the array is over a SharedArrayBuffer: that alone is a typed array's buffer and no ArrayBuffer.
    ///
    /// # Safety
    /// Within the call that the array was asked for in.
    unsafe fn is_shared(&self, env: sys::napi_env) -> bool {
        let mut is_plain = false;
        // SAFETY: by this function's contract. A failure leaves `false`, and what can't be asked is not trusted.
        unsafe { sys::napi_is_arraybuffer(env, self.buffer, &mut is_plain) };
        !is_plain
    }

    fn is_words(&self, length: usize) -> bool {
        self.kind == sys::TypedarrayType::uint32_array && self.length >= length && self.data.cast::<u32>().is_aligned()
    }

    /// The first words, copied.
    ///
    /// # Safety
    /// Within the call that the array was asked for in.
    unsafe fn words<const N: usize>(&self) -> Option<[u32; N]> {
        // SAFETY: the array has at least N aligned words, and no JavaScript runs that could take them away.
        self.is_words(N).then(|| unsafe { self.data.cast::<[u32; N]>().read() })
    }

    /// The bytes, borrowed. `None` also for shared memory, which another thread could write to meanwhile.
    ///
    /// # Safety
    /// The slice must not outlive the call that the array was asked for in.
    unsafe fn bytes<'a>(&self, env: sys::napi_env) -> Option<&'a [u8]> {
        // SAFETY: `env` and the array are those of the call in progress.
        if self.kind != sys::TypedarrayType::uint8_array || unsafe { self.is_shared(env) } {
            return None;
        }
        if self.length == 0 {
            return Some(&[]);
        }
        // SAFETY: by this function's contract; Node gives the length with the place.
        Some(unsafe { std::slice::from_raw_parts(self.data.cast(), self.length) })
    }
}
