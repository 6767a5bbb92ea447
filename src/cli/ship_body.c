/*
 * Pyroscope's POST /ingest (grafana.com/docs/pyroscope, server API: format=pprof, the profile as the body), OTLP over HTTP (opentelemetry-proto, profiles v1development),
 * Parca's WriteRaw by its gateway from JSON (profilestore/v1alpha1; the profile in base64).
 */
#include "cli/ship_body.h"

#include <ctype.h>
#include <string.h>

/* Of a query: all but letters, digits and a few signs as %XX. */
static void add_escaped(struct text *out, const char *string)
{
	for (; *string; string++) {
		if (isalnum((unsigned char)*string) || strchr("._-~", *string))
			text_add(out, string, 1);
		else
			text_printf(out, "%%%02X", (unsigned char)*string);
	}
}

static void make_pyroscope(const char *base, const struct ship_profile *profile, const struct text *file, struct ship_request *out)
{
	struct text name;

	text_init(&name);
	text_printf(&name, "%s{host=%s,pid=%d}", profile->name, profile->host, profile->pid);
	text_printf(&out->url, "%s/ingest?name=", base);
	add_escaped(&out->url, text_string(&name));
	/* Seconds: the end is rounded up, so that no profile lasts for nothing. */
	text_printf(&out->url, "&from=%llu&until=%llu&format=pprof&spyName=inferscope", (unsigned long long)(profile->from_unix_ns / 1000000000), (unsigned long long)((profile->until_unix_ns + 999999999) / 1000000000));
	text_add(&out->body, file->data, file->length);
	out->url.failed |= name.failed;
	text_done(&name);
}

static void make_otlp(const char *base, const struct ship_profile *profile, const struct text *file, struct ship_request *out)
{
	text_printf(&out->url, "%s/v1development/profiles", base);
	text_add(&out->body, file->data, file->length);
}

static void add_base64(struct text *out, const unsigned char *bytes, size_t length)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t at = 0; at < length; at += 3) {
		uint32_t three = (uint32_t)bytes[at] << 16 | (at + 1 < length ? (uint32_t)bytes[at + 1] << 8 : 0) | (at + 2 < length ? bytes[at + 2] : 0);
		char four[4] = { digits[three >> 18], digits[three >> 12 & 63], at + 1 < length ? digits[three >> 6 & 63] : '=', at + 2 < length ? digits[three & 63] : '=' };

		text_add(out, four, sizeof four);
	}
}

static void make_parca(const char *base, const struct ship_profile *profile, const struct text *file, struct ship_request *out)
{
	const struct { const char *name, *value; } labels[] = { { "__name__", "inferscope" }, { "job", profile->name }, { "instance", profile->host } };

	text_printf(&out->url, "%s/profiles/writeraw", base);
	text_add_string(&out->body, "{\"normalized\":true,\"series\":[{\"labels\":{\"labels\":[");
	for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
		text_printf(&out->body, "{\"name\":\"%s\",\"value\":\"%s\"},", labels[i].name, labels[i].value); /* names hold nothing to escape */
	text_printf(&out->body, "{\"name\":\"pid\",\"value\":\"%d\"}]},\"samples\":[{\"rawProfile\":\"", profile->pid);
	add_base64(&out->body, (const unsigned char *)file->data, file->length);
	text_add_string(&out->body, "\"}]}]}");
}

static const struct ship_kind kinds[] = {
	{ "pyroscope", "pprof", "pb.gz", { "Content-Type: application/octet-stream", "Expect:" }, make_pyroscope },
	{ "otlp", "otlp", "otlp.pb.gz", { "Content-Type: application/x-protobuf", "Content-Encoding: gzip", "Expect:" }, make_otlp },
	{ "parca", "pprof", "pb.gz", { "Content-Type: application/json", "Expect:" }, make_parca },
};

const struct ship_kind *ship_kind_find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, name, length) == 0)
			return &kinds[i];
	return NULL;
}

bool ship_request_make(const struct ship_kind *kind, const char *base, const struct ship_profile *profile, const struct text *file, struct ship_request *out)
{
	memset(out, 0, sizeof *out);
	text_init(&out->url);
	text_init(&out->body);
	memcpy(out->headers, kind->headers, sizeof out->headers);
	kind->make(base, profile, file, out);
	return !out->url.failed && !out->body.failed && out->url.data;
}

void ship_request_done(struct ship_request *request)
{
	text_done(&request->url);
	text_done(&request->body);
}
