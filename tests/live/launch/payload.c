/* A library that is taken into a program at its gate: takes the GIL there and leaves sys.entered behind. */
#include <dlfcn.h>
#include <stddef.h>

__asm__(".symver dlsym,dlsym@GLIBC_2.2.5"); /* loads on older glibc, too */

void launch_payload_entry(void *argument);

void launch_payload_entry(void *argument)
{
	int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
	void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
	int (*run)(const char *, void *) = (int (*)(const char *, void *))dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
	int state;

	if (!ensure || !release || !run)
		return;
	state = ensure();
	run("import sys; sys.entered = 'at the gate'", NULL);
	release(state);
}
