/* A program of another language with Python inside: runs the script it is given, on its own main thread. */
#include <Python.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	FILE *script = argc > 1 ? fopen(argv[1], "r") : NULL;
	int i, status;
	wchar_t **wide = calloc(argc, sizeof *wide);

	if (!script || !wide)
		return 2;
	Py_Initialize();
	for (i = 1; i < argc; i++)
		wide[i - 1] = Py_DecodeLocale(argv[i], NULL);
	PySys_SetArgvEx(argc - 1, wide, 0);
	status = PyRun_SimpleFile(script, argv[1]);
	fclose(script);
	return Py_FinalizeEx() < 0 || status;
}
