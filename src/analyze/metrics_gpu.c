/* Published numbers about devices and scopes. */
#include "analyze/private.h"

static const char NO_GPU[] = "no GPU data", NO_CALLS[] = "no calls of the GPU's runtime are in the trace";
static const char NO_SCOPES[] = "no scopes: the program names none, and --scope makes none", NO_WHOLE_SCOPES[] = "no scope was seen from beginning to end";

static double idle_us(const struct analysis_private *p, enum gpu_idle cause, const char **why)
{
	return p->device ? (double)p->device->idle_ns[cause] / 1e3 : metric_unknown(why, NO_GPU);
}

static double idle_pct(const struct analysis_private *p, enum gpu_idle cause, const char **why)
{
	return p->device ? metric_pct((double)p->device->idle_ns[cause], gpu_demand(p), why) : metric_unknown(why, NO_GPU);
}

double metric_gpu_idle_no_demand(const struct analysis_private *p, const char **why)
{
	return idle_us(p, GPU_NO_DEMAND, why);
}

double metric_gpu_idle_late(const struct analysis_private *p, const char **why)
{
	return idle_us(p, GPU_HOST_LATE, why);
}

double metric_gpu_idle_sync(const struct analysis_private *p, const char **why)
{
	return idle_us(p, GPU_SYNC_CAUSED, why);
}

double metric_gpu_idle_dependency(const struct analysis_private *p, const char **why)
{
	return idle_us(p, GPU_DEVICE_DEPENDENCY, why);
}

double metric_gpu_idle_unknown(const struct analysis_private *p, const char **why)
{
	return idle_us(p, GPU_IDLE_UNKNOWN, why);
}

double metric_gpu_idle_no_demand_pct(const struct analysis_private *p, const char **why)
{
	return p->device ? metric_pct((double)p->device->idle_ns[GPU_NO_DEMAND], (double)p->timeline->duration_ns, why) : metric_unknown(why, NO_GPU);
}

double metric_gpu_idle_late_pct(const struct analysis_private *p, const char **why)
{
	return idle_pct(p, GPU_HOST_LATE, why);
}

double metric_gpu_idle_sync_pct(const struct analysis_private *p, const char **why)
{
	return idle_pct(p, GPU_SYNC_CAUSED, why);
}

double metric_gpu_idle_dependency_pct(const struct analysis_private *p, const char **why)
{
	return idle_pct(p, GPU_DEVICE_DEPENDENCY, why);
}

double metric_gpu_comm(const struct analysis_private *p, const char **why)
{
	return p->device ? metric_pct((double)p->timeline->gpu.busy_ns[GPU_COMMUNICATION], (double)p->timeline->gpu.any_ns, why) : metric_unknown(why, NO_GPU);
}

/* overlap_ns[c] is that of the two other classes. */
double metric_gpu_comm_overlap(const struct analysis_private *p, const char **why)
{
	const struct gpu_facts *gpu = &p->timeline->gpu;

	return gpu->busy_ns[GPU_COMMUNICATION] ? metric_pct((double)gpu->overlap_ns[GPU_MEMORY], (double)gpu->busy_ns[GPU_COMMUNICATION], why) : metric_unknown(why, "no kernels of collective communication ran");
}

double metric_gpu_copy_overlap(const struct analysis_private *p, const char **why)
{
	const struct gpu_facts *gpu = &p->timeline->gpu;

	return gpu->busy_ns[GPU_MEMORY] ? metric_pct((double)gpu->overlap_ns[GPU_COMMUNICATION], (double)gpu->busy_ns[GPU_MEMORY], why) : metric_unknown(why, "no copies were made");
}

enum { MEMORY_PAGEABLE = 1 }; /* abi/memory.def */

double metric_gpu_copy_pageable(const struct analysis_private *p, const char **why)
{
	double pageable = 0, all = 0;

	for (size_t i = 0; i < p->timeline->gpu.copies_count; i++) {
		const struct gpu_copies *copies = &p->timeline->gpu.copies[i];
		unsigned host = copies->kind == EVENT_H2D_COPY ? copies->memory_kinds & 255 : copies->memory_kinds >> 8 & 255;

		if (copies->kind != EVENT_H2D_COPY && copies->kind != EVENT_D2H_COPY)
			continue;
		all += (double)copies->bytes;
		pageable += host == MEMORY_PAGEABLE ? (double)copies->bytes : 0;
	}
	return all > 0 ? 100 * pageable / all : metric_unknown(why, "nothing was copied between the host and devices");
}

static double copy_rate(const struct analysis_private *p, enum event_kind kind, const char **why)
{
	double bytes = 0, time = 0;

	for (size_t i = 0; i < p->timeline->gpu.copies_count; i++) {
		bytes += p->timeline->gpu.copies[i].kind == kind ? (double)p->timeline->gpu.copies[i].bytes : 0;
		time += p->timeline->gpu.copies[i].kind == kind ? (double)p->timeline->gpu.copies[i].time_ns : 0;
	}
	return time > 0 ? bytes / time : metric_unknown(why, "there were no such copies");
}

double metric_gpu_h2d_rate(const struct analysis_private *p, const char **why)
{
	return copy_rate(p, EVENT_H2D_COPY, why);
}

double metric_gpu_d2h_rate(const struct analysis_private *p, const char **why)
{
	return copy_rate(p, EVENT_D2H_COPY, why);
}

double metric_gpu_kernel_p50(const struct analysis_private *p, const char **why)
{
	return p->timeline->gpu.kernel_p50_ns ? (double)p->timeline->gpu.kernel_p50_ns / 1e3 : metric_unknown(why, p->device ? "no kernels ran" : NO_GPU);
}

double metric_gpu_launch_delay(const struct analysis_private *p, const char **why)
{
	return p->timeline->gpu.launches ? (double)p->timeline->gpu.launch_delay_median_ns / 1e3 : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

double metric_gpu_short_kernels(const struct analysis_private *p, const char **why)
{
	const struct gpu_facts *gpu = &p->timeline->gpu;

	return gpu->launched_kernels ? metric_pct((double)gpu->short_kernels, (double)gpu->launched_kernels, why) : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

double metric_gpu_slow_launches(const struct analysis_private *p, const char **why)
{
	const struct gpu_facts *gpu = &p->timeline->gpu;

	return gpu->launch_calls ? metric_pct((double)gpu->slow_launch_calls, (double)gpu->launch_calls, why) : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

double metric_gpu_slow_launches_time(const struct analysis_private *p, const char **why)
{
	return p->timeline->gpu.launch_calls ? (double)p->timeline->gpu.slow_launch_ns / 1e3 : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

static const struct gpu_stream *busiest_stream(const struct analysis_private *p)
{
	const struct gpu_stream *busiest = NULL;

	for (size_t i = 0; i < p->timeline->gpu.stream_count; i++) {
		const struct gpu_stream *stream = &p->timeline->gpu.streams[i];

		if (stream->queue.readings && (!busiest || stream->busy_ns > busiest->busy_ns))
			busiest = stream;
	}
	return busiest;
}

double metric_gpu_queue_p50(const struct analysis_private *p, const char **why)
{
	return busiest_stream(p) ? busiest_stream(p)->queue.p50 : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

double metric_gpu_queue_full(const struct analysis_private *p, const char **why)
{
	return busiest_stream(p) ? metric_pct((double)busiest_stream(p)->queue.full_ns, (double)p->timeline->duration_ns, why) : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

double metric_gpu_queue_max(const struct analysis_private *p, const char **why)
{
	uint32_t most = 0;

	for (size_t i = 0; i < p->timeline->gpu.stream_count; i++)
		most = p->timeline->gpu.streams[i].queue.max > most ? p->timeline->gpu.streams[i].queue.max : most;
	return busiest_stream(p) ? most : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

double metric_gpu_sync(const struct analysis_private *p, const char **why)
{
	return p->timeline->gpu.site_count ? metric_pct((double)p->timeline->gpu.blocked_most_ns, (double)p->timeline->duration_ns, why) : metric_unknown(why, p->device ? NO_CALLS : NO_GPU);
}

static const char *no_scopes(const struct analysis_private *p)
{
	return p->timeline->scope_parts.any ? NO_WHOLE_SCOPES : NO_SCOPES;
}

static double scope_number(const struct analysis_private *p, uint64_t value, const char **why)
{
	return p->timeline->scope_count ? (double)value : metric_unknown(why, no_scopes(p));
}

double metric_scope_count(const struct analysis_private *p, const char **why)
{
	return scope_number(p, p->timeline->scope_count ? p->timeline->scopes->all_count : 0, why);
}

double metric_scope_p50(const struct analysis_private *p, const char **why)
{
	return scope_number(p, p->timeline->scope_count ? p->timeline->scopes->p50_ns : 0, why);
}

double metric_scope_p95(const struct analysis_private *p, const char **why)
{
	return scope_number(p, p->timeline->scope_count ? p->timeline->scopes->p95_ns : 0, why);
}

double metric_scope_p99(const struct analysis_private *p, const char **why)
{
	return scope_number(p, p->timeline->scope_count ? p->timeline->scopes->p99_ns : 0, why);
}

double metric_scope_max(const struct analysis_private *p, const char **why)
{
	return scope_number(p, p->timeline->scope_count ? p->timeline->scopes->max_ns : 0, why);
}

double metric_scope_open(const struct analysis_private *p, const char **why)
{
	return p->timeline->scope_count || p->timeline->scopes_open_ns ? metric_pct((double)p->timeline->scopes_open_ns, (double)p->timeline->duration_ns, why) : metric_unknown(why, no_scopes(p));
}
