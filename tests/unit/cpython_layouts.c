/*
 * Compiled against the headers of one CPython: compares what they say with its column of src/abi/cpython.def, prints every
 * difference, and ends with 1 if there was one. With an argument it prints the column itself, which is how a new one is made.
 */
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#endif
#include "internal/pycore_pystate.h"
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#include "internal/pycore_genobject.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_debug_offsets.h"
#include "internal/pycore_interpframe_structs.h"
#include "internal/pycore_interpframe.h"
#endif
#include "abi/cpython.h"

#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_dict.h"
#endif

#define MINOR PY_MINOR_VERSION
#define AT(type, member) ((long)offsetof(type, member))
#define NONE (-1L)
#define UNTOLD (-3L) /* no header says it */
#if MINOR >= 11
#define OLD(type, member) NONE
#define NEW(type, member) AT(type, member)
#define LOCALS_NAMES AT(PyCodeObject, co_localsplusnames)
#else
#define OLD(type, member) AT(type, member)
#define NEW(type, member) NONE
#define LOCALS_NAMES AT(PyCodeObject, co_varnames)
#endif

#if MINOR >= 11
typedef struct _PyInterpreterFrame Frame;
#else
typedef PyFrameObject Frame;
#endif
#if MINOR == 8
typedef struct _is Interp;
#else
typedef PyInterpreterState Interp;
#endif

#if MINOR >= 13
#define DEBUG(member) AT(_Py_DebugOffsets, member)
#else
#define DEBUG(member) NONE
#endif
#if MINOR >= 14
#define DEBUG14(member) AT(_Py_DebugOffsets, member)
#else
#define DEBUG14(member) NONE
#endif
#if MINOR >= 15
#define DEBUG15(member) AT(_Py_DebugOffsets, member)
#else
#define DEBUG15(member) NONE
#endif

/* Where the bits of a field begin in the 32-bit word that holds PyASCIIObject.state. */
static long bit_of(const PyASCIIObject *object)
{
	unsigned word;

	memcpy(&word, &object->state, sizeof word);
	return word ? __builtin_ctz(word) : NONE;
}

static long kind_bit(void)
{
	PyASCIIObject object = {.state = {.kind = 7}};
	return bit_of(&object);
}

static long compact_bit(void)
{
	PyASCIIObject object = {.state = {.compact = 1}};
	return bit_of(&object);
}

static long ascii_bit(void)
{
	PyASCIIObject object = {.state = {.ascii = 1}};
	return bit_of(&object);
}

static long code_qualname(void)
{
#if MINOR >= 11
	return AT(PyCodeObject, co_qualname);
#else
	return NONE;
#endif
}

static long frame_code(void)
{
#if MINOR >= 13
	return AT(Frame, f_executable);
#else
	return AT(Frame, f_code);
#endif
}

static long frame_previous(void)
{
#if MINOR >= 11
	return AT(Frame, previous);
#else
	return AT(Frame, f_back);
#endif
}

static long frame_instr(void)
{
#if MINOR >= 13
	return AT(Frame, instr_ptr);
#elif MINOR >= 11
	return AT(Frame, prev_instr);
#else
	return AT(Frame, f_lasti);
#endif
}

static long frame_owner(void)
{
#if MINOR >= 11
	return AT(Frame, owner);
#else
	return NONE;
#endif
}

static long frame_is_entry(void)
{
#if MINOR == 11
	return AT(Frame, is_entry);
#else
	return NONE;
#endif
}

static long frame_state(void)
{
#if MINOR == 10
	return AT(Frame, f_state);
#else
	return NONE;
#endif
}

static long frame_stacktop(void)
{
#if MINOR <= 9
	return AT(Frame, f_stacktop);
#else
	return NONE;
#endif
}

static long frame_valuestack(void)
{
#if MINOR <= 10
	return AT(Frame, f_valuestack);
#else
	return NONE;
#endif
}

static long frame_generator(void)
{
#if MINOR <= 10
	return AT(Frame, f_gen);
#else
	return NONE;
#endif
}

static long frameobject_frame(void)
{
#if MINOR >= 11
	return AT(struct _frame, f_frame);
#else
	return NONE;
#endif
}

static long generator_frame(void)
{
#if MINOR >= 11
	return AT(PyGenObject, gi_iframe);
#else
	return AT(PyGenObject, gi_frame);
#endif
}

static long generator_state(void)
{
#if MINOR >= 11
	return AT(PyGenObject, gi_frame_state);
#else
	return NONE;
#endif
}

static long tstate_frame(void)
{
#if MINOR >= 13
	return AT(PyThreadState, current_frame);
#elif MINOR >= 11
	return NONE;
#else
	return AT(PyThreadState, frame);
#endif
}

static long tstate_base_frame(void)
{
#if MINOR >= 15
	return AT(PyThreadState, base_frame);
#else
	return NONE;
#endif
}

static long tstate_cframe(void)
{
#if MINOR >= 10 && MINOR <= 12
	return AT(PyThreadState, cframe);
#else
	return NONE;
#endif
}

static long cframe_frame(void)
{
#if MINOR == 11 || MINOR == 12
	return AT(_PyCFrame, current_frame);
#else
	return NONE;
#endif
}

static long cframe_use_tracing(void)
{
#if MINOR == 10
	return AT(CFrame, use_tracing);
#elif MINOR == 11
	return AT(_PyCFrame, use_tracing);
#else
	return NONE;
#endif
}

static long tstate_use_tracing(void)
{
#if MINOR <= 9
	return AT(PyThreadState, use_tracing);
#else
	return NONE;
#endif
}

static long tstate_native_id(void)
{
#if MINOR >= 11
	return AT(PyThreadState, native_thread_id);
#else
	return NONE;
#endif
}

static long tstate_stack_chunk(void)
{
#if MINOR >= 11
	return AT(PyThreadState, datastack_chunk);
#else
	return NONE;
#endif
}

static long tstate_holds_gil(void)
{
#if MINOR >= 14
	return AT(PyThreadState, holds_gil);
#else
	return NONE;
#endif
}

static long interp_threads(void)
{
#if MINOR >= 11
	return AT(Interp, threads.head);
#else
	return AT(Interp, tstate_head);
#endif
}

static long interp_gil(void)
{
#if MINOR >= 12
	return AT(Interp, ceval.gil);
#else
	return NONE;
#endif
}

static long runtime_gil(void)
{
#if MINOR >= 12
	return NONE;
#else
	return AT(_PyRuntimeState, ceval.gil);
#endif
}

static long runtime_current(void)
{
#if MINOR >= 12
	return NONE;
#else
	return AT(_PyRuntimeState, gilstate.tstate_current);
#endif
}

static long runtime_audit(void)
{
#if MINOR >= 12
	return AT(_PyRuntimeState, audit_hooks.head);
#else
	return AT(_PyRuntimeState, audit_hook_head);
#endif
}

static long runtime_finalizing(void)
{
#if MINOR == 8
	return AT(_PyRuntimeState, finalizing);
#else
	return AT(_PyRuntimeState, _finalizing);
#endif
}

static long tstate_root_cframe(void)
{
#if MINOR >= 10 && MINOR <= 12
	return AT(PyThreadState, root_cframe);
#else
	return NONE;
#endif
}

static long cframe_previous(void)
{
#if MINOR == 10
	return AT(CFrame, previous);
#elif MINOR == 11 || MINOR == 12
	return AT(_PyCFrame, previous);
#else
	return NONE;
#endif
}

static long code_linetable(void)
{
#if MINOR >= 10
	return AT(PyCodeObject, co_linetable);
#else
	return AT(PyCodeObject, co_lnotab);
#endif
}

static long long_tag(void)
{
#if MINOR >= 12
	return AT(PyLongObject, long_value.lv_tag);
#else
	return NONE;
#endif
}

static long long_digits(void)
{
#if MINOR >= 12
	return AT(PyLongObject, long_value.ob_digit);
#else
	return AT(PyLongObject, ob_digit);
#endif
}

static long frame_locals(void)
{
#if MINOR >= 11
	return AT(Frame, localsplus);
#else
	return AT(Frame, f_localsplus);
#endif
}

static long keys_at(int old, long member)
{
	return MINOR <= 10 ? old : member;
}

#if MINOR <= 10
#define KEYS(old, member) keys_at(old, 0) /* struct _dictkeysobject is in no header */
#else
#define KEYS(old, member) keys_at(old, AT(struct _dictkeysobject, member))
#endif

static long values_first(void)
{
#if MINOR >= 11
	return AT(struct _dictvalues, values);
#else
	return 0;
#endif
}

static long frame_depth(void)
{
#if MINOR == 10
	return AT(Frame, f_stackdepth);
#elif MINOR >= 11 && MINOR <= 13
	return AT(Frame, stacktop);
#else
	return NONE;
#endif
}

#if MINOR == 8
#define GC_STATE(member) AT(_PyRuntimeState, gc.member)
#else
#define GC_STATE(member) AT(Interp, gc.member)
#endif

static long interp_modules(void)
{
#if MINOR >= 12
	return AT(Interp, imports.modules);
#else
	return AT(Interp, modules);
#endif
}

static long cfunction_def(void)
{
	return AT(PyCFunctionObject, m_ml);
}

static const struct probe {
	const char *name;
	long value;
} *probes(size_t *count)
{
	static struct probe table[192];
	size_t n = 0;

#define PROBE(field, expression) table[n++] = (struct probe){#field, (long)(expression)}
	PROBE(object_type, AT(PyObject, ob_type));
	PROBE(type_name, AT(PyTypeObject, tp_name));
	PROBE(type_flags, AT(PyTypeObject, tp_flags));
	PROBE(code_size, sizeof(PyCodeObject));
	PROBE(code_flags, AT(PyCodeObject, co_flags));
	PROBE(code_firstlineno, AT(PyCodeObject, co_firstlineno));
	PROBE(code_filename, AT(PyCodeObject, co_filename));
	PROBE(code_name, AT(PyCodeObject, co_name));
	PROBE(code_qualname, code_qualname());
	PROBE(code_linetable, code_linetable());
	PROBE(code_code, OLD(PyCodeObject, co_code));
	PROBE(code_bytes, NEW(PyCodeObject, co_code_adaptive));
	PROBE(code_localnames, LOCALS_NAMES);
	PROBE(code_cellvars, OLD(PyCodeObject, co_cellvars));
	PROBE(code_freevars, OLD(PyCodeObject, co_freevars));
	PROBE(object_size, AT(PyVarObject, ob_size));
	PROBE(tuple_items, AT(PyTupleObject, ob_item));
	PROBE(bytes_text, AT(PyBytesObject, ob_sval));
	PROBE(long_tag, long_tag());
	PROBE(long_digits, long_digits());
	PROBE(float_value, AT(PyFloatObject, ob_fval));
	PROBE(cell_value, AT(PyCellObject, ob_ref));
	PROBE(dict_used, AT(PyDictObject, ma_used));
	PROBE(set_used, AT(PySetObject, used));
	PROBE(set_mask, AT(PySetObject, mask));
	PROBE(set_table, AT(PySetObject, table));
	PROBE(dict_keys, AT(PyDictObject, ma_keys));
	PROBE(dict_values, AT(PyDictObject, ma_values));
	PROBE(keys_size, MINOR <= 10 ? UNTOLD : NONE);
	PROBE(keys_index_bits, KEYS(NONE, dk_log2_index_bytes));
	PROBE(keys_kind, KEYS(NONE, dk_kind));
	PROBE(keys_count, KEYS(UNTOLD, dk_nentries));
	PROBE(keys_indices, KEYS(UNTOLD, dk_indices));
	PROBE(values_first, values_first());
	PROBE(type_basicsize, AT(PyTypeObject, tp_basicsize));
	PROBE(type_dictoffset, AT(PyTypeObject, tp_dictoffset));
	PROBE(heaptype_keys, AT(PyHeapTypeObject, ht_cached_keys));
	PROBE(module_dict, UNTOLD);
	PROBE(weakref_object, AT(PyWeakReference, wr_object));
	PROBE(unicode_length, AT(PyASCIIObject, length));
	PROBE(unicode_state, AT(PyASCIIObject, state));
	PROBE(unicode_ascii_size, sizeof(PyASCIIObject));
	PROBE(unicode_compact_size, sizeof(PyCompactUnicodeObject));
	PROBE(unicode_kind_bit, kind_bit());
	PROBE(unicode_compact_bit, compact_bit());
	PROBE(unicode_ascii_bit, ascii_bit());
	PROBE(cfunction_def, cfunction_def());
	PROBE(cfunction_self, AT(PyCFunctionObject, m_self));
	PROBE(cfunction_module, AT(PyCFunctionObject, m_module));
	PROBE(cfunction_vectorcall, AT(PyCFunctionObject, vectorcall));
	PROBE(descriptor_type, AT(PyDescrObject, d_type));
	PROBE(descriptor_name, AT(PyDescrObject, d_name));
	PROBE(frame_code, frame_code());
	PROBE(frame_previous, frame_previous());
	PROBE(frame_locals, frame_locals());
	PROBE(frame_instr, frame_instr());
	PROBE(frame_owner, frame_owner());
	PROBE(frame_is_entry, frame_is_entry());
	PROBE(frame_state, frame_state());
	PROBE(frame_stacktop, frame_stacktop());
	PROBE(frame_valuestack, frame_valuestack());
	PROBE(frame_depth, frame_depth());
	PROBE(frame_stackpointer, MINOR >= 14 ? UNTOLD : NONE);
	PROBE(frame_generator, frame_generator());
	PROBE(frameobject_frame, frameobject_frame());
	PROBE(generator_frame, generator_frame());
	PROBE(generator_state, generator_state());
	PROBE(tstate_size, sizeof(PyThreadState));
	PROBE(tstate_next, AT(PyThreadState, next));
	PROBE(tstate_interp, AT(PyThreadState, interp));
	PROBE(tstate_frame, tstate_frame());
	PROBE(tstate_base_frame, tstate_base_frame());
	PROBE(tstate_cframe, tstate_cframe());
	PROBE(tstate_root_cframe, tstate_root_cframe());
	PROBE(cframe_frame, cframe_frame());
	PROBE(cframe_previous, cframe_previous());
	PROBE(cframe_use_tracing, cframe_use_tracing());
	PROBE(tstate_use_tracing, tstate_use_tracing());
	PROBE(tstate_tracing, AT(PyThreadState, tracing));
	PROBE(tstate_profilefunc, AT(PyThreadState, c_profilefunc));
	PROBE(tstate_tracefunc, AT(PyThreadState, c_tracefunc));
	PROBE(tstate_profileobj, AT(PyThreadState, c_profileobj));
	PROBE(tstate_traceobj, AT(PyThreadState, c_traceobj));
	PROBE(tstate_thread_id, AT(PyThreadState, thread_id));
	PROBE(tstate_native_id, tstate_native_id());
	PROBE(tstate_stack_chunk, tstate_stack_chunk());
	PROBE(tstate_holds_gil, tstate_holds_gil());
	PROBE(interp_next, AT(Interp, next));
	PROBE(interp_threads, interp_threads());
	PROBE(interp_eval_frame, AT(Interp, eval_frame));
	PROBE(interp_audit_hooks, AT(Interp, audit_hooks));
	PROBE(interp_modules, interp_modules());
	PROBE(interp_gil, interp_gil());
	PROBE(gc_callbacks, GC_STATE(callbacks));
	PROBE(gc_collecting, GC_STATE(collecting));
	PROBE(runtime_interp_head, AT(_PyRuntimeState, interpreters.head));
	PROBE(runtime_interp_main, AT(_PyRuntimeState, interpreters.main));
	PROBE(runtime_finalizing, runtime_finalizing());
	PROBE(runtime_audit_head, runtime_audit());
	PROBE(runtime_current, runtime_current());
	PROBE(runtime_gil, runtime_gil());
	PROBE(gil_holder, AT(struct _gil_runtime_state, last_holder));
	PROBE(gil_locked, AT(struct _gil_runtime_state, locked));
	PROBE(task_state, UNTOLD);
	PROBE(task_waiter, UNTOLD);
	PROBE(task_coro, UNTOLD);
	PROBE(task_name, UNTOLD);
	PROBE(task_node, MINOR >= 14 ? UNTOLD : NONE);
	PROBE(tstate_tasks, MINOR >= 14 ? UNTOLD : NONE);
	PROBE(tstate_task, MINOR >= 14 ? UNTOLD : NONE);
	PROBE(interp_tasks, MINOR >= 14 ? UNTOLD : NONE);
#if MINOR >= 13
	PROBE(debug_size, sizeof(_Py_DebugOffsets));
#else
	PROBE(debug_size, NONE);
#endif
	PROBE(debug_free_threaded, DEBUG(free_threaded));
	PROBE(debug_interp_head, DEBUG(runtime_state.interpreters_head));
	PROBE(debug_interp_next, DEBUG(interpreter_state.next));
	PROBE(debug_interp_threads, DEBUG(interpreter_state.threads_head));
	PROBE(debug_interp_modules, DEBUG(interpreter_state.imports_modules));
	PROBE(debug_interp_gil, DEBUG(interpreter_state.ceval_gil));
	PROBE(debug_tstate_size, DEBUG(thread_state.size));
	PROBE(debug_tstate_next, DEBUG(thread_state.next));
	PROBE(debug_tstate_frame, DEBUG(thread_state.current_frame));
	PROBE(debug_tstate_base_frame, DEBUG15(thread_state.base_frame));
	PROBE(debug_tstate_thread_id, DEBUG(thread_state.thread_id));
	PROBE(debug_tstate_native_id, DEBUG(thread_state.native_thread_id));
	PROBE(debug_frame_previous, DEBUG(interpreter_frame.previous));
	PROBE(debug_frame_code, DEBUG(interpreter_frame.executable));
	PROBE(debug_frame_owner, DEBUG(interpreter_frame.owner));
	PROBE(debug_code_name, DEBUG(code_object.name));
	PROBE(debug_code_qualname, DEBUG(code_object.qualname));
	PROBE(debug_code_filename, DEBUG(code_object.filename));
#undef PROBE
	*count = n;
	return table;
}

static const struct { const char *name; int value[CPYTHON_MINOR_MAX + 1]; } columns[] = {
#define FIELD(name, m8, m9, m10, m11, m12, m13, m14, m15, doc) {#name, {[8] = m8, [9] = m9, [10] = m10, [11] = m11, [12] = m12, [13] = m13, [14] = m14, [15] = m15}},
#include "abi/cpython.def"
#undef FIELD
};

int main(int argc, char **argv)
{
	size_t count, fields = sizeof columns / sizeof columns[0];
	const struct probe *probe = probes(&count);
	int wrong = 0;

	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		if (probe[i].value == UNTOLD)
			continue;
		if (argc > 1) {
			printf("%s %ld\n", probe[i].name, probe[i].value);
			continue;
		}
		while (k < fields && strcmp(columns[k].name, probe[i].name))
			k++;
		if (k == fields || columns[k].value[MINOR] != probe[i].value) {
			printf("%s: headers of " PY_VERSION " say %ld, cpython.def says %d\n", probe[i].name, probe[i].value,
			       k == fields ? -2 : columns[k].value[MINOR]);
			wrong = 1;
		}
	}
	if (argc == 1 && count != fields) {
		printf("cpython.def has %zu fields, %zu are compared\n", fields, count);
		wrong = 1;
	}
	return wrong;
}
