/* conns.h - the open connections and the deadlines of their phases.
 *
 * A phase that lasts too long is ended from outside, by shutting the socket down: the thread of the
 * connection, wherever it waits, then finds its client gone. The descriptor belongs to whoever
 * accepted it and stays open until fl_conns_remove.
 */
#ifndef FL_HTTP_CONNS_H
#define FL_HTTP_CONNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef struct fl_conns fl_conns;
typedef struct fl_conn fl_conn;

int fl_conns_start(fl_conns **out, fl_err *err);
void fl_conns_stop(fl_conns *c); /* all connections are removed by then */
/* The connection has seconds_s for what it does now. surplus: it is one more than there may be, to
 * be told so. NULL on lack of memory. */
fl_conn *fl_conns_add(fl_conns *c, int fd, bool surplus, double seconds_s);
void fl_conns_remove(fl_conns *c, fl_conn *conn);
/* A new phase; 0: it may last as long as it likes. */
void fl_conns_phase(fl_conns *c, fl_conn *conn, double seconds_s);
void fl_conns_shut_all(fl_conns *c);
int fl_conn_fd(const fl_conn *conn);
size_t fl_conn_count(fl_conn *conn);       /* one more reply on it; how many by now. Its thread */
bool fl_conn_surplus(const fl_conn *conn); /* true for NULL */

#endif
