import { linearRegex } from '../../../foundation/text/linear-regex.ts';

/** `[name=web]`: items of a list by a field; `[=--debug]`: by what they are. */
export interface ItemStep {
  readonly type: 'item';
  readonly field: string;
  readonly value: string;
  /** True for a text that matches the value as a regular expression. Throws InvalidInput for an invalid one. */
  readonly search: (text: string) => boolean;
}

/** One step of a path into a resource. */
export type Step =
  /** A key of a mapping, or digits: a place in a list. */
  | { readonly type: 'key'; readonly key: string }
  | ItemStep
  /** `*`: all items of a list. */
  | { readonly type: 'every' };

/**
 * Reads a path of kustomize: keys with dots between, `\.` for a dot in a key, or the key in brackets: `metadata.annotations.[a.b/c]`.
 * Empty for a path without a step.
 */
export function parseFieldPath(path: string): Step[] {
  const steps: Step[] = [];
  let parts = splitAtDots(path);
  if (parts.length > 1 && parts[0] === '') parts = parts.slice(1);
  for (let at = 0; at < parts.length; at++) {
    let part = parts[at] ?? '';
    // Dots in brackets do not end a step.
    if (part.startsWith('['))
      while (!part.endsWith(']') && at < parts.length - 1) {
        at++;
        part += `.${parts[at]}`;
      }
    steps.push(stepOf(part));
  }
  return steps;
}

function splitAtDots(path: string): string[] {
  const parts: string[] = [];
  let open = false;
  for (const part of path.split('.')) {
    const escapes = part.endsWith('\\');
    const text = escapes ? part.slice(0, -1) : part;
    if (open) parts[parts.length - 1] += `.${text}`;
    else parts.push(text);
    open = escapes;
  }
  return parts;
}

function stepOf(part: string): Step {
  if (part === '*') return { type: 'every' };
  if (!part.startsWith('[') || !part.endsWith(']')) return { type: 'key', key: part };
  const inner = part.slice(1, -1);
  const equals = inner.indexOf('=');
  if (equals === -1) return { type: 'key', key: inner };
  const value = inner.slice(equals + 1);
  return { type: 'item', field: inner.slice(0, equals), value, search: searchFor(value) };
}

/** Compiled on first use: for a source the value is not a regular expression. */
function searchFor(value: string): (text: string) => boolean {
  if (/^[\w/: -]*$/.test(value)) return (text) => text.includes(value);
  let regex: ReturnType<typeof linearRegex> | undefined;
  return (text) => {
    regex ??= linearRegex(value, `[=${value.slice(0, 100)}]`);
    return regex.test(text);
  };
}
