import type { KubernetesObject } from '../object/object.ts';
import type { KindIdentity } from './kind-identity.ts';
import type { KindSchema } from './kind-schema.ts';
import type { WriteStrategy } from './write-strategy.ts';

/** What `parse` found: the object with defaults, and unknown fields, which are left out of the object. */
export interface Parsed<T> {
  readonly object: T;
  /** Field paths such as `spec.gti`. */
  readonly unknownFields: readonly (readonly (string | number)[])[];
}

/**
 * A kind of objects: its identity, its schema and how its objects are written. Code that needs one of the three takes that. `T` is the
 * type of its objects, `Input` what a client writes to create one (fields with a default may be left out).
 */
export interface Kind<T extends KubernetesObject = KubernetesObject, Input = unknown>
  extends KindIdentity,
    KindSchema<T> {
  readonly strategy: WriteStrategy<T>;
  /**
   * Judges a value from outside by the schema, then by the strategy. apiVersion and kind may be missing and are then filled in.
   * Throws InvalidInput with InvalidObjectDetails: every cause, with its field.
   */
  parse(value: unknown): Parsed<T>;
  /** `parse` for a value whose type the compiler checks; unknown fields are dropped. */
  complete(input: Input): T;
}

/** The type of a kind's objects. */
export type ObjectOf<K> = K extends Kind<infer T> ? T : never;
