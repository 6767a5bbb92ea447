/* Memory in the JSON report: collections of garbage, and what was allocated where. */
#include "report/document.h"
#include "report/model.h"

void put_collections(struct json *json, cJSON *root, const struct report *report)
{
	cJSON *generations = put_array(json, put_object(json, root, "gc"), "generations");

	for (size_t i = 0; i < report->collection_count && !json->failed; i++) {
		const struct collection_row *row = &report->collections[i];
		cJSON *object = append_object(json, generations);

		put_string(json, object, "name", row->generation);
		put_u64(json, object, "count", row->count);
		put_u64(json, object, "time_ns", row->time_ns);
		put_u64(json, object, "longest_ns", row->longest_ns);
		put_number(json, object, "p50_ns", row->p50_ns, 0);
		put_number(json, object, "p99_ns", row->p99_ns, 0);
		put_u64(json, object, "freed_count", row->freed);
	}
}

static void put_site_numbers(struct json *json, cJSON *object, const struct memory_site *site)
{
	put_u64(json, object, "samples_count", site->samples);
	put_u64(json, object, "bytes", site->bytes);
	put_u64(json, object, "count", site->count);
	put_u64(json, object, "brief_bytes", site->brief_bytes);
	put_u64(json, object, "unreleased_bytes", site->live_bytes);
	put_u64(json, object, "unreleased_early_bytes", site->early_bytes);
}

void put_memory(struct json *json, cJSON *root, const struct report *report)
{
	const struct memory_facts *facts = report->memory;
	cJSON *memory = put_object(json, root, "memory"), *sites;

	put_site_numbers(json, memory, &facts->all);
	put_bool(json, memory, "ends_missing", facts->ends_missing);
	sites = put_array(json, memory, "sites");
	for (size_t i = 0; i < report->site_count && !json->failed; i++) {
		const struct memory_site *site = report->sites[i].site;
		cJSON *object = append_object(json, sites), *frames;

		put_site_numbers(json, object, site);
		put_bool(json, object, "native", site->native);
		put_number(json, object, "error_pct", report->sites[i].error_pct, 2);
		put_u64(json, object, "lifetime_p50_ns", site->lifetime_p50_ns);
		frames = put_array(json, object, "frames");
		for (uint32_t j = 0; j < site->frame_count; j++) {
			cJSON *frame = append_object(json, frames);

			put_string(json, frame, "name", site->frames[j].name);
			put_line(json, frame, site->frames[j].file, site->frames[j].line);
		}
	}
	put_u64(json, memory, "sites_omitted_count", facts->site_count - report->site_count);
}
