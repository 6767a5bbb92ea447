#include "cli/http.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* curl/curl.h of curl 7.66 and later: numbers that its ABI promises to keep. */
enum curl_option {
	OPTION_TIMEOUT_MS = 155, OPTION_CONNECT_TIMEOUT_MS = 156, OPTION_NO_PROGRESS = 43, OPTION_NO_SIGNAL = 99, OPTION_POST = 47, OPTION_PROTOCOLS = 181,
	OPTION_URL = 10002, OPTION_ERROR_BUFFER = 10010, OPTION_POST_FIELDS = 10015, OPTION_HEADERS = 10023, OPTION_PROGRESS_DATA = 10057,
	OPTION_WRITE_FUNCTION = 20011, OPTION_PROGRESS_FUNCTION = 20219, OPTION_POST_SIZE = 30120,
};
enum curl_info { INFO_STATUS = 0x200002, INFO_RETRY_AFTER = 0x600039 };
enum { PROTOCOL_HTTP = 1, PROTOCOL_HTTPS = 2, ERROR_BYTES = 256, CONNECT_MOST_MS = 5000 };

struct http {
	void *library;
	void *(*easy_init)(void);
	void (*easy_cleanup)(void *easy);
	void (*easy_reset)(void *easy);
	int (*easy_setopt)(void *easy, int option, ...);
	int (*easy_getinfo)(void *easy, int info, ...);
	int (*easy_perform)(void *easy);
	const char *(*easy_strerror)(int code);
	void *(*slist_append)(void *list, const char *string);
	void (*slist_free)(void *list);
	void *easy;
};

static bool functions_find(struct http *http)
{
	const struct { const char *name; void *where; } rows[] = {
		{ "curl_easy_init", &http->easy_init }, { "curl_easy_cleanup", &http->easy_cleanup }, { "curl_easy_reset", &http->easy_reset }, { "curl_easy_setopt", &http->easy_setopt },
		{ "curl_easy_getinfo", &http->easy_getinfo }, { "curl_easy_perform", &http->easy_perform }, { "curl_easy_strerror", &http->easy_strerror },
		{ "curl_slist_append", &http->slist_append }, { "curl_slist_free_all", &http->slist_free },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		void *function = dlsym(http->library, rows[i].name);

		if (!function)
			return false;
		memcpy(rows[i].where, &function, sizeof function);
	}
	return true;
}

int http_open(struct http **out, struct error *err)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4" };
	struct http *http = calloc(1, sizeof *http);

	if (!http)
		return fail(err, ERR_MEMORY, "shipping profiles");
	for (size_t i = 0; i < sizeof names / sizeof *names && !http->library; i++)
		http->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!http->library || !functions_find(http) || !(http->easy = http->easy_init())) {
		http_close(http);
		fail(err, ERR_OUTPUT, "profiles cannot be shipped: libcurl.so.4 is not there");
		return fail_hint(err, "apt-get install libcurl4");
	}
	*out = http;
	return 0;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	if (http->easy)
		http->easy_cleanup(http->easy);
	free(http); /* the library stays: what it brought along may not bear to be unloaded */
}

static size_t answer_drop(const char *bytes, size_t size, size_t count, void *context)
{
	(void)bytes;
	(void)context;
	return size * count;
}

/* Not 0 ends the transfer. */
static int progress_look(void *context, int64_t down_total, int64_t down, int64_t up_total, int64_t up)
{
	const volatile int *const *stop = context;

	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	return *stop && **stop;
}

static void request_set(struct http *http, const struct http_request *request, void *headers, char *error, const volatile int *const *stop)
{
	void *easy = http->easy;
	long patience_ms = (long)(request->patience_ns / 1000000);

	http->easy_reset(easy);
	http->easy_setopt(easy, OPTION_URL, request->url);
	http->easy_setopt(easy, OPTION_PROTOCOLS, (long)(PROTOCOL_HTTP | PROTOCOL_HTTPS));
	http->easy_setopt(easy, OPTION_HEADERS, headers);
	http->easy_setopt(easy, OPTION_POST, 1l);
	http->easy_setopt(easy, OPTION_POST_SIZE, (int64_t)request->size);
	http->easy_setopt(easy, OPTION_POST_FIELDS, request->body);
	http->easy_setopt(easy, OPTION_NO_SIGNAL, 1l);
	http->easy_setopt(easy, OPTION_TIMEOUT_MS, patience_ms);
	http->easy_setopt(easy, OPTION_CONNECT_TIMEOUT_MS, patience_ms < CONNECT_MOST_MS ? patience_ms : (long)CONNECT_MOST_MS);
	http->easy_setopt(easy, OPTION_ERROR_BUFFER, error);
	http->easy_setopt(easy, OPTION_WRITE_FUNCTION, answer_drop);
	http->easy_setopt(easy, OPTION_NO_PROGRESS, 0l);
	http->easy_setopt(easy, OPTION_PROGRESS_FUNCTION, progress_look);
	http->easy_setopt(easy, OPTION_PROGRESS_DATA, stop);
}

void http_post(struct http *http, const struct http_request *request, struct http_answer *out)
{
	char error[ERROR_BYTES] = "";
	void *headers = NULL;
	int64_t retry_s = 0;
	int code;

	memset(out, 0, sizeof *out);
	for (size_t i = 0; request->headers[i]; i++) {
		void *longer = http->slist_append(headers, request->headers[i]);

		headers = longer ? longer : headers;
	}
	request_set(http, request, headers, error, &request->stop);
	code = http->easy_perform(http->easy);
	if (code == 0) {
		http->easy_getinfo(http->easy, INFO_STATUS, &out->status);
		http->easy_getinfo(http->easy, INFO_RETRY_AFTER, &retry_s);
		out->retry_after_s = retry_s > 0 ? (uint64_t)retry_s : 0;
		snprintf(out->why, sizeof out->why, "it answered %ld", out->status);
	} else
		snprintf(out->why, sizeof out->why, "%.255s", *error ? error : http->easy_strerror(code));
	http->slist_free(headers);
}
