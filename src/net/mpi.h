/* mpi.h - the processes that mpirun or srun started together, as ranks of fl_dist; over MPI, which
 * mpi.c alone includes. A build without it refuses to run as one of several.
 */
#ifndef FL_NET_MPI_H
#define FL_NET_MPI_H

#include "train/dist.h"

typedef struct fl_mpi fl_mpi;

/* *out = NULL in a process that was started alone: nothing of MPI is touched then. Once a process,
 * by the thread that makes all calls of fl_dist. */
int fl_mpi_start(fl_mpi **out, fl_err *err);
/* Waits for the other ranks to come here too; frees. NULL is fine. */
void fl_mpi_stop(fl_mpi *m);
/* NULL for NULL, and for the only rank of one. */
fl_dist *fl_mpi_dist(fl_mpi *m);
/* This rank's share of the processor's cores that it may run on, at least 1; 0 for NULL. */
size_t fl_mpi_threads(const fl_mpi *m);

#endif
