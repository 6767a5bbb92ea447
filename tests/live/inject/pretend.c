/* Preloaded into a plain C program, this makes the preflight take it for a Python: the way to enter checkers that must not be one. */
const char *Py_GetVersion(void);
int Py_IsInitialized(void);

static volatile int initialised = 1;

const char *Py_GetVersion(void)
{
	return "3.8.0";
}

int Py_IsInitialized(void)
{
	return initialised;
}
