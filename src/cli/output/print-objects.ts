import { age } from '../../foundation/time/age.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { PrinterColumn } from '../../resource/schema/kind-schema.ts';
import { printable } from './printable.ts';
import { type OutputFormat, toJson, toYaml } from './structured.ts';
import { table } from './table.ts';
import type { Terminal } from './terminal.ts';

export interface PrintOptions {
  readonly output: OutputFormat;
  readonly headers: boolean;
  /** For ages, milliseconds since the epoch. */
  readonly now: number;
  /** Begin each row with the namespace, as kubectl does with -A. */
  readonly showNamespace?: boolean;
  /** A column of wide tables that a narrow one has too. */
  readonly alsoColumn?: string | undefined;
  /** Print a single object as itself, not as a List. */
  readonly single?: boolean;
}

/** Prints objects the way kubectl does: as the kind's table, as documents, or as `kind/name`. */
export function printObjects<T extends KubernetesObject>(
  terminal: Terminal,
  kind: Kind<T>,
  objects: readonly T[],
  options: PrintOptions,
): void {
  const { output } = options;
  if (output === 'name') {
    const prefix = kind.group === '' ? kind.singular : `${kind.singular}.${kind.group}`;
    for (const object of objects) terminal.line(`${prefix}/${printable(object.metadata.name)}`);
    return;
  }
  if (output === 'json' || output === 'yaml') {
    const [first] = objects;
    const value = options.single === true && first !== undefined ? first : listOf(objects);
    terminal.out.write(output === 'json' ? toJson(value) : toYaml(value));
    return;
  }
  if (objects.length === 0) {
    terminal.note('No resources found');
    return;
  }
  const { alsoColumn } = options;
  const columns = kind.printerColumns.filter(
    ({ name, priority = 0 }) => output === 'wide' || priority === 0 || name === alsoColumn,
  );
  const isShown = options.showNamespace === true;
  const rows = objects.map((object) => [
    ...(isShown ? [object.metadata.namespace ?? ''] : []),
    ...columns.map((column) => terminal.copyable(cell(column, object, options.now), object.metadata.namespace)),
  ]);
  const names = [...(isShown ? ['Namespace'] : []), ...columns.map((column) => column.name)];
  terminal.out.write(table(names, rows, { headers: options.headers }));
}

function listOf(items: readonly KubernetesObject[]) {
  return { apiVersion: 'v1', kind: 'List', items };
}

function cell<T>(column: PrinterColumn<T>, object: T, now: number): string {
  const value = column.value(object);
  if (value === undefined) return '';
  return column.type === 'date' ? age(String(value), now) : String(value);
}
