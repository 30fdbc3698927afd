import { SluiceError } from '../../foundation/sluice-error.ts';
import type { KubernetesObject } from '../object/object.ts';
import type { KindSchema } from '../schema/kind-schema.ts';

export interface FieldRequirement {
  /** `spec.repository`, `spec.packageMetadata.labels[app]`. */
  readonly path: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/** A parsed field selector: all requirements must match; without requirements it selects everything. */
export interface FieldSelector {
  readonly requirements: readonly FieldRequirement[];
}

const MAX_LENGTH = 64 * 1024;
const ALWAYS_SELECTABLE: KindSchema['selectableFields'] = [{ path: 'metadata.name' }, { path: 'metadata.namespace' }];

/**
 * Parses `spec.repository=blueprints,spec.lifecycle!=Draft`. `=` and `==` are the same; in a value `\` escapes `,`, `=`
 * and itself. Throws BadRequest that names the place.
 */
export function fieldSelector(text: string): FieldSelector {
  if (text.length > MAX_LENGTH)
    throw new SluiceError('BadRequest', `field selector has ${text.length} characters, at most ${MAX_LENGTH}`);
  const requirements: FieldRequirement[] = [];
  for (const { term, column } of terms(text)) {
    if (term.trim() === '') continue;
    const match = /^\s*([^=!\\,]+?)\s*(==|!=|=)\s*(.*?)\s*$/s.exec(term);
    const [, path, operator, value] = match ?? [];
    if (path === undefined || operator === undefined || value === undefined)
      throw new SluiceError(
        'BadRequest',
        `field selector, column ${column}: ${JSON.stringify(term)} is not "field=value", "field==value" or "field!=value"`,
      );
    requirements.push({ path, operator: operator === '!=' ? '!=' : '=', value: unescapeValue(value, column) });
  }
  return { requirements };
}

/** Splits at commas that are not escaped. */
function* terms(text: string): Generator<{ term: string; column: number }> {
  let start = 0;
  for (let at = 0; at <= text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (at === text.length || text[at] === ',') {
      yield { term: text.slice(start, at), column: start + 1 };
      start = at + 1;
    }
  }
  if (start < text.length) yield { term: text.slice(start), column: start + 1 };
}

function unescapeValue(value: string, column: number): string {
  const problem = (what: string) => new SluiceError('BadRequest', `field selector, column ${column}: ${what}`);
  return value.replace(/\\(.?)|=/gs, (whole, escaped: string | undefined) => {
    if (whole === '=') throw problem('"=" inside a value is written "\\="');
    if (escaped === undefined || !'\\,='.includes(escaped) || escaped === '')
      throw problem('"\\" may stand before ",", "=" and "\\" only');
    return escaped;
  });
}

/** The text form; `fieldSelector` reads it back as the same requirements. */
export function formatFieldSelector(selector: FieldSelector): string {
  return selector.requirements
    .map(({ path, operator, value }) => `${path}${operator}${value.replace(/[\\,=]/g, '\\$&')}`)
    .join(',');
}

/**
 * A test for objects of a kind. Throws BadRequest if the selector names a field that the kind does not offer, or a
 * value that the field cannot have.
 */
export function compileFieldSelector(
  selector: FieldSelector,
  kind: Pick<KindSchema, 'selectableFields'>,
): (object: KubernetesObject) => boolean {
  const tests = selector.requirements.map(({ path, operator, value }) => {
    const known = [...ALWAYS_SELECTABLE, ...kind.selectableFields].find((field) => covers(field.path, path));
    if (known === undefined) throw new SluiceError('BadRequest', `"${path}" is not a known field selector`);
    if (known.values !== undefined && !known.values.includes(value))
      throw new SluiceError(
        'BadRequest',
        `unsupported fieldSelector value ${JSON.stringify(value)} for ${path}: supported are ${known.values.join(', ')}`,
      );
    // A value does not show whether its key is missing or empty.
    if (known.path.endsWith('[*]')) refuseUnlessValue(path, operator, value);
    const steps = stepsOf(path);
    const missing = known.missing ?? '';
    return (object: KubernetesObject) => ((readField(object, steps) ?? missing) === value) === (operator === '=');
  });
  return (object) => tests.every((test) => test(object));
}

function refuseUnlessValue(path: string, operator: string, value: string): void {
  if (operator !== '=')
    throw new SluiceError(
      'BadRequest',
      `unsupported fieldSelector operator ${JSON.stringify(operator)} for field "${path}"`,
    );
  if (value === '') throw new SluiceError('BadRequest', `unsupported fieldSelector value "" for field "${path}"`);
}

/** `spec.labels[*]` covers `spec.labels[anything]`. */
function covers(pattern: string, path: string): boolean {
  if (!pattern.endsWith('[*]')) return pattern === path;
  const prefix = pattern.slice(0, -2);
  return path.startsWith(prefix) && path.endsWith(']') && path.length > prefix.length + 1;
}

/** The steps of a path such as `spec.labels[app]`. */
export function stepsOf(path: string): string[] {
  const bracket = path.indexOf('[');
  if (bracket < 0) return path.split('.');
  return [...path.slice(0, bracket).split('.'), path.slice(bracket + 1, -1)];
}

/** The value at some steps, as text; undefined if there is none. */
export function readField(object: unknown, steps: readonly string[]): string | undefined {
  let value = object;
  for (const step of steps) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value === undefined || value === null ? undefined : String(value);
}
