/*
 * Which process asked for a device's work, where the file does not say so outright: the work is kept until all has been read. Told by the first of these that tells:
 *
 *   1. there is one process that makes calls of a device's runtime
 *   2. the work stands at the pid of one that does
 *   3. an arrow ends at it, as long as no two processes number an arrow alike
 *   4. the file holds one process after the other, each with its work
 *   5. one process alone has a call of its correlation id
 *
 * Work that any of several may have asked for belongs to none, and loses its correlation id.
 */
#include "import/gather_private.h"

enum { KEPT_MAX = 1 << 23, FLOWS_MAX = 1 << 23 };

/* A process that makes calls, and the rows of the file that are its own. */
struct host { uint32_t process, first, last; bool works; };
struct hosts { LIST(struct host) list; bool apart; /* one after the other */ };

/* ---- while the file is read ---- */

void owners_call(struct gather *gather, uint32_t process, uint32_t correlation)
{
	struct map *calls = &gather->owners.calls_by_correlation;
	uint32_t before = map_get(calls, correlation);

	gather->processes.items[process].calls = true;
	if (correlation && before != process && before != OF_SEVERAL)
		gather->failed |= !map_put(calls, correlation, before == MAP_ABSENT ? process : OF_SEVERAL);
}

static uint32_t flow_of(struct gather *gather, uint64_t id)
{
	struct owners *owners = &gather->owners;
	uint32_t number = map_get(&owners->flows_by_id, id), *flow;

	if (number != MAP_ABSENT)
		return number;
	flow = list_add_or_fail(&owners->flows, FLOWS_MAX, &gather->failed);
	if (!flow) {
		gather->totals.left_out++;
		return MAP_ABSENT;
	}
	*flow = OF_NONE;
	number = (uint32_t)owners->flows.count - 1;
	gather->failed |= !map_put(&owners->flows_by_id, id, number);
	return number;
}

void gather_flow_begin(struct gather *gather, uint64_t id, int64_t pid)
{
	uint32_t number = flow_of(gather, id), process = gather_process(gather, pid), *flow;

	if (number == MAP_ABSENT || process == UINT32_MAX)
		return;
	flow = &gather->owners.flows.items[number];
	if (*flow == OF_NONE)
		*flow = process;
	else if (*flow != process)
		gather->owners.flows_shared = true;
}

/* Mostly an arrow's end follows its work. */
void gather_flow_end(struct gather *gather, uint64_t id, uint64_t place)
{
	struct owners *owners = &gather->owners;
	struct kept *newest = owners->works.count ? &owners->works.items[owners->works.count - 1] : NULL;
	uint32_t number = place ? flow_of(gather, id) : MAP_ABSENT, before;

	if (number == MAP_ABSENT)
		return;
	if (newest && newest->place == place && newest->flow == MAP_ABSENT) {
		newest->flow = number;
		return;
	}
	before = map_get(&owners->flows_by_place, place);
	if (before == MAP_ABSENT && owners->flows_by_place.count >= FLOWS_MAX)
		gather->totals.left_out++;
	else if (before != number)
		gather->failed |= !map_put(&owners->flows_by_place, place, before == MAP_ABSENT ? number : OF_SEVERAL);
}

void owners_keep(struct gather *gather, const struct device_work *work)
{
	struct kept *kept = list_add_or_fail(&gather->owners.works, KEPT_MAX, &gather->failed);

	if (!kept) {
		gather->totals.left_out++;
		return;
	}
	*kept = (struct kept){ .start_ns = work->start_ns, .end_ns = work->end_ns, .pid = work->pid.value, .has_pid = work->pid.known, .place = work->place, .device = work->device, .stream = work->stream,
		.correlation = work->correlation, .flow = MAP_ABSENT, .before = (uint32_t)gather->row_count, .kind = (uint8_t)work->kind };
	if (work->kind == EVENT_GPU_KERNEL) {
		kept->name = string_id(gather, work->name);
		memcpy(kept->of_kernel.grid, work->grid, sizeof work->grid);
		memcpy(kept->of_kernel.block, work->block, sizeof work->block);
	} else {
		kept->of_other.bytes = work->bytes;
		kept->of_other.detail = work->detail;
	}
}

/* ---- when all has been read ---- */

static int compare_hosts(const void *left, const void *right)
{
	const struct host *a = left, *b = right;

	return a->first < b->first ? -1 : a->first > b->first;
}

/* The host whose part of the file WORK stands in; *AT: that of the work before it. NULL before the first. */
static struct host *part_of(struct hosts *hosts, const struct kept *work, size_t *at)
{
	while (*at < hosts->list.count && hosts->list.items[*at].first <= work->before)
		++*at;
	return *at ? &hosts->list.items[*at - 1] : NULL;
}

static void find_hosts(struct gather *gather, struct hosts *hosts)
{
	size_t at = 0;

	for (uint32_t i = 0; i < gather->processes.count; i++) {
		const struct process *process = &gather->processes.items[i];
		struct host *host = process->calls ? list_add_or_fail(&hosts->list, gather->processes.count, &gather->failed) : NULL;

		if (host)
			*host = (struct host){ i, process->first, process->last, false };
	}
	if (hosts->list.count < 2)
		return;
	qsort(hosts->list.items, hosts->list.count, sizeof *hosts->list.items, compare_hosts);
	for (size_t i = 0; i < gather->owners.works.count; i++) {
		struct host *host = part_of(hosts, &gather->owners.works.items[i], &at);

		if (host)
			host->works = true;
	}
	hosts->apart = true;
	for (size_t i = 0; i < hosts->list.count; i++)
		hosts->apart &= hosts->list.items[i].works && (i == 0 || hosts->list.items[i - 1].last < hosts->list.items[i].first);
}

/* A device's number is a pid, too, in traces that nobody has merged. */
static bool stands_at_caller(const struct gather *gather, const struct kept *work, uint32_t *process)
{
	*process = work->has_pid && work->pid != work->device ? map_get(&gather->processes_by_pid, (uint64_t)work->pid) : MAP_ABSENT;
	return *process != MAP_ABSENT && gather->processes.items[*process].calls;
}

static uint32_t begin_of_flow(const struct gather *gather, const struct kept *work)
{
	const struct owners *owners = &gather->owners;
	uint32_t flow = work->flow != MAP_ABSENT ? work->flow : work->place ? map_get(&owners->flows_by_place, work->place) : MAP_ABSENT;

	return flow < owners->flows.count && !owners->flows_shared ? owners->flows.items[flow] : OF_NONE;
}

/* A process, or one of the two words for none. */
static uint32_t owner_of(const struct gather *gather, const struct hosts *hosts, const struct host *part, const struct kept *work)
{
	uint32_t process;

	if (hosts->list.count < 2)
		return hosts->list.count ? hosts->list.items[0].process : OF_NONE;
	if (stands_at_caller(gather, work, &process))
		return process;
	process = begin_of_flow(gather, work);
	if (process != OF_NONE)
		return process;
	if (hosts->apart && part)
		return part->process;
	process = work->correlation ? map_get(&gather->owners.calls_by_correlation, work->correlation) : MAP_ABSENT;
	return process == MAP_ABSENT ? OF_NONE : process;
}

/* What no merging tool gave a pid of its own, and several processes use, may be several devices. */
static void note_user(struct gather *gather, const struct kept *kept, uint32_t owner)
{
	struct map *users = &gather->owners.users_by_device;
	uint32_t before = map_get(users, kept->device);

	if (!kept->has_pid || kept->pid != kept->device || before == owner || before == OF_SEVERAL)
		return;
	gather->failed |= !map_put(users, kept->device, before == MAP_ABSENT ? owner : OF_SEVERAL);
	gather->totals.shared_devices += before != MAP_ABSENT;
}

static void put_kept(struct gather *gather, const struct kept *kept, uint32_t owner)
{
	struct device_work work = { .kind = (enum event_kind)kept->kind, .name = string_of(gather, kept->name), .start_ns = kept->start_ns, .end_ns = kept->end_ns, .device = kept->device, .stream = kept->stream,
		.correlation = owner == OF_SEVERAL ? 0 : kept->correlation, .owner = owner < gather->processes.count ? owner + 1 : 0 };

	gather->totals.unowned += owner == OF_SEVERAL;
	if (work.owner)
		note_user(gather, kept, owner);
	if (work.kind == EVENT_GPU_KERNEL) {
		memcpy(work.grid, kept->of_kernel.grid, sizeof work.grid);
		memcpy(work.block, kept->of_kernel.block, sizeof work.block);
	} else {
		work.bytes = kept->of_other.bytes;
		work.detail = kept->of_other.detail;
	}
	put_device(gather, &work);
}

void owners_settle(struct gather *gather)
{
	struct hosts hosts = { 0 };
	size_t at = 0;

	find_hosts(gather, &hosts);
	for (size_t i = 0; i < gather->owners.works.count && !gather->failed; i++) {
		const struct kept *kept = &gather->owners.works.items[i];
		const struct host *part = part_of(&hosts, kept, &at);

		put_kept(gather, kept, owner_of(gather, &hosts, part, kept));
	}
	list_done(&hosts.list);
	owners_done(&gather->owners);
}

void owners_done(struct owners *owners)
{
	list_done(&owners->works);
	list_done(&owners->flows);
	map_done(&owners->flows_by_id);
	map_done(&owners->flows_by_place);
	map_done(&owners->calls_by_correlation);
	map_done(&owners->users_by_device);
}
