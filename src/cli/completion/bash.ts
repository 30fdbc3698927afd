import { type Launch, quote } from './shell-text.ts';
import type { Places } from './words.ts';

export function bash(places: Places, { words: launch, isCheckout }: Launch): string {
  const cases = [...places].map(([path, { words, names = '', values = [] }]) => {
    const all = [...words.map(({ word }) => word), ...values].join(' ');
    return `    ${quote(path)}) words=${quote(all)} names=${quote(names)} ;;`;
  });
  const options = [...places].flatMap(([path, { words }]) =>
    words.flatMap(({ word, short, values, names = '' }) => {
      if (values === undefined) return [];
      const patterns = [word, short ?? word].map((name) => quote(`${path} ${name}`)).join('|');
      return `    ${patterns}) words=${quote(values.join(' '))} names=${quote(names)} ;;`;
    }),
  );
  return `# Completion of sluice for bash: source <(sluice completion bash)
_sluice() {
  local place="" word words="" names="" current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  # "--option=value" is three words.
  if [[ "$current" == "=" ]]; then current=""; elif [[ "$previous" == "=" ]]; then previous="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  local -a paths=(${[...places.keys()].map(quote).join(' ')})
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    local longer="\${place:+$place }$word" known
    for known in "\${paths[@]}"; do
      if [[ "$known" == "$longer" ]]; then place="$longer"; break; fi
    done
  done
  case "$place" in
${cases.join('\n')}
  esac
  # Options are offered to who begins one; after a command that takes no further one come names and files.
  if [[ "$current" != -* ]]; then
    local -a plain=()
    for word in $words; do [[ "$word" == -* ]] || plain+=("$word"); done
    words="\${plain[*]}"
  else
    names=""
  fi
  case "$place $previous" in
${options.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  # Names come from repositories: they are compared, and never expanded.
  if [[ -n "$names" ]]; then
    while IFS= read -r word; do
      if [[ -n "$word" && "$word" == "$current"* ]]; then COMPREPLY+=("$word"); fi
    done < <(${launch.map(quote).join(' ')} __complete "$names" "$current" "\${COMP_WORDS[@]:1}" 2>/dev/null </dev/null)
  fi
}
complete -o default -F _sluice sluice
${isCheckout ? CHECKOUT : ''}`;
}

/** Under npx the words begin one later. For other programs that npx runs, the completion that was there before is used. */
const CHECKOUT = `_sluice_npx() {
  if [[ "\${COMP_WORDS[1]}" == sluice && COMP_CWORD -gt 1 ]]; then
    local -a COMP_WORDS=("\${COMP_WORDS[@]:1}")
    local COMP_CWORD=$((COMP_CWORD - 1))
    _sluice
    return
  fi
  COMPREPLY=()
  local registered='-F ([^ ]+) '
  if [[ "$_sluice_npx_before" =~ $registered ]]; then
    "\${BASH_REMATCH[1]}" "$@"
  elif [[ -n "$_sluice_npx_before" ]]; then
    # As "complete -p" printed it, which is in quotes for a shell.
    eval "COMPREPLY=(\\$(compgen $_sluice_npx_before -- \\"\\\${COMP_WORDS[COMP_CWORD]}\\"))"
  fi
  if [[ COMP_CWORD -eq 1 && sluice == "\${COMP_WORDS[1]}"* ]]; then COMPREPLY+=(sluice); fi
}
# bash-completion loads that of npx only when it is used first.
if ! complete -p npx &>/dev/null; then
  if declare -F _comp_load >/dev/null; then _comp_load npx
  elif declare -F __load_completion >/dev/null; then __load_completion npx
  fi &>/dev/null
fi
if [[ "$(complete -p npx 2>/dev/null)" != *" -F _sluice_npx "* ]]; then
  _sluice_npx_before="$(complete -p npx 2>/dev/null)"
  _sluice_npx_before="\${_sluice_npx_before#complete }"
  _sluice_npx_before="\${_sluice_npx_before%npx}"
fi
complete -o default -F _sluice_npx npx
`;
