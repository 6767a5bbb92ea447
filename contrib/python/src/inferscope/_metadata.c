/*
 * JSON of what metadata mostly is, {"batch": 8, "model": "small"}: as json.dumps() writes it, without a call of Python's, as scopes are made in hot loops where nobody measures.
 * Objects of the program's own classes, texts that need escapes and what is long are left to json.
 */
#include "_scopes.h"

enum { TEXT_MAX = 1000, DEPTH_MAX = 8, DIGITS_MAX = 20 };

struct text {
	char bytes[TEXT_MAX];
	Py_ssize_t length;
};

static bool put_value(struct text *text, PyObject *value, int depth);

static bool put(struct text *text, char byte)
{
	if (text->length == TEXT_MAX)
		return false;
	text->bytes[text->length++] = byte;
	return true;
}

static bool put_word(struct text *text, const char *word)
{
	while (*word)
		if (!put(text, *word++))
			return false;
	return true;
}

/* Printable ASCII of a str, without an escape. */
static bool put_characters(struct text *text, PyObject *str)
{
	Py_ssize_t length = PyUnicode_GetLength(str);

	if (length < 0 || length > TEXT_MAX - text->length)
		return false;
	for (Py_ssize_t i = 0; i < length; i++) {
		Py_UCS4 character = PyUnicode_ReadChar(str, i);

		if (character < ' ' || character > '~' || character == '"' || character == '\\')
			return false;
		text->bytes[text->length++] = (char)character;
	}
	return true;
}

static bool put_string(struct text *text, PyObject *str)
{
	return PyUnicode_CheckExact(str) && put(text, '"') && put_characters(text, str) && put(text, '"');
}

static bool put_integer(struct text *text, PyObject *value)
{
	int overflow, at = DIGITS_MAX;
	long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
	unsigned long long rest = number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;
	char digits[DIGITS_MAX + 1];

	if (overflow)
		return false;
	digits[at] = '\0';
	do
		digits[--at] = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	return (number >= 0 || put(text, '-')) && put_word(text, digits + at);
}

static bool put_float(struct text *text, PyObject *value)
{
	double number = PyFloat_AsDouble(value);
	PyObject *repr = number - number == 0 ? PyObject_Repr(value) : NULL; /* else no number, or without an end: JSON has words of its own */
	bool done = repr && put_characters(text, repr);

	Py_XDECREF(repr);
	return done;
}

static bool put_items(struct text *text, PyObject *list, Py_ssize_t count, PyObject *(*item)(PyObject *, Py_ssize_t), int depth)
{
	bool done = put(text, '[');

	for (Py_ssize_t i = 0; done && i < count; i++)
		done = (i == 0 || put(text, ',')) && put_value(text, item(list, i), depth);
	return done && put(text, ']');
}

static bool put_pairs(struct text *text, PyObject *dict, int depth)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	bool done = put(text, '{'), first = true;

	for (; done && PyDict_Next(dict, &at, &key, &value); first = false)
		done = (first || put(text, ',')) && put_string(text, key) && put(text, ':') && put_value(text, value, depth);
	return done && put(text, '}');
}

static bool put_value(struct text *text, PyObject *value, int depth)
{
	PyTypeObject *type = Py_TYPE(value);

	if (type == &PyUnicode_Type)
		return put_string(text, value);
	if (type == &PyLong_Type)
		return put_integer(text, value);
	if (type == &PyBool_Type)
		return put_word(text, value == Py_True ? "true" : "false");
	if (value == Py_None)
		return put_word(text, "null");
	if (type == &PyFloat_Type)
		return put_float(text, value);
	if (depth == DEPTH_MAX)
		return false;
	if (type == &PyDict_Type)
		return put_pairs(text, value, depth + 1);
	if (type == &PyList_Type)
		return put_items(text, value, PyList_Size(value), PyList_GetItem, depth + 1);
	if (type == &PyTuple_Type)
		return put_items(text, value, PyTuple_Size(value), PyTuple_GetItem, depth + 1);
	return false;
}

PyObject *metadata_simple(PyObject *value)
{
	struct text text;
	PyObject *result;

	text.length = 0;
	result = put_value(&text, value, 0) ? PyUnicode_FromStringAndSize(text.bytes, text.length) : NULL;
	if (!result)
		PyErr_Clear();
	return result;
}
