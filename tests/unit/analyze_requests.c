/* What in a scope's metadata names a request. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "analyze/request_path.h"

struct row { char metadata[160], id[64]; };

ParameterizedTestParameters(requests, are_named_by_their_metadata)
{
	static struct row rows[] = {
		{ "{\"request_id\":\"r-1\"}", "r-1" }, { "{\"model\":\"m\",\"request_id\": \"a b\"}", "a b" }, { "{\"id\":17,\"trace_id\":\"t\"}", "t" }, { "{\"id\":17}", "17" }, { "{ \"id\" : 5 }", "5" },
		{ "{\"request_id\":\"\"}", "" }, { "{\"request_id\":null}", "" }, { "{\"request_id\":\"cut", "" }, { "{\"request_id\":\"a\\\"b\"}", "" }, { "{\"request_id\"", "" }, { "{\"request_idx\":1}", "" }, { "", "" }, { "request_id", "" },
		{ "{\"a\":\"request_id\",\"id\":1}", "1" }, { "{\"id\":\"1234567890123456789012345678901234567890123456789012345678901234\"}", "" }, { "{\"id\":\"123456789012345678901234567890123456789012345678901234567890123\"}", "123456789012345678901234567890123456789012345678901234567890123" },
	};

	return cr_make_param_array(struct row, rows, sizeof rows / sizeof *rows);
}

ParameterizedTest(struct row *row, requests, are_named_by_their_metadata)
{
	char id[REQUEST_ID_BYTES] = "";

	cr_assert_eq(span_id(row->metadata, id, sizeof id), *row->id != '\0', "%s", row->metadata);
	cr_assert_str_eq(id, row->id);
}

Test(requests, without_metadata_have_no_name)
{
	char id[REQUEST_ID_BYTES];

	cr_assert_not(span_id(NULL, id, sizeof id));
}
