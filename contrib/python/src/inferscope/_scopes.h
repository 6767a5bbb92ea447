/* Scopes as objects of Python's, and what mark_event() shares with them. All under the GIL of the main interpreter. */
#ifndef INFERSCOPE_SCOPES_H
#define INFERSCOPE_SCOPES_H

#define Py_LIMITED_API 0x03080000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>

#include "abi/scope.h"

/* The convention is the same from CPython 3.7 on; headers name it for the stable ABI from 3.10 on. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif

#pragma GCC visibility push(hidden)

/* What the collector is told by. */
extern struct scope_table scopes_table;

/* Of Python: decorate(scope, function); encode(metadata) gives JSON in a str. */
void scopes_set_helpers(PyObject *decorate, PyObject *encode);
/* The type of scopes, a new reference; NULL with an exception. Once per process. */
PyObject *scopes_type_make(void);
/* scope(name, metadata=None), or scope(function). METH_FASTCALL | METH_KEYWORDS. */
PyObject *scopes_scope(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *keywords);
/* forked(): in a child that was forked, scopes of its parent's other threads are open no longer. */
PyObject *scopes_forked(PyObject *module, PyObject *none);

/* _enter.c: enter(library, page), descriptors: the collector is loaded, and called on a thread of ours, with what the page holds. OSError says why not. */
PyObject *enter(PyObject *module, PyObject *args);
/* leave(): what a program that was killed has left here is taken off. */
PyObject *leave(PyObject *module, PyObject *none);

/* (name, metadata=None) of a call of FUNCTION's, borrowed; OUT comes as NULLs. False with an exception. */
bool arguments_parse(const char *function, PyObject *const *args, Py_ssize_t count, PyObject *keywords, PyObject *out[2]);
/* _metadata.c: JSON of VALUE, a new str; NULL, without an exception, where that is json's to write. Nothing of the program's is run. */
PyObject *metadata_simple(PyObject *value);

/* A new reference to a str that is one by itself: what the collector reads is its layout. NULL without an exception for None and NULL. */
PyObject *text_of(PyObject *value);

#pragma GCC visibility pop

#endif
