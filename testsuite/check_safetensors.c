#include "suite.h"
Suite *suite_safetensors(void) { return suite_create("safetensors"); }
