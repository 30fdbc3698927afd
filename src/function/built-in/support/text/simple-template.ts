import { SluiceError } from '../../../../foundation/sluice-error.ts';

/** The maximum size of a ConfigMap. */
const MAX_TEXT_CHARACTERS = 1024 * 1024;

/**
 * Fills a Go template that only inserts parameters: `{{.name}}`, `{{index . "a-name"}}`, `{{"a text"}}`, comments, and dashes that
 * trim blanks. Throws InvalidInput for a parameter that is missing, for any other action, and above 1 MiB.
 */
export function fillTemplate(template: string, parameters: ReadonlyMap<string, string>): string {
  let filled = '';
  let trimNext = false;
  const add = (text: string) => {
    filled += text;
    if (filled.length > MAX_TEXT_CHARACTERS)
      throw invalid(`the text would be longer than ${MAX_TEXT_CHARACTERS} characters`);
  };
  for (let at = 0; ; ) {
    const open = template.indexOf('{{', at);
    const text = template.slice(at, open === -1 ? undefined : open);
    const kept = trimNext ? text.trimStart() : text;
    if (open === -1) {
      add(kept);
      return filled;
    }
    const close = endOfAction(template, open + 2);
    let action = template.slice(open + 2, close);
    const trimsBefore = /^-[ \t\r\n]/.test(action);
    trimNext = /[ \t\r\n]-$/.test(action);
    if (trimsBefore) action = action.slice(1);
    if (trimNext) action = action.slice(0, -1);
    add(trimsBefore ? kept.trimEnd() : kept);
    add(resultOf(action.trim(), parameters));
    at = close + 2;
  }
}

/** Returns the offset of the `}}` of an action; quoted texts may contain others. */
function endOfAction(template: string, start: number): number {
  const comment = /^-?\s*\/\*/.test(template.slice(start, start + 100));
  let quote = '';
  for (let at = comment ? Math.max(start, template.indexOf('*/', start)) : start; at < template.length; at++) {
    const char = template[at] as string;
    if (quote !== '') {
      if (char === '\\' && quote === '"') at++;
      else if (char === quote) quote = '';
    } else if (char === '"' || char === '`') quote = char;
    else if (char === '}' && template[at + 1] === '}') return at;
  }
  throw invalid('an action {{ is not closed');
}

function resultOf(action: string, parameters: ReadonlyMap<string, string>): string {
  if (action.startsWith('/*') && action.endsWith('*/')) return '';
  const name = /^\.([A-Za-z_]\w*)$/.exec(action)?.[1] ?? /^index\s+\.\s+"([^"\\]*)"$/.exec(action)?.[1];
  if (name !== undefined) {
    const value = parameters.get(name);
    if (value === undefined) throw invalid(`unknown parameter ${JSON.stringify(name)}: add it to params`);
    return value;
  }
  if (/^`[^`]*`$/.test(action)) return action.slice(1, -1);
  if (/^"(?:[^"\\]|\\["\\nt])*"$/.test(action)) return JSON.parse(action) as string;
  throw invalid(`the action {{${action.slice(0, 100)}}} is not supported: only parameters, such as {{.name}}, are`);
}

function invalid(why: string): SluiceError {
  return new SluiceError('InvalidInput', why);
}
