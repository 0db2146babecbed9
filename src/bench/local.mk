# bench: what the engine reaches on this machine.
noinst_LIBRARIES += src/libflbench.a
src_libflbench_a_SOURCES = \
	src/bench/bench.c src/bench/bench.h \
	src/bench/decode.c \
	src/bench/machine.c \
	src/bench/peer.c \
	src/bench/products.c \
	src/bench/train.c \
	src/bench/turns.c
BENCH_LIBS = src/libflbench.a $(CONVERT_LIBS)

# What bench --peer torch runs.
dist_pkgdata_DATA = testsuite/peers/torch_step.py
