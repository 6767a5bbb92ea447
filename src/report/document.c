#include "report/document.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "report/quantity.h"

enum { JSON_STRING_MAX = 65536 };

void put(struct json *json, cJSON *object, const char *key, cJSON *value)
{
	if (!object || !value || !cJSON_AddItemToObject(object, key, value)) {
		cJSON_Delete(value);
		json->failed = true;
	}
}

void append(struct json *json, cJSON *array, cJSON *value)
{
	if (!array || !value || !cJSON_AddItemToArray(array, value)) {
		cJSON_Delete(value);
		json->failed = true;
	}
}

cJSON *string_token(const char *string)
{
	struct text text;
	cJSON *token = NULL;
	size_t length = strnlen(string, JSON_STRING_MAX);

	/* Never half a character. */
	while (length == JSON_STRING_MAX && ((unsigned char)string[length] & 0xc0) == 0x80 && length > JSON_STRING_MAX - 4)
		length--;
	text_init(&text);
	text_add(&text, "\"", 1);
	text_add_json(&text, string, length);
	text_add(&text, "\"", 1);
	if (!text.failed)
		token = cJSON_CreateRaw(text.data);
	text_done(&text);
	return token;
}

void put_string(struct json *json, cJSON *object, const char *key, const char *string)
{
	put(json, object, key, string ? string_token(string) : cJSON_CreateNull());
}

void put_known(struct json *json, cJSON *object, const char *key, const char *string)
{
	put_string(json, object, key, string && *string ? string : NULL);
}

void put_u64(struct json *json, cJSON *object, const char *key, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
	put(json, object, key, cJSON_CreateRaw(digits));
}

void put_i64(struct json *json, cJSON *object, const char *key, int64_t value)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%lld", (long long)value);
	put(json, object, key, cJSON_CreateRaw(digits));
}

void put_number(struct json *json, cJSON *object, const char *key, double value, unsigned decimals)
{
	put(json, object, key, isfinite(value) ? cJSON_CreateRaw(quantity_plain(value, decimals).text) : cJSON_CreateNull());
}

void put_unix_ns(struct json *json, cJSON *object, const char *key, uint64_t value)
{
	char digits[24];

	snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
	put_string(json, object, key, value ? digits : NULL);
}

void put_bool(struct json *json, cJSON *object, const char *key, bool value)
{
	put(json, object, key, cJSON_CreateBool(value));
}

cJSON *put_object(struct json *json, cJSON *parent, const char *key)
{
	cJSON *object = cJSON_CreateObject();

	put(json, parent, key, object);
	return json->failed ? NULL : object;
}

cJSON *put_array(struct json *json, cJSON *parent, const char *key)
{
	cJSON *array = cJSON_CreateArray();

	put(json, parent, key, array);
	return json->failed ? NULL : array;
}

cJSON *append_object(struct json *json, cJSON *array)
{
	cJSON *object = cJSON_CreateObject();

	append(json, array, object);
	return json->failed ? NULL : object;
}

void put_us(struct json *json, cJSON *object, const char *key, uint64_t ns)
{
	put_number(json, object, key, (double)ns / 1e3, 3);
}

int document_write(struct json *json, cJSON *root, struct sink *sink, struct error *err)
{
	char *printed = json->failed ? NULL : cJSON_Print(root);

	cJSON_Delete(root);
	if (!printed)
		return fail(err, ERR_MEMORY, "writing the report as JSON");
	sink_puts(sink, printed);
	sink_puts(sink, "\n");
	cJSON_free(printed);
	return 0;
}

void put_line(struct json *json, cJSON *object, const char *file, uint32_t line)
{
	put_known(json, object, "file", file);
	if (line)
		put_u64(json, object, "line", line);
	else
		put(json, object, "line", cJSON_CreateNull());
}
