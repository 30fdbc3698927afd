import { isSluiceError, SluiceError } from '../foundation/sluice-error.ts';
import { deepFreeze, type KubernetesObject, type Stored } from '../resource/object/object.ts';
import type { Kind, Parsed } from '../resource/schema/kind.ts';

const MAX_DEPTH = 200;

/**
 * Reads an object from the response of a server, deeply frozen. Defaults of Sluice's schema that the server omitted are added,
 * so that the object conforms to its type. All other fields stay, in particular unknown ones, so that a changed copy can be
 * written back without a loss. An object that violates the schema is returned unchanged: the server's rules apply to its
 * objects, and one invalid object must not hide the others. Throws Unavailable for a value that is not an object of the kind.
 */
export function readObject<T extends KubernetesObject>(kind: Kind<T>, value: unknown): Stored<T> {
  if (!isStored(value)) throw new SluiceError('Unavailable', `the server sent an object that is not a ${kind.kind}`);
  freezeBounded(value, 0);
  return deepFreeze(completed(kind, value)) as Stored<T>;
}

/**
 * Reads an object of a list or a watch. Values deeper than `readObject` permits become null there, since a user who may write one such
 * object must not hide all others. Do not write a copy of such an object back.
 */
export function readListedObject<T extends KubernetesObject>(kind: Kind<T>, value: unknown): Stored<T> {
  cutBelow(value, 0);
  return readObject(kind, value);
}

function cutBelow(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  const fields = value as Record<string, unknown>;
  for (const [name, inner] of Object.entries(fields)) {
    if (typeof inner !== 'object' || inner === null) continue;
    if (depth < MAX_DEPTH) cutBelow(inner, depth + 1);
    // An assignment to __proto__ would set the prototype.
    else Object.defineProperty(fields, name, { value: null, enumerable: true, configurable: true, writable: true });
  }
}

function isStored(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || !('metadata' in value)) return false;
  const { metadata } = value;
  return (
    typeof metadata === 'object' &&
    metadata !== null &&
    'name' in metadata &&
    typeof metadata.name === 'string' &&
    'resourceVersion' in metadata &&
    typeof metadata.resourceVersion === 'string'
  );
}

/** Freezes a value that was parsed from JSON. It checks the depth because all later traversals are recursive. */
function freezeBounded(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_DEPTH)
    throw new SluiceError('LimitExceeded', `the server sent an object nested more than ${MAX_DEPTH} levels deep`);
  Object.freeze(value);
  for (const inner of Object.values(value)) freezeBounded(inner, depth + 1);
}

function completed<T extends KubernetesObject>(kind: Kind<T>, value: Record<string, unknown>): unknown {
  // Servers written in Go omit these in the items of a list.
  const given = { ...value, apiVersion: kind.apiVersion, kind: kind.kind };
  let parsed: Parsed<T>;
  try {
    parsed = kind.parse(given);
  } catch (error) {
    if (isSluiceError(error, 'InvalidInput')) return given;
    throw error;
  }
  for (const path of parsed.unknownFields) graft(parsed.object, given, path);
  return parsed.object;
}

/** Copies the value of `from` at a path into `into`, which has all of the path but its last step. */
function graft(into: unknown, from: unknown, path: readonly (string | number)[]): void {
  let target = into as Record<string | number, unknown>;
  let source = from as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) {
    target = target[step] as Record<string | number, unknown>;
    source = source[step] as Record<string | number, unknown>;
  }
  const last = path.at(-1) as string | number;
  // An assignment to __proto__ would set the prototype.
  Object.defineProperty(target, last, { value: source[last], enumerable: true, configurable: true, writable: true });
}
