/* signals.c - see signals.h. The flag has file scope, as what a handler reads or writes has to. */
#include "cli/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/err.h"

static atomic_int stop_asked; /* a signal may come to any thread of a server */

static void on_signal(int sig) {
  if (stop_asked) {
    signal(sig, SIG_DFL);
    raise(sig);
  }
  stop_asked = 1;
}

/* No SA_RESTART: a read that waits for input returns. NODEFER: the second one may end it. */
static void catch (int sig) {
  struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };
  sigemptyset(&sa.sa_mask);
  sigaction(sig, &sa, NULL);
}

void signals_catch(void) {
  catch (SIGINT);
  catch (SIGTERM);
}

void signals_catch_usr1(void) { catch (SIGUSR1); }

bool signals_stop(void) { return stop_asked != 0; }

void signals_forget(void) { stop_asked = 0; }

int signals_poll(void *ctx) {
  (void)ctx;
  return stop_asked ? FL_EINTR : FL_OK;
}
