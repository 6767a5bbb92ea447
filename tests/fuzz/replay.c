/* Runs a fuzz target over the files named on its command line: the corpus is part of `make check`. Where libFuzzer is, it has a main of its own. */
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	int result = -1;
	long size;

	if (file && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && (data = malloc(size ? (size_t)size : 1))) {
		rewind(file);
		if (fread(data, 1, (size_t)size, file) == (size_t)size)
			result = 0;
	}
	if (file)
		fclose(file);
	if (result < 0)
		fprintf(stderr, "replay: cannot read %s\n", path);
	else
		LLVMFuzzerTestOneInput(data, (size_t)size);
	free(data);
	return result;
}

int main(int count, char **paths)
{
	int i;

	if (count < 2) {
		fprintf(stderr, "replay: no files\n");
		return 1;
	}
	for (i = 1; i < count; i++)
		if (replay(paths[i]) < 0)
			return 1;
	printf("%d files\n", count - 1);
	return 0;
}
#endif
