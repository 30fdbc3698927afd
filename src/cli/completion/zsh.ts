import { type Launch, quote } from './shell-text.ts';
import type { Places } from './words.ts';

export function zsh(places: Places, { words: launch, isCheckout }: Launch): string {
  const cases = [...places].map(([path, { words, names = '', values = [] }]) => {
    const items = words.map(({ word, help }) => quote(`${word.replaceAll(':', '\\:')}:${help}`));
    const closed = words.some(({ word }) => !word.startsWith('-')) || values.length > 0 ? ' closed=1' : '';
    return `    ${quote(path)}) items=(${[...items, ...values.map(quote)].join(' ')}) kind=${quote(names)}${closed} ;;`;
  });
  const options = [...places].flatMap(([path, { words }]) =>
    words.flatMap(({ word, short, values, names = '' }) => {
      if (values === undefined) return [];
      const patterns = [word, short ?? word].map((name) => quote(`${path} ${name}`)).join('|');
      return `    ${patterns}) items=(${values.map(quote).join(' ')}) kind=${quote(names)} closed=${values.length > 0 || names !== '' ? 1 : ''} ;;`;
    }),
  );
  return `#compdef sluice
# Completion of sluice for zsh: sluice completion zsh > "\${fpath[1]}/_sluice", or source <(sluice completion zsh)
_sluice() {
  local place="" word longer kind="" closed="" current="\${words[CURRENT]}" previous="\${words[CURRENT-1]}"
  if [[ "$current" == --*=* ]]; then
    previous="\${current%%=*}"
    current="\${current#*=}"
    compset -P '*='
  fi
  local -a items paths found
  paths=(${[...places.keys()].map(quote).join(' ')})
  for word in "\${(@)words[2,CURRENT-1]}"; do
    longer="\${place:+$place }$word"
    if (( \${paths[(Ie)$longer]} )); then place="$longer"; fi
  done
  case "$place" in
${cases.join('\n')}
  esac
  # Options are offered where one is begun.
  if [[ "$current" == -* ]]; then closed=1; kind=""; else items=(\${items:#-*}); fi
  case "$place $previous" in
${options.join('\n')}
  esac
  if [[ -n "$kind" ]]; then
    found=("\${(@f)$(${launch.map(quote).join(' ')} __complete "$kind" "$current" "\${(@)words[2,-1]}" 2>/dev/null </dev/null)}")
    found=(\${found:#})
    if (( \${#found} )); then compadd -- "\${found[@]}"; fi
  fi
  if (( \${#items} )); then _describe 'sluice' items; fi
  if [[ -z "$closed" ]] && (( ! \${#found} )); then _files; fi
}
if ! (( \${+functions[compdef]} )); then autoload -Uz compinit; compinit -i; fi
${isCheckout ? CHECKOUT : ''}if [[ "\${funcstack[1]}" == "_sluice" ]]; then _sluice "$@"; else compdef _sluice sluice; fi
`;
}

/** Under npx the words begin one later. For other programs that npx runs, the completion that was there before is used. */
const CHECKOUT = `_sluice_npx() {
  if [[ "\${words[2]}" == sluice && $CURRENT -gt 2 ]]; then
    shift words
    (( CURRENT -= 1 ))
    _sluice
    return
  fi
  if (( CURRENT == 2 )); then compadd sluice; fi
  if [[ -n "$_sluice_npx_before" ]]; then eval "$_sluice_npx_before"; else _default; fi
}
if [[ "\${_comps[npx]-}" != _sluice_npx ]]; then
  typeset -g _sluice_npx_before="\${_comps[npx]-}"
  compdef _sluice_npx npx
fi
`;
