#!/bin/sh
# What is wrong on the command line is refused with status 2 and one sentence that names it.
. "$(dirname "$0")/lib.sh"

refused() {
  name=$1
  shift
  run 2 "$@" && says "$err" "$name" && one_sentence
}

# Never a number that can be taken; slow builds try two of them.
wrong='nan -2 1e300 99999999999999999999 x'
[ -z "${FLOTILLA_BRIEF:-}" ] || wrong='-2 x'

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

run 0 help --commands
cp "$out" "$work/commands"
while read -r c; do
  run 0 help "$c" --options
  cp "$out" "$work/options"
  while IFS=$tab read -r long short type default min max; do
    case $type in
      count | u64 | real | bytes | seconds)
        refused "$long" "$c" "$long="
        for value in $wrong; do refused "$long" "$c" "$long" "$value"; done
        below=$(awk -v m="$min" 'BEGIN { if (m > 0) print (m >= 1 ? m - 1 : m / 2) }')
        if [ -n "$below" ]; then refused "$long" "$c" "$long" "$below"; fi
        above=$(awk -v m="$max" 'BEGIN { if (m < 1e15) printf "%.17g", (m >= 2 ? m + 1 : m * 1.5) }')
        if [ -n "$above" ]; then refused "$long" "$c" "$long" "$above"; fi
        if [ "$default" = - ]; then fail "$c $long: no default"; fi
        ;;
      choice | form) refused "$long" "$c" "$long" nothing-like-it ;;
      text | list) refused "$long" "$c" "$long" ;;
      on | off) refused "$long" "$c" "$long=1" ;;
      *) fail "$c $long: unknown type $type" ;;
    esac
  done <"$work/options"
done <"$work/commands"
finish
