#include "session/environment.h"

#include <stdlib.h>
#include <string.h>

#define RANK_MOST 99999999
enum { BYTES_MAX = 1 << 20 };

/*
 * Who sets what: torchrun RANK, LOCAL_RANK, WORLD_SIZE; Open MPI OMPI_COMM_WORLD_*; MPICH and Intel MPI PMI_*; srun SLURM_PROCID, SLURM_LOCALID,
 * SLURM_NTASKS. torchrun below srun sets its own: the earlier row counts.
 */
static const struct { const char *name; size_t field; } rows[] = {
	{ "RANK", offsetof(struct place, rank) }, { "OMPI_COMM_WORLD_RANK", offsetof(struct place, rank) }, { "PMI_RANK", offsetof(struct place, rank) }, { "SLURM_PROCID", offsetof(struct place, rank) },
	{ "LOCAL_RANK", offsetof(struct place, local_rank) }, { "OMPI_COMM_WORLD_LOCAL_RANK", offsetof(struct place, local_rank) }, { "MPI_LOCALRANKID", offsetof(struct place, local_rank) },
	{ "SLURM_LOCALID", offsetof(struct place, local_rank) },
	{ "WORLD_SIZE", offsetof(struct place, world) }, { "OMPI_COMM_WORLD_SIZE", offsetof(struct place, world) }, { "PMI_SIZE", offsetof(struct place, world) }, { "SLURM_NTASKS", offsetof(struct place, world) },
};

void environment_read(const struct procfs *procfs, pid_t pid, struct environment *out)
{
	ssize_t length;

	*out = (struct environment){ .bytes = malloc(BYTES_MAX) };
	length = out->bytes ? procfs_read(procfs, pid, "environ", out->bytes, BYTES_MAX) : -1;
	out->size = length > 0 ? (size_t)length : 0;
}

void environment_done(struct environment *environment)
{
	free(environment->bytes);
	*environment = (struct environment){ 0 };
}

/* The value of NAME, of *LENGTH bytes; NULL when it is not there. */
static const char *value_of(const char *environment, size_t size, const char *name, size_t *length)
{
	size_t name_length = strlen(name);

	for (size_t at = 0; at < size;) {
		size_t entry = strnlen(environment + at, size - at);

		if (entry > name_length && environment[at + name_length] == '=' && memcmp(environment + at, name, name_length) == 0) {
			*length = entry - name_length - 1;
			return environment + at + name_length + 1;
		}
		at += entry + 1;
	}
	return NULL;
}

static long number_of(const char *value, size_t length)
{
	long number = 0;

	for (size_t i = 0; i < length; i++) {
		if (value[i] < '0' || value[i] > '9' || number > RANK_MOST / 10)
			return -1;
		number = number * 10 + (value[i] - '0');
	}
	return length ? number : -1;
}

/* RFC 1123, as Kubernetes has it for names of pods. */
static void pod_take(const char *value, size_t length, struct place *out)
{
	if (!value || length >= sizeof out->pod)
		return;
	for (size_t i = 0; i < length; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-", value[i]) || !value[i])
			return;
	memcpy(out->pod, value, length);
	out->pod[length] = '\0';
}

void environment_place(const char *environment, size_t size, struct place *out)
{
	size_t length = 0;
	const char *value;

	*out = (struct place){ .rank = -1, .local_rank = -1, .world = -1 };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		long *field = (long *)(void *)((char *)out + rows[i].field);

		value = value_of(environment, size, rows[i].name, &length);
		if (value && *field < 0)
			*field = number_of(value, length);
	}
	value = value_of(environment, size, "POD_NAME", &length);
	/* In a pod the host's name is the pod's, unless its host's network is used. */
	if (!value && value_of(environment, size, "KUBERNETES_SERVICE_HOST", &length))
		value = value_of(environment, size, "HOSTNAME", &length);
	pod_take(value, length, out);
}

long environment_number(const char *environment, size_t size, const char *name)
{
	size_t length = 0, digits = 0;
	const char *value = value_of(environment, size, name, &length);

	while (value && digits < length && value[digits] >= '0' && value[digits] <= '9')
		digits++;
	return value ? number_of(value, digits) : -1;
}
