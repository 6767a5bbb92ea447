/* Flight recorders of several processes: what happens in one of them is often seen in another, so that all write when one asks. */
#include <stdio.h>
#include <string.h>

#include "cli/fleet.h"
#include "cli/signals.h"

int watch_read(const struct options *options, const char *folder, struct session_options *session, struct watch *out, struct error *err)
{
	struct recorder_words words;
	int result;

	*out = (struct watch){ .wanted = recorder_wanted(options) };
	if (!out->wanted)
		return 0;
	if (!*folder)
		return fail(err, ERR_USAGE, "a flight recorder writes files: --trace FOLDER");
	result = recorder_words_read(options, &words, err);
	recorder_words_done(&words);
	out->keep_ns = words.keep_ns;
	out->calls_most = words.files_most;
	recorder_session(options, session);
	signals_catch_wanted();
	return result;
}

static void call(struct watch *watch, struct fleet_page *page, const struct measure *measure, const char *why, uint64_t now_ns)
{
	snprintf(page->call.why, sizeof page->call.why, "%s", why);
	__atomic_add_fetch(&page->call.count, 1, __ATOMIC_RELEASE);
	watch->quiet_until_ns = now_ns + watch->keep_ns;
	status_clear(measure->status);
	log_print(measure->level, LOG_INFO, "%s: all write", why);
}

/* True where one asks that was not heard before. */
static bool asks(struct member *member, char why[CALL_WHY])
{
	uint32_t count = __atomic_load_n(&member->page->told.asks, __ATOMIC_ACQUIRE);

	if (count == member->seen.asks)
		return false;
	member->seen.asks = count;
	snprintf(why, CALL_WHY, "%s: %.*s", member->name, RECORDER_WHY - 1, member->page->told.asked);
	return true;
}

static void files_tell(struct member *member, const struct measure *measure)
{
	const struct recorder_told *told = &member->page->told;
	uint32_t files = __atomic_load_n(&told->files, __ATOMIC_ACQUIRE), failures = __atomic_load_n(&told->failures, __ATOMIC_ACQUIRE);

	if (files != member->seen.files || failures != member->seen.failures)
		status_clear(measure->status);
	if (files != member->seen.files)
		log_print(measure->level, LOG_INFO, "%s: wrote the last %.0f s", member->name, told->seconds);
	if (failures != member->seen.failures)
		log_print(measure->level, LOG_WARN, "%s could not be written: %.*s", member->name, RECORDER_WHY - 1, told->failure);
	member->seen.files = files;
	member->seen.failures = failures;
}

void watch_step(struct watch *watch, struct members *members, struct fleet_page *page, const struct measure *measure, uint64_t now_ns)
{
	char why[CALL_WHY] = "";
	int signals = *signals_wanted();

	if (!watch->wanted)
		return;
	for (size_t i = 0; i < members->count; i++) {
		struct member *member = &members->items[i];

		if (!member->page)
			continue;
		files_tell(member, measure);
		if (asks(member, why) && now_ns < watch->quiet_until_ns)
			*why = '\0'; /* it asks for what is being written */
	}
	if (signals != watch->signals_seen)
		snprintf(why, sizeof why, "SIGUSR1 came");
	watch->signals_seen = signals;
	if (*why && !watch_full(watch, page))
		call(watch, page, measure, why, now_ns);
}

bool watch_full(const struct watch *watch, const struct fleet_page *page)
{
	return watch->wanted && page->call.count >= watch->calls_most;
}

int watch_report(const struct members *members, const struct measure *measure, struct error *err)
{
	const struct error *worst = fleet_worst(members);
	size_t watched = 0, absent = 0, files = 0;

	fleet_tell(members, measure->level);
	for (size_t i = 0; i < members->count; i++) {
		const struct member *member = &members->items[i];

		watched += member->page && member->page->watched;
		absent += member->page && !member->page->watched && !member->skipped;
		files += member->page ? member->page->told.files : 0;
	}
	if (!watched)
		return fleet_none(members, err);
	log_print(measure->level, LOG_INFO, "watched %zu process%s, wrote %zu file%s", watched, watched == 1 ? "" : "es", files, files == 1 ? "" : "s");
	if (worst)
		*err = *worst;
	else if (absent && options_flag(&measure->invocation->options, OPT_STRICT))
		return fail(err, ERR_PARTIAL, "partial data: %zu process%s not measured", absent, absent == 1 ? " was" : "es were");
	return worst ? -1 : 0;
}
