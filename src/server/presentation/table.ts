import { SluiceError } from '../../foundation/sluice-error.ts';
import { age } from '../../foundation/time/age.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { PrinterColumn } from '../../resource/schema/kind-schema.ts';
import { type ListMeta, type PartialObjectMetadata, partialMetadata } from './partial-metadata.ts';

/** `meta.k8s.io/v1` Table: what kubectl prints. */
export interface Table {
  readonly kind: 'Table';
  readonly apiVersion: 'meta.k8s.io/v1';
  readonly metadata: ListMeta;
  readonly columnDefinitions: readonly ColumnDefinition[];
  readonly rows: readonly TableRow[];
}

export interface ColumnDefinition {
  readonly name: string;
  readonly type: string;
  /** `name` marks the column of the object's name, to which kubectl adds the kind where it prints several. */
  readonly format: string;
  readonly description: string;
  /** 0 is always shown, 1 in the wide table only. */
  readonly priority: number;
}

export interface TableRow {
  /** One value a column; null is printed as `<none>`. */
  readonly cells: readonly (string | number | boolean | null)[];
  readonly object?: KubernetesObject | PartialObjectMetadata;
}

const INCLUDE_OBJECT = ['None', 'Metadata', 'Object'] as const;
/** The part of its object that a row contains. */
export type IncludeObject = (typeof INCLUDE_OBJECT)[number];

export interface TableOptions {
  /** The time at which ages are computed. Milliseconds since the epoch. */
  readonly now: number;
  /** Default Metadata. */
  readonly includeObject?: IncludeObject;
  /** Of the list that the objects are from, or the resourceVersion of the one object. */
  readonly metadata?: ListMeta;
  /** Leaves the column definitions out; in a watch only the first event has them. */
  readonly withoutColumns?: boolean;
}

/** The query parameter `includeObject`. BadRequest if it is none of the known values. */
export function includeObjectOf(text: string | null | undefined): IncludeObject {
  if (text === null || text === undefined || text === '') return 'Metadata';
  const known = INCLUDE_OBJECT.find((value) => value === text);
  if (known !== undefined) return known;
  throw new SluiceError(
    'BadRequest',
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(text.slice(0, 64))}: ` +
      `must be 'Metadata', 'Object', 'None', or empty`,
  );
}

/** Objects of one kind as a table with the kind's columns. Ages are those at `now`, so a table is not cached. */
export function tableOf<T extends KubernetesObject>(
  kind: Kind<T>,
  objects: readonly T[],
  options: TableOptions,
): Table {
  const { columns, definitions } = layoutOf(kind);
  const { now, includeObject = 'Metadata' } = options;
  const rows = objects.map((object) => {
    const cells = columns.map((column) => cellOf(column, object, now));
    if (includeObject === 'None') return { cells };
    return { cells, object: includeObject === 'Object' ? object : partialMetadata(object) };
  });
  return tableWith(options.withoutColumns === true ? [] : definitions, rows, options.metadata ?? {});
}

/** The table of a bookmark in a watch: empty cells, and an object that carries the version and what is annotated. */
export function bookmarkTable(
  kind: Kind,
  metadata: { readonly resourceVersion: string; readonly annotations?: Readonly<Record<string, string>> },
  withoutColumns: boolean,
): Table {
  const object: PartialObjectMetadata = partialMetadata({ metadata: { name: '', ...metadata } });
  const { definitions } = layoutOf(kind);
  const rows = [{ cells: definitions.map(() => null), object }];
  return tableWith(withoutColumns ? [] : definitions, rows, { resourceVersion: metadata.resourceVersion });
}

function tableWith(
  columnDefinitions: readonly ColumnDefinition[],
  rows: readonly TableRow[],
  metadata: ListMeta,
): Table {
  return { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata, columnDefinitions, rows };
}

function cellOf<T>(column: PrinterColumn<T>, object: T, now: number): string | number | boolean | null {
  const value = column.value(object);
  if (value === undefined) return null;
  if (column.type !== 'date') return value;
  const text = age(String(value), now);
  return text === '<unknown>' ? '<invalid>' : text;
}

interface Layout<T> {
  readonly columns: readonly PrinterColumn<T>[];
  readonly definitions: readonly ColumnDefinition[];
}

const NAME: PrinterColumn<KubernetesObject> = {
  name: 'Name',
  type: 'string',
  description: 'The name, unique among the objects of a kind, and there inside a namespace if the kind has them.',
  value: (object) => object.metadata.name,
};

const AGE: PrinterColumn<KubernetesObject> = {
  name: 'Age',
  type: 'date',
  description: 'The time since the object was created.',
  value: (object) => object.metadata.creationTimestamp,
};

const layouts = new WeakMap<object, Layout<KubernetesObject>>();

/** The columns of a kind; by default Name and Age. Name is added in front where it is missing. */
function layoutOf<T extends KubernetesObject>(kind: Kind<T>): Layout<T> {
  const known = layouts.get(kind);
  if (known !== undefined) return known as unknown as Layout<T>;
  const own = kind.printerColumns;
  const named = own.some((column) => column.name === NAME.name);
  const columns = own.length === 0 ? [NAME, AGE] : named ? own : [NAME, ...own];
  const definitions = columns.map(({ name, type, description, priority = 0 }) => ({
    name,
    type,
    format: name === NAME.name ? 'name' : '',
    description: description ?? (name === NAME.name ? (NAME.description ?? '') : ''),
    priority,
  }));
  layouts.set(kind, { columns: columns as readonly PrinterColumn<KubernetesObject>[], definitions });
  return { columns, definitions };
}
