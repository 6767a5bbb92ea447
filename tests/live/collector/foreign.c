/* Somebody else's frame evaluator, for 3.9-3.11, put over whatever is there and calling it, as torch.compile's does; and a look at the C stack. */
#include <dlfcn.h>
#include <stddef.h>

#ifdef __x86_64__
__asm__(".symver dlsym,dlsym@GLIBC_2.2.5"); /* loads in the roots' older glibc too */
#endif

typedef void *(*evaluator)(void *tstate, void *frame, int throws);

static evaluator before;
unsigned long foreign_calls;

static void *evaluate(void *tstate, void *frame, int throws)
{
	foreign_calls++;
	return before(tstate, frame, throws);
}

static void set(evaluator function)
{
	void *(*main_interpreter)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
	void (*set_function)(void *, evaluator) = (void (*)(void *, evaluator))dlsym(RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc");

	set_function(main_interpreter(), function);
}

/* Both with the GIL: ctypes.PyDLL. */
void foreign_on(void)
{
	void *(*main_interpreter)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
	evaluator (*get_function)(void *) = (evaluator (*)(void *))dlsym(RTLD_DEFAULT, "_PyInterpreterState_GetEvalFrameFunc");

	before = get_function(main_interpreter());
	set(evaluate);
}

void foreign_off(void)
{
	set(before);
}

/* Where its caller's thread stands on its C stack. */
unsigned long foreign_stack(void)
{
	return (unsigned long)__builtin_frame_address(0);
}
