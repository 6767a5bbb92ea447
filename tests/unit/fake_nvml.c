/* Two devices, as NVML tells of them: index 0 is /dev/nvidia1 and 61 % busy, index 1 is /dev/nvidia0 and does not answer. */
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned int *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
int nvmlDeviceGetMinorNumber(void *device, unsigned int *minor);
int nvmlDeviceGetUtilizationRates(void *device, unsigned int *rates);

static int devices[2];

int nvmlInit_v2(void)
{
	return 0;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = 2;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
	*device = &devices[index];
	return 0;
}

int nvmlDeviceGetMinorNumber(void *device, unsigned int *minor)
{
	*minor = device == &devices[0] ? 1 : 0;
	return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, unsigned int *rates)
{
	rates[0] = 61;
	rates[1] = 5;
	return device == &devices[0] ? 0 : 999;
}
