import type { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** An error in a value, in the form of a Kubernetes status cause. */
export interface FieldCause {
  /** `spec.git.branch`, `spec.pins[0].revision`, `metadata.labels[app.example.org/x]`. Empty for the whole object. */
  readonly field: string;
  /** `Required value`, or `Invalid value: 3: expected string`. */
  readonly message: string;
  /** The same place as `field`, as keys and indexes. */
  readonly path: readonly (string | number)[];
}

export interface InvalidObjectDetails {
  readonly causes: readonly FieldCause[];
}

/** The message of a cause for a field that must be there; a schema's own rule may use it too. */
export const REQUIRED_VALUE = 'Required value';

/** Begins the messages of zod itself. */
const ZOD_MESSAGE = 'Invalid input';

const MAX_SHOWN_CHARACTERS = 200;
/** The search for passwords covers what is shown and a good deal beyond; further would cost more than it is worth. */
const MAX_SEARCHED_CHARACTERS = 4096;

/** Formats a path as `a.b[0].c`; a key that is not an identifier is in brackets. */
export function fieldPath(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number' || !/^[A-Za-z_][\w-]*$/.test(String(step))) text += `[${String(step)}]`;
    else text += text === '' ? String(step) : `.${String(step)}`;
  }
  return text;
}

/** InvalidInput with all causes; `subject` names what is invalid, for instance `Repository "blueprints"`. */
export function invalidObject(subject: string, causes: readonly FieldCause[]): SluiceError<InvalidObjectDetails> {
  const list = causes.map((cause) => (cause.field === '' ? cause.message : `${cause.field}: ${cause.message}`));
  const text = list.length === 1 ? list[0] : `[${list.join(', ')}]`;
  return new SluiceError('InvalidInput', `${subject} is invalid: ${text}`, { details: { causes } });
}

/** Creates a cause for a field that is validated without a schema. */
export function invalidValue(path: readonly (string | number)[], value: unknown, rule: string): FieldCause {
  return { field: fieldPath(path), message: `Invalid value: ${showValue(value)}: ${rule}`, path };
}

/** A cause for a field that must be there. */
export function requiredValue(path: readonly (string | number)[]): FieldCause {
  return { field: fieldPath(path), message: REQUIRED_VALUE, path };
}

/** A cause for a field that must not be there, or must not change. */
export function forbidden(path: readonly (string | number)[], rule: string): FieldCause {
  return { field: fieldPath(path), message: `Forbidden: ${rule}`, path };
}

/**
 * Converts the issues of zod to causes. `root` is the validated value; `secret` omits its values from the messages. Of
 * a union only the best matching branch is reported.
 */
export function causesOf(issues: readonly z.core.$ZodIssue[], root: unknown, secret: boolean): FieldCause[] {
  const causes: FieldCause[] = [];
  for (const issue of issues) collect(issue, [], root, secret, causes);
  return causes;
}

function collect(
  issue: z.core.$ZodIssue,
  prefix: readonly PropertyKey[],
  root: unknown,
  secret: boolean,
  causes: FieldCause[],
): void {
  const path = [...prefix, ...issue.path].map((step) => (typeof step === 'number' ? step : String(step)));
  if (issue.code === 'invalid_union') {
    const deepest = issue.errors.toSorted((left, right) => depth(right) - depth(left))[0];
    if (deepest !== undefined && depth(deepest) > 0) {
      for (const inner of deepest) collect(inner, path, root, secret, causes);
      return;
    }
  }
  const field = fieldPath(path);
  const value = valueAt(root, path);
  if ((value === undefined && issue.code !== 'custom') || issue.message === REQUIRED_VALUE) {
    causes.push({ field, message: REQUIRED_VALUE, path });
    return;
  }
  // Of a map whose key has no form the key is shown.
  const shown = secret ? '(not shown)' : showValue(issue.code === 'invalid_key' ? path.at(-1) : value);
  if (issue.code === 'invalid_value') {
    const supported = issue.values.map((known) => JSON.stringify(known)).join(', ');
    causes.push({ field, message: `Unsupported value: ${shown}: supported values: ${supported}`, path });
    return;
  }
  causes.push({ field, message: `Invalid value: ${shown}: ${ruleOf(issue)}`, path });
}

function depth(issues: readonly z.core.$ZodIssue[]): number {
  return Math.max(0, ...issues.map((issue) => issue.path.length));
}

function ruleOf(issue: z.core.$ZodIssue): string {
  // A schema may have words of its own for a type.
  if (issue.code === 'invalid_type' && issue.message.startsWith(ZOD_MESSAGE))
    return `expected ${issue.expected === 'record' ? 'object' : issue.expected}`;
  if (issue.code === 'invalid_key') return issue.issues.map((inner) => inner.message).join(', ');
  if (issue.code === 'invalid_union') return 'matches none of the allowed forms';
  return issue.message;
}

function valueAt(root: unknown, path: readonly (string | number)[]): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}

/**
 * Formats a value for a message: short, on one line, and without passwords in URLs. With `urlsOnly` a URL is recognised by `://`; else
 * `user:password@host` is one too, for which `image:tag@digest` could be mistaken.
 */
export function showValue(value: unknown, { urlsOnly = false } = {}): string {
  const text = value === undefined ? 'nothing' : jsonStart(value, MAX_SEARCHED_CHARACTERS);
  const urls = text.replaceAll(/(:\/\/)[^/\s"@]+@/g, '$1***@');
  const safe = urlsOnly ? urls : urls.replaceAll(/[^\s"/@:]+:[^\s"/@]+@/g, '***@');
  return safe.length > MAX_SHOWN_CHARACTERS ? `${safe.slice(0, MAX_SHOWN_CHARACTERS)}…` : safe;
}

/** At least the first `length` characters of the JSON text of a value, whose size and depth do not matter. */
function jsonStart(value: unknown, length: number): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, length));
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? String(value);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  let text = open ?? '';
  for (const [key, inner] of Object.entries(value)) {
    if (inner === undefined) continue;
    if (text.length > 1) text += ',';
    if (!Array.isArray(value)) text += `${jsonStart(key, length)}:`;
    if (text.length >= length) return text;
    text += jsonStart(inner, length - text.length);
  }
  return text + close;
}
