#!/bin/sh
# What is wrong on the command line is refused with status 2 and one sentence that names it.
. "$(dirname "$0")/lib.sh"

refused() {
  name=$1
  shift
  run 2 "$@" && says "$err" "$name" && one_sentence
}

refused 'a command is needed'
refused 'nonsense' nonsense
refused 'inof.*did you mean info' inof
refused '--tokenise.*did you mean --tokenize' info --tokenise x "$model"
refused '--tokenize needs a value' info "$model" --tokenize
refused '--json takes no value' info "$model" --json=yes
refused '-X' info -X "$model"
refused 'operand' info
refused 'two' info one two
refused 'unknown gate' gate everything --model "$model"
refused '--model' gate equiv --docs "$docs"
refused '--docs' gate equiv --model "$model"
refused '--ids' gate logits --model "$model"

# One option of each type; check_options tries every option of every command.
run 0 help --commands
while read -r c; do
  "$FLOTILLA" help "$c" --options </dev/null | sed "s/^/$c$tab/"
done <"$out" >"$work/options"
for type in count u64 real bytes seconds choice form text list on off; do
  line=$(grep -m1 "^[a-z]*$tab[^$tab]*$tab[^$tab]*$tab$type$tab" "$work/options")
  c=$(echo "$line" | cut -f1)
  long=$(echo "$line" | cut -f2)
  case $type in
    count | u64 | real | bytes | seconds)
      refused "$long x: not understood" "$c" "$long" x
      refused "$long 99999999999999999999" "$c" "$long=99999999999999999999"
      refused "$long -2" "$c" "$long" -2
      ;;
    choice) refused "$long nothing-like-it: unknown" "$c" "$long" nothing-like-it ;;
    form) refused "$long: \"nothing-like-it\"" "$c" "$long" nothing-like-it ;;
    text | list) refused "$long needs a value" "$c" "$long" ;;
    on | off) refused "$long takes no value" "$c" "$long=1" ;;
  esac
done
finish
