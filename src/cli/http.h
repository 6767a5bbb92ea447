/* One POST over HTTP, by libcurl, which is loaded when somebody wants to ship something: whoever does not need not have it. */
#ifndef INFERSCOPE_CLI_HTTP_H
#define INFERSCOPE_CLI_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct http;

/* ERR_OUTPUT where there is no libcurl. */
int http_open(struct http **out, struct error *err);
void http_close(struct http *http); /* accepts NULL */

struct http_request {
	const char *url;
	const char *const *headers; /* "Name: value"; NULL at the end */
	const void *body;
	size_t size;
	uint64_t patience_ns;       /* for all of it */
	const volatile int *stop;   /* given up once it is not 0; or NULL */
};

struct http_answer {
	long status;            /* 0: there was no answer, and why says why */
	uint64_t retry_after_s; /* as the server asks; 0 = it does not */
	char why[256];
};

/* Redirections are not followed, and what the answer holds is thrown away. */
void http_post(struct http *http, const struct http_request *request, struct http_answer *out);

#endif
