import type { FieldShape } from '../model/field-shape.ts';
import { literalBlock, renderString } from './yaml-scalar.ts';
import type { MappingNode, ScalarForm, YamlNode } from './yaml-tree.ts';

/** The style of the file, so that new lines have the style of existing ones. */
export interface YamlStyle {
  /** Spaces by which a nested mapping is indented. */
  readonly step: number;
  /** Spaces by which the dashes of a list are indented below their key. */
  readonly listOffset: number;
  readonly lineBreak: string;
  /** Keys and texts in double quotes, as in JSON. */
  readonly quoted: boolean;
  /** Write texts of several lines as block texts, not in quotes. */
  readonly blockText: boolean;
}

/** The style of a tree: its first nested mapping and first list decide; kpt's own style where there is none. */
export function styleOf(root: MappingNode, lineBreak: string, indentOf: (offset: number) => number): YamlStyle {
  let step: number | undefined;
  let listOffset: number | undefined;
  const visit = (node: YamlNode): void => {
    if (node.kind === 'scalar' || node.flow) return;
    if (node.kind === 'sequence') {
      for (const item of node.items) visit(item);
      return;
    }
    for (const { key, value } of node.entries.values()) {
      if (step !== undefined && listOffset !== undefined) return;
      if (value.kind !== 'scalar' && !value.flow) {
        const offset = indentOf(value.start) - indentOf(key.start);
        if (value.kind === 'sequence') listOffset ??= offset;
        else step ??= offset;
      }
      visit(value);
    }
  };
  visit(root);
  const first = root.entries.values().next().value;
  return {
    step: step ?? 2,
    listOffset: listOffset ?? 2,
    lineBreak,
    quoted: root.flow && first?.key.form === 'double',
    blockText: true,
  };
}

/** A mapping that a new one is modelled on: its order of keys and its quotes. */
export type Template = MappingNode | undefined;

/** The keys of a new mapping in the order to write them. */
export function orderedKeys(value: object, shape: FieldShape | undefined, template: Template): string[] {
  const order = [...(template?.entries.keys() ?? []), ...(shape?.kind === 'object' ? shape.fields.keys() : [])];
  const keys = Object.keys(value);
  const rank = (key: string): number => {
    const index = order.indexOf(key);
    return index === -1 ? order.length : index;
  };
  return keys.sort((left, right) => rank(left) - rank(right));
}

/** The lines of one entry of a block mapping; the first without indentation, the others with. */
export function renderEntry(
  key: string,
  value: unknown,
  indent: number,
  style: YamlStyle,
  shape: FieldShape | undefined,
  template: Template,
): string[] {
  const name = renderString(key, undefined, false);
  if (Array.isArray(value) && value.length > 0) {
    const item = shape?.kind === 'list' ? shape.item : undefined;
    const column = indent + style.listOffset;
    const lines = value.flatMap((element) => renderItem(element, column, ' ', style, item, undefined));
    return [`${name}:`, ...lines];
  }
  if (isObject(value) && Object.keys(value).length > 0) {
    const column = indent + style.step;
    const [first, ...rest] = renderMapping(value, column, style, shape, undefined);
    return [`${name}:`, `${' '.repeat(column)}${first}`, ...rest];
  }
  const block = style.blockText && typeof value === 'string' ? literalBlock(value) : undefined;
  if (block !== undefined) {
    return [`${name}: ${block.indicator}`, ...indented(block.lines, indent + style.step)];
  }
  const sibling = template?.entries.get(key)?.value;
  const form = sibling?.kind === 'scalar' ? sibling.form : undefined;
  return [`${name}: ${renderInline(value, form, false, style)}`];
}

/** The lines of a non-empty mapping at a column; the first without indentation, the others with. */
export function renderMapping(
  value: object,
  column: number,
  style: YamlStyle,
  shape: FieldShape | undefined,
  template: Template,
): string[] {
  const lines: string[] = [];
  for (const key of orderedKeys(value, shape, template)) {
    const entry = renderEntry(key, fieldOf(value, key), column, style, shapeOfField(shape, key), template);
    if (lines.length > 0) entry[0] = `${' '.repeat(column)}${entry[0]}`;
    lines.push(...entry);
  }
  return lines;
}

/** The lines of one item of a block list whose dash is at `column`; `gap` is what follows the dash. */
export function renderItem(
  value: unknown,
  column: number,
  gap: string,
  style: YamlStyle,
  shape: FieldShape | undefined,
  template: Template,
): string[] {
  const lead = `${' '.repeat(column)}-${gap}`;
  if (isObject(value) && Object.keys(value).length > 0) {
    const [first, ...rest] = renderMapping(value, column + 1 + gap.length, style, shape, template);
    return [`${lead}${first}`, ...rest];
  }
  return [`${lead}${renderInline(value, undefined, false, style)}`];
}

/** A value on one line: scalars, and mappings and lists in flow style. */
export function renderInline(value: unknown, form: ScalarForm | undefined, flow: boolean, style: YamlStyle): string {
  if (typeof value === 'string') return renderString(value, style.quoted ? 'double' : form, flow);
  if (Array.isArray(value)) return `[${value.map((item) => renderInline(item, undefined, true, style)).join(', ')}]`;
  if (isObject(value)) {
    return `{${Object.keys(value)
      .map((key) => renderFlowEntry(key, fieldOf(value, key), style))
      .join(', ')}}`;
  }
  return String(value);
}

/** `key: value` for a flow mapping. */
export function renderFlowEntry(key: string, value: unknown, style: YamlStyle): string {
  return `${renderInline(key, undefined, true, style)}: ${renderInline(value, undefined, true, style)}`;
}

/** Lines with indentation in front of those that are not empty. */
export function indented(lines: readonly string[], column: number): string[] {
  return lines.map((line) => (line === '' ? '' : `${' '.repeat(column)}${line}`));
}

export function shapeOfField(shape: FieldShape | undefined, key: string): FieldShape | undefined {
  if (shape?.kind === 'object') return shape.fields.get(key);
  return shape?.kind === 'map' ? shape.value : undefined;
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function fieldOf(value: object, key: string): unknown {
  return Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}
