#include "suite.h"
Suite *suite_gguf(void) { return suite_create("gguf"); }
