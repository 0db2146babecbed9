/* kernels.c - which instruction-set levels the machine has, and the table of each.
 *
 * The tables of functions are const; what BLIS says and what the probe finds is the same for every
 * caller of the process, so it is asked once and kept beside them (the only data here that is not
 * const, written once under pthread_once).
 */
#include "kernels/kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined __x86_64__
#include <cpuid.h>
#endif

#include "kernels/table.h"

#define LEVEL(level)                                                                               \
  {                                                                                                \
    .isa = #level, .gemm_small = &fl_gemm_small_ops_##level,                                       \
    .pointwise = &fl_pointwise_ops_##level, .mapped = &fl_mapped_ops_##level,                      \
    .dequant = &fl_dequant_ops_##level, .transpose = &fl_transpose_ops_##level,                    \
    .attention = &fl_attention_ops_##level, .attention_bwd = &fl_attention_bwd_ops_##level,        \
    .loss = &fl_loss_ops_##level, .cholesky = &fl_cholesky_ops_##level                             \
  }

/* Ascending. */
static struct fl_kernels levels[] = {
  LEVEL(ref),
#if defined __x86_64__
  LEVEL(v2),
  LEVEL(v3),
  LEVEL(v4),
#elif defined __aarch64__
  LEVEL(neon),
#endif
};
static size_t n_levels; /* of those, how many the machine has */
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined __x86_64__
static size_t levels_of_machine(void) {
  unsigned a, b, c = 0, d, ext_c = 0;
  __builtin_cpu_init();
  if (!__get_cpuid(1, &a, &b, &c, &d)) c = 0;
  bool f16c = c & bit_F16C, movbe = c & bit_MOVBE;
  if (!__get_cpuid(0x80000001u, &a, &b, &ext_c, &d)) ext_c = 0;
  bool lzcnt = ext_c & bit_LZCNT;
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("ssse3") ||
      !__builtin_cpu_supports("popcnt"))
    return 1;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") || !f16c || !movbe ||
      !lzcnt)
    return 2;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512cd"))
    return 3;
  return 4;
}
#elif defined __aarch64__
static size_t levels_of_machine(void) { return 2; }
#else
static size_t levels_of_machine(void) { return 1; }
#endif

static void ask_machine(void) {
  n_levels = levels_of_machine();
  for (size_t i = 0; i < n_levels; i++) {
    struct fl_kernels *k = &levels[i];
    fl_ukr_query(&k->ukr);
    fl_matmul_choose(k);
    snprintf(k->name, sizeof k->name, "%s+blis:%s %zux%zu", k->isa, k->ukr.arch, k->ukr.mr,
             k->ukr.nr);
  }
}

const fl_kernels *fl_kernels_select(void) {
  pthread_once(&once, ask_machine);
  const char *want = getenv("FLOTILLA_ISA");
  for (size_t i = 0; want && i < n_levels; i++)
    if (strcmp(levels[i].isa, want) == 0) return &levels[i];
  return &levels[n_levels - 1];
}

const char *fl_kernels_name(const fl_kernels *k) { return k->name; }
const char *fl_kernels_isa(const fl_kernels *k) { return k->isa; }
