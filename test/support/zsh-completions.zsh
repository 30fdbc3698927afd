# zsh -f zsh-completions.zsh PREPARATION LINE...
# Starts an interactive zsh on a terminal of its own, runs PREPARATION in it, presses Tab at the end of each line, and prints what it
# offers, one word a line after "== LINE". Matches are taken where the completion system receives them, in compadd.
zmodload zsh/zpty || exit 3
preparation=$1
shift
zpty shell zsh -f -i

# Reads up to a mark, and puts what is before it into REPLY.
read_until() {
  local all='' part
  while zpty -r shell part; do
    all+=$part
    if [[ $all == *"$1"* ]]; then
      REPLY=${all%%"$1"*}
      return 0
    fi
  done
  return 1
}

# The marks are in two parts, so that the terminal's echo of this text does not contain them.
zpty -w shell "PROMPT=; $preparation"
zpty -w shell 'compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a matches
  local match
  builtin compadd -O matches "$@"
  for match in "${matches[@]}"; do print -r -- "<match>$match</match>"; done
  builtin compadd "$@"
}
finish() { print -r -- "<fini""shed>"; compstate[insert]=""; compstate[list]="" }
capture() { comppostfuncs=(finish); zle complete-word; zle kill-whole-line }
zle -N capture
bindkey "^I" capture
print "<re""ady>"'
read_until '<ready>' || exit 4
if [[ $REPLY == *'not found'* ]]; then print -r -u2 -- "$REPLY"; fi
for line; do
  zpty -w -n shell "$line"$'\t'
  read_until '<finished>' || exit 5
  print -r -- "== $line"
  print -r -- "$REPLY" | grep -o '<match>[^<]*</match>' | sed 's/<[^>]*>//g' | sort -u
done
zpty -d shell
