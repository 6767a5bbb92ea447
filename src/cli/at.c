#include "cli/at.h"

#include <time.h>

#include "base/clock.h"
#include "cli/failure.h"
#include "cli/value.h"

#define LATE_NS 1000000000ull /* who comes that much later does not begin together with others */

int at_read(const struct options *options, uint64_t *out_unix_ns, struct error *err)
{
	const char *text = options_text(options, OPT_AT);

	*out_unix_ns = 0;
	if (!*text || value_moment(text, clock_realtime_ns(), out_unix_ns))
		return 0;
	fail(err, ERR_OPTION_VALUE, "--at: \"%.60s\" is no moment", text);
	return fail_hint(err, "/10s is the next multiple of 10 s, +30s is in 30 s, @1767225600 is a second since 1970");
}

int at_wait(uint64_t unix_ns, struct measure *measure, const volatile int *stop, struct error *err)
{
	const struct timespec until = { (time_t)(unix_ns / 1000000000), (long)(unix_ns % 1000000000) };
	uint64_t now_ns = clock_realtime_ns();

	if (now_ns > unix_ns + LATE_NS)
		log_print(measure->level, LOG_WARN, "the moment of --at is %.0f s ago: measuring begins now, and not together with others", (double)(now_ns - unix_ns) / 1e9);
	status_phase(measure->status, "waiting to begin");
	while (!*stop && clock_realtime_ns() < unix_ns)
		clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL); /* a signal ends it early */
	status_phase(measure->status, NULL);
	return *stop ? fail(err, ERR_INTERRUPTED, "interrupted before measuring began") : 0;
}
