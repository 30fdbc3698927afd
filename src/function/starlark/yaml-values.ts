import { isAlias, isMap, isNode, isScalar, isSeq, type Scalar } from 'yaml';
import { fail, type Machine, TABLE } from '../../starlark/machine/machine.ts';
import { Float } from '../../starlark/values/float.ts';
import { Dict } from '../../starlark/values/hash-table.ts';
import { toInt } from '../../starlark/values/integer.ts';
import { iterate, lengthOf } from '../../starlark/values/iterate.ts';
import { List } from '../../starlark/values/sequence.ts';
import { isInt, typeName, type Value } from '../../starlark/values/value.ts';
import { plainValue } from '../yaml/node-value.ts';

const MAX_DEPTH = 200;

/** Memory of a node in elements: a node takes more than a value. */
const ELEMENTS_PER_NODE = 8;

/** The value of a YAML node: dicts, lists, and scalars as Kubernetes reads them. An alias becomes a copy. */
export function valueFrom(machine: Machine, node: unknown): Value {
  return read(machine, node, new Map(), 0);
}

/** `anchors` has those that were read so far: an alias comes after its anchor. */
function read(machine: Machine, node: unknown, anchors: Map<string, unknown>, depth: number): Value {
  machine.elements(isMap(node) ? TABLE : 2);
  machine.step(1);
  if (depth > MAX_DEPTH) fail(`YAML that is nested more than ${MAX_DEPTH} levels deep cannot be read`);
  if (isAlias(node)) return read(machine, anchors.get(node.source) ?? null, anchors, depth + 1);
  if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node);
  if (isScalar(node)) return scalarValue(node);
  if (isSeq(node)) return new List(node.items.map((item) => read(machine, item, anchors, depth + 1)));
  if (!isMap(node)) return null;
  const dict = new Dict();
  for (const { key, value } of node.items)
    dict.set(isScalar(key) ? String(key.value ?? 'null') : '', read(machine, value, anchors, depth + 1));
  return dict;
}

function scalarValue(scalar: Scalar): Value {
  const value = plainValue(scalar);
  if (typeof value !== 'number') return value as Value;
  const text = String(scalar.value).replaceAll('_', '');
  if (!Number.isInteger(value) || (/[.eE]/.test(text) && !/^[-+]?0x/i.test(text))) return new Float(value);
  if (Number.isSafeInteger(value)) return value;
  return /^[-+]?[0-9]+$/.test(text) ? toInt(BigInt(text.replace(/^\+/, ''))) : new Float(value);
}

/** Data of which nodes can be made, in the order of the dicts or, on request, of the keys. */
export type Plain = null | boolean | number | bigint | string | readonly Plain[] | ReadonlyMap<string, Plain>;

/** The data of a value; fails for what YAML has no form for. `where` names it in messages. */
export function plainFrom(machine: Machine, value: Value, where: string, sorted = false, depth = 0): Plain {
  machine.step(1);
  machine.elements(ELEMENTS_PER_NODE);
  if (depth > MAX_DEPTH)
    fail(`${where.slice(0, 100)}… contains itself, or is nested more than ${MAX_DEPTH} levels deep`);
  if (value === null || typeof value === 'boolean' || isInt(value)) return value;
  if (typeof value === 'string') {
    machine.text(value.length);
    return value;
  }
  if (value instanceof Float)
    return Number.isFinite(value.value) ? value.value : fail(`${where} is a number that cannot be written`);
  if (value instanceof Dict) {
    const entries = value.entries().map(([key, inner]): [string, Plain] => {
      if (typeof key !== 'string')
        return fail(`${where} has a field whose name is of type ${typeName(key)}, not string`);
      return [key, plainFrom(machine, inner, `${where}.${key.slice(0, 100)}`, sorted, depth + 1)];
    });
    if (sorted) entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return new Map(entries);
  }
  if (lengthOf(value) === undefined) return fail(`${where} is of type ${typeName(value)}, which cannot be written`);
  return iterate(machine, value).map((item, at) => plainFrom(machine, item, `${where}[${at}]`, sorted, depth + 1));
}
