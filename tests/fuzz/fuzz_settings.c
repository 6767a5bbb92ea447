/* Any text as .inferscope.yaml. */
#include <stdint.h>
#include <stddef.h>

#include "cli/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct options options;
	struct error err = { 0 };

	if (options_init(&options, &err) < 0)
		return 0;
	settings_text(&options, (const char *)data, size, "fuzz", &err);
	for (int i = 0; i < OPT_COUNT; i++) {
		options_flag(&options, (enum option_id)i);
		options_count(&options, (enum option_id)i);
		options_duration_ns(&options, (enum option_id)i);
	}
	options_done(&options);
	return 0;
}
