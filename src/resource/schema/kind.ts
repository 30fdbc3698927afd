import type { KubernetesObject } from '../object/object.ts';
import type { KindIdentity } from './kind-identity.ts';
import type { KindSchema } from './kind-schema.ts';
import type { WriteStrategy } from './write-strategy.ts';

/** The result of `parse`: the object with defaults, and its unknown fields, which were removed. */
export interface Parsed<T> {
  readonly object: T;
  /** Field paths such as `spec.gti`. */
  readonly unknownFields: readonly (readonly (string | number)[])[];
}

/**
 * A kind of objects: its identity, its schema and its write strategy. Code that needs only one of the three depends on that one. `T`
 * is the type of its objects, `Input` the type for creating one (fields with a default are optional).
 */
export interface Kind<T extends KubernetesObject = KubernetesObject, Input = unknown>
  extends KindIdentity,
    KindSchema<T> {
  readonly strategy: WriteStrategy<T>;
  /**
   * Validates a value from outside against the schema, then with the strategy. Missing apiVersion and kind are added. Throws
   * InvalidInput with InvalidObjectDetails: every cause, with its field. For a write of the status, which stores nothing else, `part` omits
   * the rules of the strategy: an object that was stored before there was a rule must be able to report why nothing is done for it. Kinds that
   * users define keep their rules, which can be about the status.
   */
  parse(value: unknown, part?: 'status'): Parsed<T>;
  /** `parse` for a value whose type the compiler checks; unknown fields are dropped. */
  complete(input: Input): T;
}

/** The type of a kind's objects. */
export type ObjectOf<K> = K extends Kind<infer T> ? T : never;
