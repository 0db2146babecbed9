# kernels. *_isa.c files are compiled once per instruction-set level into libraries of their own;
# kernels.c picks a level at run time. Products and sums are fused only where the source says so.
kernels_isa_sources = \
	src/kernels/simd.h src/kernels/simd_math.h src/kernels/simd_narrow.h src/kernels/table.h src/kernels/vmath.h \
	src/kernels/attention_isa.c src/kernels/attention_isa.h src/kernels/attention_tile.h \
	src/kernels/attention_bwd_isa.c src/kernels/attention_bwd_isa.h \
	src/kernels/cholesky_isa.c src/kernels/cholesky_isa.h \
	src/kernels/dequant_isa.c src/kernels/dequant_isa.h \
	src/kernels/mapped_isa.c src/kernels/mapped_isa.h \
	src/kernels/gemm_small_isa.c src/kernels/gemm_small_isa.h \
	src/kernels/loss_isa.c src/kernels/loss_isa.h \
	src/kernels/pointwise_isa.c src/kernels/pointwise_isa.h \
	src/kernels/transpose_isa.c src/kernels/transpose_isa.h
kernels_cflags = $(AM_CFLAGS) -ffp-contract=off
kernels_isa_cflags = $(kernels_cflags) $(FL_SAN_ISA)

noinst_LIBRARIES += src/libflkernels.a
src_libflkernels_a_CFLAGS = $(kernels_cflags) $(BLIS_CFLAGS)
src_libflkernels_a_SOURCES = \
	src/kernels/attention.c src/kernels/attention.h src/kernels/attention_ref.c \
	src/kernels/blis.c src/kernels/blis.h \
	src/kernels/cholesky.c src/kernels/cholesky.h \
	src/kernels/mapped.c \
	src/kernels/kernels.c src/kernels/kernels.h src/kernels/table.h \
	src/kernels/loss.c src/kernels/loss.h \
	src/kernels/matmul.c src/kernels/matmul.h \
	src/kernels/matmul_dx.c src/kernels/matmul_ref.c \
	src/kernels/gemm_macro.c src/kernels/gemm_macro.h \
	src/kernels/peak.c src/kernels/peak.h \
	src/kernels/panel.c src/kernels/panel.h src/kernels/dequant_read.h src/kernels/panel_quant.c \
	src/kernels/pointwise.c src/kernels/pointwise.h \
	src/kernels/team.c src/kernels/team.h

noinst_LIBRARIES += src/libflkernels_ref.a
src_libflkernels_ref_a_CFLAGS = $(kernels_isa_cflags) -DFL_ISA=ref -DFL_SIMD_PLAIN
src_libflkernels_ref_a_SOURCES = $(kernels_isa_sources)
kernels_isa_libs = src/libflkernels_ref.a
if X86_64
noinst_LIBRARIES += src/libflkernels_v2.a src/libflkernels_v3.a src/libflkernels_v4.a
src_libflkernels_v2_a_CFLAGS = $(kernels_isa_cflags) -DFL_ISA=v2 -march=x86-64-v2
src_libflkernels_v2_a_SOURCES = $(kernels_isa_sources)
src_libflkernels_v3_a_CFLAGS = $(kernels_isa_cflags) -DFL_ISA=v3 -march=x86-64-v3
src_libflkernels_v3_a_SOURCES = $(kernels_isa_sources)
src_libflkernels_v4_a_CFLAGS = $(kernels_isa_cflags) -DFL_ISA=v4 -march=x86-64-v4
src_libflkernels_v4_a_SOURCES = $(kernels_isa_sources)
kernels_isa_libs += src/libflkernels_v2.a src/libflkernels_v3.a src/libflkernels_v4.a
endif
if AARCH64
noinst_LIBRARIES += src/libflkernels_neon.a
src_libflkernels_neon_a_CFLAGS = $(kernels_isa_cflags) -DFL_ISA=neon
src_libflkernels_neon_a_SOURCES = $(kernels_isa_sources)
kernels_isa_libs += src/libflkernels_neon.a
endif

KERNELS_LIBS = src/libflkernels.a $(kernels_isa_libs) $(BLIS_LIBS) $(FORMATS_LIBS) $(TEXT_LIBS)

noinst_PROGRAMS += bench/bench_matmul
bench_bench_matmul_SOURCES = bench/bench_matmul.c
bench_bench_matmul_LDADD = $(KERNELS_LIBS) $(BASE_LIBS)
EXTRA_DIST += bench/README \
	bench/results/epyc-zen3-1-thread-f16.json \
	bench/results/epyc-zen3-1-thread-q8_0.json \
	bench/results/epyc-zen3-1-thread.json \
	bench/results/epyc-zen3-2-threads-f16.json \
	bench/results/epyc-zen3-2-threads-products.json \
	bench/results/epyc-zen3-2-threads-q8_0.json \
	bench/results/epyc-zen3-2-threads.json \
	bench/results/epyc-zen4-2-threads-f16.json \
	bench/results/epyc-zen4-2-threads-products.json \
	bench/results/epyc-zen4-2-threads-q8_0.json \
	bench/results/epyc-zen4-2-threads-training.json
