import type { z } from 'zod';
import type { NameRule } from '../object/name-rules.ts';
import type { KubernetesObject } from '../object/object.ts';
import type { StructuralSchema } from './structural/structural-schema.ts';

/** A column of `get`. */
export interface PrinterColumn<T> {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date';
  readonly description?: string;
  /** 0 is always shown, higher numbers only in wide tables. */
  readonly priority?: number;
  /**
   * JSONPath of the value, for clients that display objects without this code: `.spec.git.branch`. Absent if no path leads to it.
   */
  readonly jsonPath?: string;
  value(object: T): string | number | boolean | undefined;
}

/** A field that a field selector may name. */
export interface SelectableField {
  /** `spec.repository`; `spec.labels[*]` allows any key in the brackets. */
  readonly path: string;
  /** The value of an object without the field. Default: the empty string. */
  readonly missing?: string;
  /** The permitted values; other values are refused. */
  readonly values?: readonly string[];
}

/** The content of objects of a kind and how they are displayed: the input of documentation, tables and selectors. */
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
  /** Maximum number of values in an object besides managedFields, including nested ones. Default: 8,000. */
  readonly maxValues?: number;
  /** True if objects contain CEL rules, which are compiled when an object is validated. */
  readonly compilesRules?: boolean;
  /** Text of the warning for users of this version. Absent if it is not deprecated. */
  readonly deprecation?: string;
}
