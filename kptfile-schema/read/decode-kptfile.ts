import { type FieldShape, kptfileShape } from '../model/field-shape.ts';
import type { Kptfile } from '../model/kptfile-schema.ts';
import type { SourceText } from '../yaml/source-text.ts';
import { failAt, type MappingNode, type ScalarNode, type YamlNode } from '../yaml/yaml-tree.ts';

/**
 * The model of a Kptfile tree. Scalars in text fields keep their text in any form
 * (`port: 80` is "80", as kpt reads it), a null field counts as absent, unknown fields are kept.
 * Throws KptfileReadFailure with code Shape.
 */
export function decodeKptfile(root: MappingNode, source: SourceText): Kptfile {
  // The shape comes from kptfileSchema itself, so what is decoded along it has that type.
  return decode(root, kptfileShape, {
    source,
    within: undefined,
    step: '',
    isKey: false,
    offset: root.start,
  }) as Kptfile;
}

/** A place in the tree; its path is composed only for an error. */
interface Place {
  readonly source: SourceText;
  /** Undefined for the whole text. */
  readonly within: Place | undefined;
  /** A field, a key or the number of an item. */
  readonly step: string | number;
  readonly isKey: boolean;
  /** Where a wrong form is reported: the field name, or the item. */
  readonly offset: number;
}

function decode(node: YamlNode, shape: FieldShape, place: Place): unknown {
  switch (shape.kind) {
    case 'any':
      return decodeAny(node);
    case 'string':
      return node.kind === 'scalar' ? (isNull(node) ? undefined : node.text) : wrongForm(node, 'text', place);
    case 'integer':
      return decodeInteger(node, place);
    case 'list':
      if (node.kind === 'sequence') {
        return node.items.map((item, step) => {
          const { start: offset } = item;
          const value = decode(item, shape.item, { source: place.source, within: place, step, isKey: false, offset });
          return value === undefined ? emptyOf(shape.item) : value;
        });
      }
      return isNull(node) ? undefined : wrongForm(node, 'a list', place);
    case 'map':
      return node.kind === 'mapping'
        ? decodeEntries(node, () => shape.value, place, true)
        : isNull(node)
          ? undefined
          : wrongForm(node, 'a mapping of names to texts', place);
    case 'object':
      return node.kind === 'mapping'
        ? decodeEntries(node, (name) => shape.fields.get(name), place, false)
        : isNull(node)
          ? undefined
          : wrongForm(node, 'a mapping', place);
  }
}

function decodeEntries(
  node: MappingNode,
  shapeOf: (name: string) => FieldShape | undefined,
  place: Place,
  isKey: boolean,
): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, { key, value }] of node.entries) {
    const shape = shapeOf(name);
    if (shape === undefined) {
      result[name] = decodeAny(value);
      continue;
    }
    const { start: offset } = key;
    const decoded = decode(value, shape, { source: place.source, within: place, step: name, isKey, offset });
    // Go's decoder keeps the key of a null map value with the zero value; a null field it leaves unset.
    if (decoded !== undefined) result[name] = decoded;
    else if (isKey) result[name] = emptyOf(shape);
  }
  return result;
}

/** Go's zero value, which a null list item or map value becomes. */
function emptyOf(shape: FieldShape): unknown {
  switch (shape.kind) {
    case 'string':
      return '';
    case 'integer':
      return 0;
    case 'list':
      return [];
    case 'any':
      return null;
    case 'map':
    case 'object':
      return {};
  }
}

function decodeInteger(node: YamlNode, place: Place): number | undefined {
  if (isNull(node)) return undefined;
  if (node.kind === 'scalar' && node.form === 'plain' && /^[-+]?\d{1,15}$/.test(node.text)) return Number(node.text);
  return wrongForm(node, 'an integer', place);
}

/** A field that the schema does not know: plain scalars as YAML's core schema resolves them. */
function decodeAny(node: YamlNode): unknown {
  if (node.kind === 'sequence') return node.items.map(decodeAny);
  if (node.kind === 'mapping') {
    const result: Record<string, unknown> = {};
    for (const [name, entry] of node.entries) result[name] = decodeAny(entry.value);
    return result;
  }
  if (isNull(node)) return null;
  if (node.form !== 'plain' || node.tag !== undefined) return node.text;
  if (/^(?:true|True|TRUE)$/.test(node.text)) return true;
  if (/^(?:false|False|FALSE)$/.test(node.text)) return false;
  // A number whose text JavaScript would print otherwise (1.10, 0x1F, 20 digits) stays text, so that nothing is lost.
  const number = Number(node.text);
  return /^-?\d/.test(node.text) && Number.isFinite(number) && String(number) === node.text ? number : node.text;
}

/** True for an absent value and for the plain scalars that YAML reads as null. */
export function isNull(node: YamlNode): boolean {
  if (node.kind !== 'scalar') return false;
  if (node.tag !== undefined) return node.tag === '!!null';
  if (node.form === 'absent') return true;
  return node.form === 'plain' && /^(?:~|null|Null|NULL)$/.test(node.text);
}

function wrongForm(node: YamlNode, expected: string, place: Place): never {
  const found =
    node.kind === 'mapping' ? 'a mapping' : node.kind === 'sequence' ? 'a list' : `the text ${quoted(node)}`;
  const path = pathOf(place);
  return failAt(place.source, place.offset, 'Shape', `${path} must be ${expected}, but is ${found}.`, path);
}

/** As in `pipeline.mutators[0].configMap["a.b"]`. */
function pathOf({ within, step, isKey }: Place): string {
  if (within === undefined) return '';
  const path = pathOf(within);
  if (typeof step === 'number' || isKey) return `${path}[${JSON.stringify(step)}]`;
  return path === '' ? step : `${path}.${step}`;
}

function quoted(node: ScalarNode): string {
  return JSON.stringify(node.text.length > 40 ? `${node.text.slice(0, 40)}…` : node.text);
}
