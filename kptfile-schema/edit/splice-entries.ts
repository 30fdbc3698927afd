import type { FieldShape } from '../model/field-shape.ts';
import { fieldOf, renderEntry, renderFlowEntry, shapeOfField } from '../yaml/yaml-render.ts';
import type { Entry, MappingNode } from '../yaml/yaml-tree.ts';
import type { InsertionPlace } from './insertion-places.ts';
import type { SpliceSheet } from './splice-sheet.ts';

/** Removes entries of a mapping of which at least one stays. */
export function removeEntries(sheet: SpliceSheet, node: MappingNode, removed: ReadonlySet<string>): void {
  const entries = [...node.entries.values()];
  const firstKept = entries.findIndex(({ key }) => !removed.has(key.text));
  const leading = entries.slice(0, firstKept);
  const first = leading[0];
  const kept = entries[firstKept] as Entry;
  if (first !== undefined) removeLeading(sheet, node, leading, first, kept);
  for (let index = firstKept + 1; index < entries.length; index++) {
    const entry = entries[index] as Entry;
    if (!removed.has(entry.key.text)) continue;
    const end = sheet.layout.entryEnd(entry);
    if (node.flow) sheet.replace(sheet.layout.entryEnd(entries[index - 1] as Entry), end, '');
    else sheet.removeLines(entry.key.start, end);
  }
}

function removeLeading(
  sheet: SpliceSheet,
  node: MappingNode,
  leading: readonly Entry[],
  first: Entry,
  kept: Entry,
): void {
  const { layout } = sheet;
  const { text } = layout.source;
  // The first entry may share its line with a dash: `- type: x`. Then the kept one takes its place, unless comments
  // are between them.
  const shared = node.flow || !layout.isFirstOnLine(first.key.start);
  const nextOf = (index: number): Entry => leading[index + 1] ?? kept;
  const clean = leading.every((entry, index) => {
    return text.slice(layout.entryEnd(entry), nextOf(index).key.start).trim() === '';
  });
  if (node.flow || (shared && clean)) {
    sheet.replace(first.key.start, kept.key.start, '');
    return;
  }
  for (const entry of leading) {
    if (!shared || entry !== first) {
      sheet.removeLines(entry.key.start, layout.entryEnd(entry));
      continue;
    }
    let start = first.key.start;
    while (text[start - 1] === ' ') start--;
    sheet.replace(start, layout.entryEnd(first), '');
  }
}

/** Inserts new entries at one place of a mapping; `firstKept` is the first of its entries that stays. */
export function insertEntries(
  sheet: SpliceSheet,
  node: MappingNode,
  place: InsertionPlace,
  firstKept: Entry,
  values: object,
  shape: FieldShape | undefined,
): void {
  const { layout, style } = sheet;
  const { source } = layout;
  const before = place.after === undefined ? undefined : node.entries.get(place.after);
  if (node.flow) {
    insertFlowEntries(sheet, place.keys, before, firstKept, values);
    return;
  }
  const column = source.indentOf(firstKept.key.start);
  const indent = ' '.repeat(column);
  const rendered = place.keys.map((key) =>
    renderEntry(key, fieldOf(values, key), column, style, shapeOfField(shape, key), undefined),
  );
  if (before === undefined) {
    const text = rendered.map((lines) => `${lines.join(style.lineBreak)}${style.lineBreak}${indent}`).join('');
    sheet.insert(firstKept.key.start, text);
    return;
  }
  const lines = rendered.flatMap(([first, ...rest]) => [`${indent}${first}`, ...rest]);
  sheet.insertLines(layout.endWithComments(layout.entryEnd(before), column), lines);
}

function insertFlowEntries(
  sheet: SpliceSheet,
  keys: readonly string[],
  before: Entry | undefined,
  firstKept: Entry,
  values: object,
): void {
  const { layout, style } = sheet;
  const texts = keys.map((key) => renderFlowEntry(key, fieldOf(values, key), style));
  if (before === undefined) {
    sheet.insert(firstKept.key.start, texts.map((text) => `${text}, `).join(''));
    return;
  }
  const ownLine = layout.isFirstOnLine(before.key.start);
  const indent = ' '.repeat(layout.source.indentOf(before.key.start));
  const separator = ownLine ? `,${style.lineBreak}${indent}` : ', ';
  sheet.insert(layout.entryEnd(before), texts.map((text) => `${separator}${text}`).join(''));
}
