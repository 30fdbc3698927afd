import { SluiceError } from '../../../foundation/sluice-error.ts';
import { OBJECT_DIGEST_PREFIX } from '../krm/object-digest.ts';
import { parseConditionType } from '../policy/condition-type.ts';

/**
 * A verdict belongs to its inputs. An input reference names the part of a package that a condition was set for, so that it
 * can be checked later whether that part is still the same:
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
  /** The same as earlier versions made it, for verdicts from then. */
  formerObject?(conditionType: string): string | undefined;
  file(path: string): string | undefined;
}

/** The inputs of a package that cannot be read. No verdict is valid for them. */
export const UNKNOWN_INPUTS: PackageInputs = { content: 'unknown', object: () => undefined, file: () => undefined };

/**
 * The inputs of a condition of this type where its issuer names none. `wholeContent`: a policy binds the type to all of the package,
 * whatever object its name resembles.
 */
export function defaultInputs(conditionType: string, inputs: PackageInputs, wholeContent = false): InputReference[] {
  if (wholeContent) return [CONTENT_INPUT];
  if (parseConditionType(conditionType) !== undefined && inputs.object(conditionType) !== undefined) {
    return [`object:${conditionType}`];
  }
  return [CONTENT_INPUT];
}

/**
 * Computes the current digests of the referenced inputs. A missing input has a special digest, so its verdicts become
 * stale. Throws InvalidInput for a reference of an unknown form.
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
  return Object.keys(bound).filter((reference) => {
    const before = bound[reference];
    return digestOf(reference, inputs) !== before && !isFormer(reference, before, inputs);
  });
}

/** True for a digest of an earlier version's form that the object still has. Such a verdict gets a new one when it is affirmed. */
function isFormer(reference: InputReference, before: string | undefined, inputs: PackageInputs): boolean {
  if (!reference.startsWith('object:') || before === undefined || before.startsWith(OBJECT_DIGEST_PREFIX)) return false;
  return inputs.formerObject?.(reference.slice('object:'.length)) === before;
}

function digestOf(reference: InputReference, inputs: PackageInputs): string | undefined {
  if (reference === CONTENT_INPUT) return inputs.content;
  if (reference.startsWith('object:')) return inputs.object(reference.slice('object:'.length)) ?? 'absent';
  if (reference.startsWith('file:')) return inputs.file(reference.slice('file:'.length)) ?? 'absent';
  return undefined;
}
