import { deepEqual } from '../model/deep-equal.ts';
import type { FieldShape } from '../model/field-shape.ts';
import { isNull } from '../read/decode-kptfile.ts';
import {
  fieldOf,
  isObject,
  renderEntry,
  renderInline,
  renderItem,
  renderMapping,
  shapeOfField,
} from '../yaml/yaml-render.ts';
import type { MappingNode, SequenceNode, YamlNode } from '../yaml/yaml-tree.ts';
import { insertionPlaces } from './insertion-places.ts';
import { listChanges } from './list-changes.ts';
import { insertEntries, removeEntries } from './splice-entries.ts';
import { insertItems, removeItem } from './splice-items.ts';
import { type Slot, spliceScalar } from './splice-scalar.ts';
import type { SpliceSheet } from './splice-sheet.ts';

interface ShapedSlot extends Slot {
  readonly shape: FieldShape | undefined;
}

/**
 * Collects the splices that turn a mapping of the text with the content `before` into one with the content `after`. Only what
 * differs between the two is touched, in block style as in flow style. What it cannot express it refuses with
 * KptfileEditError Unsupported. The caller reads the result again and compares, so that an error here ends in
 * an error too, never in a broken file.
 */
export function spliceMapping(
  sheet: SpliceSheet,
  node: MappingNode,
  before: object,
  after: object,
  slot: ShapedSlot,
): void {
  const removed = new Set(Object.keys(before).filter((key) => !Object.hasOwn(after, key)));
  const kept = [...node.entries.values()].filter(({ key }) => !removed.has(key.text));
  const firstKept = kept[0];
  if (firstKept === undefined) {
    rewrite(sheet, node, after, slot);
    return;
  }
  removeEntries(sheet, node, removed);
  for (const entry of kept) {
    const key = entry.key.text;
    if (!Object.hasOwn(after, key) || deepEqual(fieldOf(before, key), fieldOf(after, key))) continue;
    spliceValue(sheet, entry.value, fieldOf(before, key), fieldOf(after, key), {
      from: sheet.layout.afterColon(entry),
      column: sheet.layout.source.indentOf(entry.key.start),
      flow: node.flow,
      shape: shapeOfField(slot.shape, key),
    });
  }
  const existing = kept.map(({ key }) => key.text);
  const added = Object.keys(after).filter((key) => !node.entries.has(key));
  for (const place of insertionPlaces(existing, added, slot.shape)) {
    insertEntries(sheet, node, place, firstKept, after, slot.shape);
  }
}

function spliceValue(sheet: SpliceSheet, node: YamlNode, before: unknown, after: unknown, slot: ShapedSlot): void {
  if (node.kind === 'mapping' && isObject(after) && node.entries.size > 0) {
    spliceMapping(sheet, node, isObject(before) ? before : {}, after, slot);
  } else if (node.kind === 'sequence' && Array.isArray(after) && node.items.length > 0) {
    spliceList(sheet, node, Array.isArray(before) ? before : [], after, slot);
  } else if ((isObject(after) || Array.isArray(after)) && holdsNothing(node)) {
    fill(sheet, node, after, slot);
  } else if (node.kind === 'scalar' && !isObject(after) && !Array.isArray(after)) {
    spliceScalar(sheet, node, after, slot);
  } else {
    throw sheet.layout.unsupported(slot.from, 'the value has another form');
  }
}

/** Nothing, null, {} or []. */
function holdsNothing(node: YamlNode): boolean {
  if (node.kind === 'scalar') return isNull(node);
  return node.kind === 'mapping' ? node.entries.size === 0 : node.items.length === 0;
}

function spliceList(
  sheet: SpliceSheet,
  node: SequenceNode,
  before: readonly unknown[],
  after: readonly unknown[],
  slot: ShapedSlot,
): void {
  const changes = listChanges(before, after);
  const first = changes.find((change) => change.kind === 'keep' || change.kind === 'modify');
  if (first === undefined || first.kind === 'insert') {
    rewrite(sheet, node, after, slot);
    return;
  }
  const shape = itemShape(slot.shape);
  let previous: number | undefined;
  let inserted: unknown[] = [];
  const flush = (): void => {
    const place = { from: slot.from, after: previous, firstKept: first.from, shape };
    if (inserted.length > 0) insertItems(sheet, node, inserted, place);
    inserted = [];
  };
  for (const change of changes) {
    if (change.kind === 'insert') {
      inserted.push(after[change.to]);
    } else if (change.kind === 'remove') {
      removeItem(sheet, node, change.from, previous === undefined);
    } else {
      flush();
      previous = change.from;
      if (change.kind === 'modify') {
        const item = node.items[change.from] as YamlNode;
        spliceValue(
          sheet,
          item,
          before[change.from],
          after[change.to],
          itemSlot(sheet, node, change.from, item, shape),
        );
      }
    }
  }
  flush();
}

function itemSlot(
  sheet: SpliceSheet,
  node: SequenceNode,
  index: number,
  item: YamlNode,
  shape: FieldShape | undefined,
): ShapedSlot {
  const { layout } = sheet;
  if (node.flow) return { from: layout.startOf(item), column: 0, flow: true, shape };
  const dash = layout.dashesOf(node)[index] ?? node.start;
  return { from: dash + 1, column: layout.source.indentOf(dash), flow: false, shape };
}

/** Writes a collection in the place of nothing, null, {} or []. */
function fill(sheet: SpliceSheet, node: YamlNode, after: object, slot: ShapedSlot): void {
  const { layout, style } = sheet;
  const { source } = layout;
  const start = layout.startOf(node);
  const absent = node.kind === 'scalar' && node.form === 'absent';
  const end = absent ? Math.max(slot.from, node.start) : layout.endOf(node, slot.from);
  if (slot.flow || Object.keys(after).length === 0) {
    const text = renderInline(after, undefined, slot.flow, style);
    if (absent) sheet.insert(end, ` ${text}`);
    else sheet.replace(start, end, text);
    return;
  }
  if (!absent) {
    if (source.text.slice(slot.from, start).trim() !== '') {
      throw layout.unsupported(slot.from, 'a comment is before the value');
    }
    sheet.replace(slot.from, end, '');
  }
  const [, ...lines] = renderEntry('', after, slot.column, style, slot.shape, undefined);
  sheet.insertLines(source.lineEnd(end), lines);
}

/** Writes a new collection, of which nothing stays. */
function rewrite(sheet: SpliceSheet, node: MappingNode | SequenceNode, after: object, slot: ShapedSlot): void {
  const { layout, style } = sheet;
  const { source } = layout;
  const start = layout.startOf(node);
  const end = layout.endOf(node, slot.from);
  if (node.flow) {
    sheet.replace(start, end, renderInline(after, undefined, slot.flow, style));
    return;
  }
  if (Object.keys(after).length === 0) {
    if (source.lineOf(slot.from) === source.lineOf(start)) {
      sheet.replace(start, end, '{}');
    } else {
      sheet.insert(slot.from, ' {}');
      sheet.replace(source.lineEnd(slot.from), end, '');
    }
    return;
  }
  const column = source.indentOf(node.start);
  const lines = Array.isArray(after)
    ? after.flatMap((item) => renderItem(item, column, ' ', style, itemShape(slot.shape), undefined))
    : renderMapping(after, column, style, slot.shape, undefined);
  // To the end of the line: a comment there could become part of a block text.
  sheet.replace(start, source.lineEnd(end), lines.join(style.lineBreak).trimStart());
}

function itemShape(shape: FieldShape | undefined): FieldShape | undefined {
  return shape?.kind === 'list' ? shape.item : undefined;
}
