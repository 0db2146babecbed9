/* mpi.c - see mpi.h.
 *
 * Collectives are begun and then looked after with naps in between: MPI's own waiting spins, which
 * takes a core away from the ranks that still compute where there are as many ranks as cores.
 */
#include "net/mpi.h"

#include <stdlib.h>

#ifndef HAVE_MPI

struct fl_mpi {
  int none;
};

int fl_mpi_start(fl_mpi **out, fl_err *err) {
  const char *size = getenv("OMPI_COMM_WORLD_SIZE");
  if (size != NULL && atoi(size) > 1)
    return fl_fail(err, FL_EUSAGE,
                   "this program was built without MPI; start it without mpirun, "
                   "or configure it with --with-mpi");
  *out = NULL;
  return FL_OK;
}

void fl_mpi_stop(fl_mpi *m) { (void)m; }

fl_dist *fl_mpi_dist(fl_mpi *m) {
  (void)m;
  return NULL;
}

size_t fl_mpi_threads(const fl_mpi *m) {
  (void)m;
  return 0;
}

#else

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"

enum { LOOKS = 200, NAP_MIN_NS = 20000, NAP_MAX_NS = 1000000 };

struct fl_mpi {
  MPI_Comm comm;
  fl_dist *dist; /* NULL: one rank */
  int count, rank;
  int *n, *at; /* [count] of the running call */
  size_t threads;
};

/* --- the transport ------------------------------------------------------------------------- */

static int wait_for(MPI_Request *request) {
  struct timespec nap = { .tv_nsec = NAP_MIN_NS };
  int done = 0;
  for (int i = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS; i++) {
    if (done) return FL_OK;
    if (i < LOOKS) {
      sched_yield();
    } else {
      nanosleep(&nap, NULL);
      if (nap.tv_nsec < NAP_MAX_NS) nap.tv_nsec += nap.tv_nsec / 4;
    }
  }
  return FL_EFAIL;
}

/* Lengths and places for MPI, which counts in int. */
static int place(fl_mpi *m, const size_t *n_bytes) {
  size_t at = 0;
  for (int r = 0; r < m->count; r++) {
    if (n_bytes[r] > INT_MAX || at > INT_MAX - n_bytes[r]) return FL_EFAIL;
    m->n[r] = (int)n_bytes[r];
    m->at[r] = (int)at;
    at += n_bytes[r];
  }
  return FL_OK;
}

static int gather_each(void *ctx, void *all, const void *mine, const size_t *n_bytes) {
  fl_mpi *m = ctx;
  MPI_Request request;
  if (place(m, n_bytes) != FL_OK || MPI_Iallgatherv(mine, m->n[m->rank], MPI_BYTE, all, m->n, m->at,
                                                    MPI_BYTE, m->comm, &request) != MPI_SUCCESS)
    return FL_EFAIL;
  return wait_for(&request);
}

static int gather(void *ctx, void *all, const void *mine, size_t n_bytes) {
  fl_mpi *m = ctx;
  MPI_Request request;
  if (n_bytes > INT_MAX || MPI_Iallgather(mine, (int)n_bytes, MPI_BYTE, all, (int)n_bytes, MPI_BYTE,
                                          m->comm, &request) != MPI_SUCCESS)
    return FL_EFAIL;
  return wait_for(&request);
}

static int scatter(void *ctx, void *mine, const void *block, const size_t *n_bytes, size_t root) {
  fl_mpi *m = ctx;
  MPI_Request request;
  if (place(m, n_bytes) != FL_OK ||
      MPI_Iscatterv(block, m->n, m->at, MPI_BYTE, mine, m->n[m->rank], MPI_BYTE, (int)root, m->comm,
                    &request) != MPI_SUCCESS)
    return FL_EFAIL;
  return wait_for(&request);
}

static const fl_dist_ops ops = { gather, gather_each, scatter };

/* --- threads ------------------------------------------------------------------------------- */

/* Cores are shared by the ranks of this machine that may run on them too: mpirun may have bound
 * each to its own, or none. */
static int share_cores(fl_mpi *m) {
  MPI_Comm near;
  cpu_set_t mine, *sets = NULL;
  int n_near = 0, sharing = 0;
  int rc = FL_EFAIL;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_SET(0, &mine);
  if (MPI_Comm_split_type(m->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near) != MPI_SUCCESS)
    return FL_EFAIL;
  if (MPI_Comm_size(near, &n_near) == MPI_SUCCESS && n_near > 0)
    sets = fl_calloc((size_t)n_near, sizeof *sets);
  if (sets != NULL && MPI_Allgather(&mine, sizeof mine, MPI_BYTE, sets, sizeof mine, MPI_BYTE,
                                    near) == MPI_SUCCESS) {
    for (int r = 0; r < n_near; r++) {
      cpu_set_t both;
      CPU_AND(&both, &mine, &sets[r]);
      sharing += CPU_COUNT(&both) > 0;
    }
    m->threads = (size_t)(CPU_COUNT(&mine) / (sharing > 0 ? sharing : 1));
    if (m->threads == 0) m->threads = 1;
    rc = FL_OK;
  }
  fl_free(sets);
  MPI_Comm_free(&near);
  return rc;
}

/* --- start and end ------------------------------------------------------------------------- */

/* What mpirun (of Open MPI), srun --mpi=pmix and others leave behind. */
static bool started_together(void) {
  static const char *const traces[] = { "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK" };
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
    if (getenv(traces[i]) != NULL) return true;
  return false;
}

static int set_up(fl_mpi *m, fl_err *err) {
  if (MPI_Comm_dup(MPI_COMM_WORLD, &m->comm) != MPI_SUCCESS ||
      MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
      MPI_Comm_size(m->comm, &m->count) != MPI_SUCCESS ||
      MPI_Comm_rank(m->comm, &m->rank) != MPI_SUCCESS || share_cores(m) != FL_OK)
    return fl_fail(err, FL_EFAIL, "MPI: the ranks cannot be brought together");
  m->n = fl_calloc((size_t)m->count, sizeof *m->n);
  m->at = fl_calloc((size_t)m->count, sizeof *m->at);
  if (m->n == NULL || m->at == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory");
  if (m->count == 1) return FL_OK;
  return fl_dist_new(&m->dist, (size_t)m->rank, (size_t)m->count, &ops, m, err);
}

static void give_up(fl_mpi *m) {
  fl_dist_free(m->dist);
  fl_free(m->n);
  fl_free(m->at);
  fl_free(m);
}

int fl_mpi_start(fl_mpi **out, fl_err *err) {
  int given = 0;
  *out = NULL;
  if (!started_together()) return FL_OK;
  fl_mpi *m = fl_calloc(1, sizeof *m);
  if (m == NULL) return fl_fail(err, FL_ENOMEM, "not enough memory");
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS ||
      given < MPI_THREAD_FUNNELED) {
    fl_free(m);
    return fl_fail(err, FL_EFAIL, "MPI: cannot be started beside threads");
  }
  const int rc = set_up(m, err);
  if (rc != FL_OK) {
    give_up(m);
    return rc;
  }
  *out = m;
  return FL_OK;
}

void fl_mpi_stop(fl_mpi *m) {
  if (m == NULL) return;
  MPI_Comm_free(&m->comm);
  MPI_Finalize();
  give_up(m);
}

fl_dist *fl_mpi_dist(fl_mpi *m) { return m != NULL ? m->dist : NULL; }
size_t fl_mpi_threads(const fl_mpi *m) { return m != NULL ? m->threads : 0; }

#endif
