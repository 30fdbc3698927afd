import { isScalar } from 'yaml';
import { counted } from '../../foundation/text/counted.ts';
import { looksSecret } from '../../foundation/text/looks-secret.ts';
import type { ResourceIdentity } from './resource-file.ts';
import type { Part } from './yaml-document.ts';

/** The local change of a field that is not in the result of a merge, since upstream changed the field too. */
export interface OverwrittenField {
  /** Path of the local file. */
  readonly file: string;
  /** `<kind>/<name>` */
  readonly resource: string;
  /** Such as `spec.containers[web].image`. */
  readonly field: string;
  /** The local value, shortened; undefined if it is or may be a secret, or if the field was removed. */
  readonly value?: string;
  /** The field was removed locally, and came back. */
  readonly isRemoved?: true;
}

export interface Overwritten {
  /** The first ones, in the order of the merge. */
  readonly fields: readonly OverwrittenField[];
  /** Number of all. */
  readonly total: number;
}

/** Fields of one merge that are listed; the others are counted. */
const MAX_FIELDS = 100;
const MAX_VALUE_CHARACTERS = 60;
const MAX_FIELD_CHARACTERS = 200;
/** Fields that messages contain. */
const MAX_SHOWN_FIELDS = 10;

/** A field below one part of a resource. */
interface Found {
  /** From the field up to that part. */
  readonly steps: string[];
  readonly local: Part;
}

/** The overwritten fields of one resource: each level of the merge adds its step to those that it found. */
export class OverwrittenParts {
  readonly found: Found[] = [];
  total = 0;

  add(local: Part): void {
    this.total += 1;
    if (this.found.length < MAX_FIELDS) this.found.push({ steps: [], local });
  }

  /** Puts a step before those that were added after the first `from`. */
  enter(from: number, step: string): void {
    for (let at = from; at < this.found.length; at += 1) this.found[at]?.steps.push(step);
  }
}

/** The overwritten fields of all resources of one merge. */
export class OverwrittenFields {
  readonly #fields: OverwrittenField[] = [];
  #total = 0;

  add(file: string, { kind, name }: Pick<ResourceIdentity, 'kind' | 'name'>, { found, total }: OverwrittenParts): void {
    this.#total += total;
    for (const { steps, local } of found.slice(0, MAX_FIELDS - this.#fields.length)) {
      const field = steps.toReversed().join('').replace(/^\./, '');
      // A List may contain Secrets.
      const isHidden = kind === 'Secret' || kind.endsWith('List') || steps.some((step) => looksSecret('', [step]));
      const value = isHidden ? undefined : shownPart(local);
      this.#fields.push({
        ...{ file, resource: `${kind}/${name}`, field: shortened(field, MAX_FIELD_CHARACTERS) },
        ...(local === undefined ? { isRemoved: true } : value === undefined ? {} : { value }),
      });
    }
  }

  all(): Overwritten {
    return { fields: this.#fields, total: this.#total };
  }
}

/** The step to a field of a mapping. */
export function fieldStep(key: string): string {
  return /^[\w-]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

/** The step to an entry of a list, by its identity. */
export function entryStep(identity: string): string {
  return `[${identity.startsWith('["') ? (JSON.parse(identity) as string[]).join(',') : identity}]`;
}

/** A text for each of them, up to some; the last one may be the number of the others. None if there are none. */
export function overwrittenTexts({ fields, total }: Overwritten): string[] {
  const shown = fields.slice(0, MAX_SHOWN_FIELDS).map(({ file, resource, field, value, isRemoved }) => {
    const local = isRemoved ? ' (was removed)' : value === undefined ? '' : ` (was ${value})`;
    return `${resource} ${field}${local} in ${file}`;
  });
  return total > shown.length ? [...shown, counted(total - shown.length, 'more field')] : shown;
}

/** A value in one line. */
function shownPart(part: Part): string | undefined {
  if (part === undefined) return undefined;
  const text = isScalar(part) ? String(part.value ?? 'null') : JSON.stringify(part.toJSON());
  if (looksSecret(text, isScalar(part) ? [] : [text.slice(0, 4096)])) return undefined;
  const isPlain = !isScalar(part) || /^[\w./:@+-]+$/.test(text);
  return shortened(isPlain ? text : JSON.stringify(text), MAX_VALUE_CHARACTERS);
}

function shortened(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 3)}...` : text;
}
