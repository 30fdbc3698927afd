import type { z } from 'zod';
import type { NameRule } from '../object/name-rules.ts';
import type { KubernetesObject } from '../object/object.ts';
import type { StructuralSchema } from './structural/structural-schema.ts';

/** A column of `get`. */
export interface PrinterColumn<T> {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly description?: string;
  /** 0 is always shown, others in the wide table only. */
  readonly priority?: number;
  /** Where the value stands, for clients that show objects without this code: `.spec.git.branch`. Absent if no path leads to it. */
  readonly jsonPath?: string;
  value(object: T): string | number | boolean | undefined;
}

/** A field that a field selector may name. */
export interface SelectableField {
  /** `spec.repository`; `spec.labels[*]` allows any key in the brackets. */
  readonly path: string;
  /** What an object without the field counts as. Default: the empty string. */
  readonly missing?: string;
  /** The only permitted values; others are refused. */
  readonly values?: readonly string[];
}

/** What objects of a kind contain and how they are shown: all that documentation, tables and selectors need. */
export interface KindSchema<T extends KubernetesObject = KubernetesObject> {
  readonly description: string;
  /** Schemas of the top-level fields besides apiVersion, kind and metadata, for documentation and publishing. */
  readonly fields: Readonly<Record<string, z.ZodType>>;
  /** The structural schema of the whole object, where it is not derived from `fields`: kinds that users define. */
  readonly schema?: StructuralSchema;
  /** The rule for names; undefined if the server makes them. */
  readonly nameRule: NameRule | undefined;
  /** Fields that keep their first value, such as `spec.git.repo`. */
  readonly immutableFields: readonly string[];
  /** True if values must not be printed. */
  readonly sensitive: boolean;
  readonly printerColumns: readonly PrinterColumn<T>[];
  readonly selectableFields: readonly SelectableField[];
  /** Values that an object may have besides managedFields, those inside of others included, where that is not 8,000. */
  readonly maxValues?: number;
  /** True if objects hold CEL rules that are compiled when one is judged. */
  readonly compilesRules?: boolean;
  /** What users of this version are warned with. Absent if they need not be. */
  readonly deprecation?: string;
}
