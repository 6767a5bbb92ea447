# Doubles of CUDA for machines without a GPU: tests/fakecuda/README.md. The last library built stands for all.
fakecuda = tests/fakecuda
fakecuda_sources = $(fakecuda)/activity.c $(fakecuda)/blocks.c $(fakecuda)/blocks.h $(fakecuda)/buffer.c $(fakecuda)/cbid.def $(fakecuda)/client.c $(fakecuda)/cuda.c $(fakecuda)/cudart.c $(fakecuda)/cupti.c $(fakecuda)/cupti_api.h \
	$(fakecuda)/cupti_v2.c $(fakecuda)/driver.h $(fakecuda)/engine.c $(fakecuda)/engine.h $(fakecuda)/exports.map $(fakecuda)/hooks.c $(fakecuda)/journal.c $(fakecuda)/layout.def \
	$(fakecuda)/names.c $(fakecuda)/play.c $(fakecuda)/profiler.h $(fakecuda)/record.c \
	$(fakecuda)/settings.c $(fakecuda)/settings.def $(fakecuda)/settings.h
$(fakecuda)/libfakeclient.so: $(fakecuda_sources) $(fakecuda)/build
	$(AM_V_GEN)CC="$(CC)" $(srcdir)/$(fakecuda)/build $(fakecuda)
noinst_DATA += $(fakecuda)/libfakeclient.so
CLEANFILES += $(fakecuda)/libcuda.so.1 $(fakecuda)/libcudart.so.11.0 $(fakecuda)/libcudart.so.12 $(fakecuda)/libcudart.so.13 \
	$(fakecuda)/libcupti.so.11.8 $(fakecuda)/libcupti.so.12 $(fakecuda)/libcupti.so.13 $(fakecuda)/libfakeclient.so
EXTRA_DIST += $(fakecuda_sources) $(fakecuda)/README.md $(fakecuda)/fakecuda.py $(fakecuda)/stress.c
dist_noinst_SCRIPTS += $(fakecuda)/build $(fakecuda)/wheels $(fakecuda)/proof.test tests/unit/cupti_layouts.test
TESTS += $(fakecuda)/proof.test tests/unit/cupti_layouts.test
