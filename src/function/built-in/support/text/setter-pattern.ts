import { isSeq, type Node } from 'yaml';
import { lineComment } from './line-comment.ts';

const SETTER = /\$\{([^}]*)\}/g;

/** `nginx-${env}:${tag}`: texts, and the names of the setters between them. */
export interface SetterPattern {
  readonly text: string;
  /** One more than names. */
  readonly literals: readonly string[];
  readonly names: readonly string[];
}

/** The pattern of a comment `# kpt-set: `; undefined if there is none with a setter. */
export function setterPatternOf(node: Node): SetterPattern | undefined {
  const comment = lineComment(node);
  if (!comment?.startsWith(' kpt-set: ')) return undefined;
  const pattern = parseSetterPattern(comment.slice(' kpt-set: '.length).trim());
  return pattern.names.length === 0 ? undefined : pattern;
}

export function parseSetterPattern(text: string): SetterPattern {
  const parts = text.split(SETTER);
  return {
    text,
    literals: parts.filter((_, at) => at % 2 === 0),
    names: parts.filter((_, at) => at % 2 === 1),
  };
}

/** The one setter of a list; undefined for a pattern that is more than its name. */
export function soleSetter({ literals, names }: SetterPattern): string | undefined {
  return names.length === 1 && literals.every((literal) => literal === '') ? names[0] : undefined;
}

/**
 * Derives the values of the setters from a text of this pattern. Every setter matches as much as it can, from left to
 * right. Undefined if the value does not have the form, or one of them would be empty.
 */
export function deriveSetters({ literals, names }: SetterPattern, value: string): Map<string, string> | undefined {
  if (value.includes('\n')) return undefined;
  const [first = ''] = literals;
  const start = value.indexOf(first);
  if (start === -1) return undefined;
  // From the right, every text between setters is matched as far right as possible.
  const values: string[] = [];
  let end = value.length;
  for (let at = names.length; at > 0; at--) {
    const literal = literals[at] ?? '';
    const found = literal.length > end ? -1 : value.lastIndexOf(literal, end - literal.length);
    if (found === -1) return undefined;
    // The value ends where the text after it begins; the next iteration finds its start.
    values.unshift(value.slice(found + literal.length, end));
    end = found;
  }
  if (end < start + first.length) return undefined;
  // Each slice is the part behind a text, so they are one place late.
  const derived = [value.slice(start + first.length, end), ...values.slice(0, -1)];
  if (derived.some((part) => part === '')) return undefined;
  return new Map(names.map((name, at) => [name, derived[at] as string]));
}

/** The pattern with values in place of its setters; those without a value are returned by name. */
export function expandPattern(
  { literals, names }: SetterPattern,
  lookUp: (name: string) => string | undefined,
): { readonly text: string; readonly missing: readonly string[] } {
  let text = literals[0] ?? '';
  const missing: string[] = [];
  for (const [at, name] of names.entries()) {
    const value = lookUp(name);
    if (value === undefined) missing.push(name);
    text += (value ?? '') + (literals[at + 1] ?? '');
  }
  return { text, missing };
}

/** True for a list under a key, the only place of setters of lists for kpt. */
export function isListField(node: Node, trail: readonly (string | number)[]): boolean {
  return isSeq(node) && typeof trail.at(-1) === 'string';
}
