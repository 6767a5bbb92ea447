/* Is torch.profiler at work? Its module keeps a flag, read from dictionaries alone: no Python code runs. */
#include "collector/collector.h"

#include "collector/libc.h"

bool torch_profiled(void)
{
	PyObject *(*modules)(void) = (PyObject * (*)(void)) dlsym(RTLD_DEFAULT, "PyImport_GetModuleDict");
	PyObject *(*module_dict)(PyObject *) = (PyObject * (*)(PyObject *)) dlsym(RTLD_DEFAULT, "PyModule_GetDict");
	PyObject *(*get)(PyObject *, const char *) = (PyObject * (*)(PyObject *, const char *)) dlsym(RTLD_DEFAULT, "PyDict_GetItemString");
	const void *yes = dlsym(RTLD_DEFAULT, "_Py_TrueStruct");
	PyObject *all, *profiler, *names;

	/* A module that a program put there need not be one: PyModule_GetDict() refuses what is none, with an error that we take back. */
	if (!modules || !module_dict || !get || !yes || !(all = modules()) || !(profiler = get(all, "torch.autograd.profiler")))
		return false;
	names = module_dict(profiler);
	if (!names)
		the.python.PyErr_Clear();
	return names && get(names, "_is_profiler_enabled") == yes;
}
