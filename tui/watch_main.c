/* watch_main.c - the dashboard as a program of its own, for its tests. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/tui.h"

static fl_tui_color color_of(const char *s) {
  static const char *const names[] = {"auto", "none", "8", "16", "256"};
  for (int i = 0; i < 5; i++)
    if (strcmp(names[i], s) == 0) return (fl_tui_color)i;
  return FL_TUI_COLOR_AUTO;
}

int main(int argc, char **argv) {
  static const struct option longs[] = {
      {"ascii", 0, NULL, 'a'}, {"color", 1, NULL, 'c'}, {"headless", 0, NULL, 'h'},
      {"once", 0, NULL, 'o'},  {"json", 0, NULL, 'j'},  {"view", 1, NULL, 'v'},
      {"speed", 1, NULL, 's'}, {"wait", 0, NULL, 'w'},  {NULL, 0, NULL, 0}};
  fl_tui_options o = {.out = stdout};
  fl_err err = {0};
  int c;
  while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
    switch (c) {
      case 'a': o.ascii = true; break;
      case 'c': o.color = color_of(optarg); break;
      case 'h': o.headless = true; break;
      case 'o': o.once = true; break;
      case 'j': o.json = true; break;
      case 'v': o.view = optarg; break;
      case 's': o.speed = strtod(optarg, NULL); break;
      case 'w': o.wait = true; break;
      default: return 2;
    }
  }
  o.fleets = (const char *const *)argv + optind;
  o.n_fleets = (size_t)(argc - optind);
  int rc = fl_tui_watch(&o, &err);
  if (err.text[0]) fprintf(stderr, "watch: %s\n", err.text);
  return fl_exit_status(rc);
}
