/* NVML: where it is not there, and what is told of devices that a process has open. The library of the test stands in for the driver's. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "session/nvml.h"
#include "tests/unit/folder.h"

Test(nvml, says_why_there_is_none)
{
	char why[128] = "";

	cr_assert_null(nvml_open("/no/such/library.so", why, sizeof why));
	cr_assert_str_eq(why, "no NVIDIA driver library (libnvidia-ml.so.1) here");
	cr_assert_null(nvml_open("libc.so.6", why, sizeof why));
	cr_assert_str_eq(why, "libnvidia-ml.so.1 is too old");
}

static void device_link(const char *root, const char *descriptor, const char *device)
{
	char path[256];

	snprintf(path, sizeof path, "%s/42/fd/%s", root, descriptor);
	cr_assert_eq(symlink(device, path), 0);
}

Test(nvml, tells_of_devices_that_the_process_has_open)
{
	char root[FOLDER_BYTES], why[128] = "";
	struct procfs procfs = { root };
	struct nvml_use use[NVML_DEVICES_MAX];
	struct nvml *nvml = nvml_open(FAKE_NVML, why, sizeof why);

	cr_assert_not_null(nvml, "%s", why);
	folder_make(root);
	folder_way(root, "42/fd/");
	cr_assert_eq(nvml_read(nvml, &procfs, 42, use), 0, "it uses none");
	device_link(root, "3", "/dev/nvidia1");
	device_link(root, "4", "/dev/nvidiactl");
	device_link(root, "5", "/dev/nvidia70");
	cr_assert_eq(nvml_read(nvml, &procfs, 42, use), 1);
	cr_assert_eq(use[0].minor, 1);
	cr_assert_eq(use[0].busy_pct, 61);
	nvml_close(nvml);
	folder_remove(root);
}
