#!/bin/sh
# The load test of the server for ten minutes; testsuite/peers/stress.sh has what it does.
FLOTILLA_PEERS=1 FLOTILLA_STRESS=${FLOTILLA_STRESS:-600}
export FLOTILLA_PEERS FLOTILLA_STRESS
exec "$SRCDIR/testsuite/peers/stress.sh"
