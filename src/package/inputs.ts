import { SluiceError } from '../foundation/sluice-error.ts';
import { parseConditionType } from './condition-type.ts';

/**
 * A verdict belongs to its inputs. An input reference says what part of a package a condition was given for, so that anyone can
 * tell later whether that part is still the same:
 * - `content`: everything but Kptfile status and readiness gates;
 * - `object:<group>/<version>.<Kind>.<name>`: that object without its status;
 * - `file:<path>`: one file.
 */
export type InputReference = string;

export const CONTENT_INPUT: InputReference = 'content';

/** The parts of a package that verdicts can refer to. */
export interface PackageInputs {
  readonly content: string;
  /** Digest of the object that a condition type names, without status; undefined if the package has none. */
  object(conditionType: string): string | undefined;
  file(path: string): string | undefined;
}

/** Of a package that cannot be read. What is bound to it holds for nothing. */
export const UNKNOWN_INPUTS: PackageInputs = { content: 'unknown', object: () => undefined, file: () => undefined };

/** What a condition of this type is given for if nobody says otherwise. */
export function defaultInputs(conditionType: string, inputs: PackageInputs): InputReference[] {
  if (parseConditionType(conditionType) !== undefined && inputs.object(conditionType) !== undefined) {
    return [`object:${conditionType}`];
  }
  return [CONTENT_INPUT];
}

/**
 * The digests of the referenced inputs as they are now. What is gone has a digest of its own, so its verdicts become stale.
 * Throws InvalidInput for a reference of an unknown form.
 */
export function bindInputs(
  references: readonly InputReference[],
  inputs: PackageInputs,
): Record<InputReference, string> {
  return Object.fromEntries(
    [...new Set(references)].sort().map((reference) => {
      const digest = digestOf(reference, inputs);
      if (digest === undefined) {
        throw new SluiceError(
          'InvalidInput',
          `${JSON.stringify(reference)} names no input of a package; use content, object:<condition type> or file:<path>`,
        );
      }
      return [reference, digest];
    }),
  );
}

/** The references whose digest is another one now than when a verdict was given, and those of an unknown form. */
export function changedInputs(
  bound: Readonly<Record<InputReference, string>>,
  inputs: PackageInputs,
): InputReference[] {
  return Object.keys(bound).filter((reference) => digestOf(reference, inputs) !== bound[reference]);
}

function digestOf(reference: InputReference, inputs: PackageInputs): string | undefined {
  if (reference === CONTENT_INPUT) return inputs.content;
  if (reference.startsWith('object:')) return inputs.object(reference.slice('object:'.length)) ?? 'absent';
  if (reference.startsWith('file:')) return inputs.file(reference.slice('file:'.length)) ?? 'absent';
  return undefined;
}
