dist_noinst_SCRIPTS += contrib/aarch64 contrib/autogen contrib/check contrib/packages contrib/quickstart contrib/roots contrib/demo/e2e
EXTRA_DIST += contrib/demo/requirements.txt contrib/demo/models.txt contrib/demo/loop.py
EXTRA_DIST += contrib/demo/embed_server.py contrib/demo/transformer.py contrib/demo/cnn.py contrib/demo/lstm.py

e2e-demo: all
	$(srcdir)/contrib/demo/e2e $(abs_top_builddir)/inferscope $(abs_top_builddir)/e2e-demo
.PHONY: e2e-demo
include contrib/python/local.mk
dist_noinst_SCRIPTS += contrib/slurm/profile contrib/ray/profile
EXTRA_DIST += contrib/debian/debian
dist_noinst_SCRIPTS += contrib/debian/build
EXTRA_DIST += contrib/k8s/daemonset.yaml contrib/k8s/ephemeral.yaml
