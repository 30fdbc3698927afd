import type { FieldShape } from '../model/field-shape.ts';
import { renderInline, renderItem } from '../yaml/yaml-render.ts';
import type { SequenceNode, YamlNode } from '../yaml/yaml-tree.ts';
import type { SpliceSheet } from './splice-sheet.ts';

/** Removes one item of a list of which at least one stays; `leading` is true if none before it stays. */
export function removeItem(sheet: SpliceSheet, node: SequenceNode, index: number, leading: boolean): void {
  const { layout } = sheet;
  const item = node.items[index] as YamlNode;
  if (!node.flow) {
    const dash = layout.dashesOf(node)[index] ?? node.start;
    if (!layout.isFirstOnLine(dash)) throw layout.unsupported(dash, 'the list is inside another list');
    sheet.removeLines(dash, layout.itemEnd(item, dash + 1));
    return;
  }
  const start = layout.startOf(item);
  const neighbour = node.items[leading ? index + 1 : index - 1] as YamlNode;
  if (leading) sheet.replace(start, layout.startOf(neighbour), '');
  else sheet.replace(layout.itemEnd(neighbour, neighbour.start), layout.itemEnd(item, start), '');
}

export interface ItemPlace {
  /** Offset after the colon that the list belongs to. */
  readonly from: number;
  /** Index of the item behind which to insert; without it, insert in front of all. */
  readonly after: number | undefined;
  /** Index of the first item that stays. */
  readonly firstKept: number;
  readonly shape: FieldShape | undefined;
}

/** Inserts new items at one place of a list. */
export function insertItems(
  sheet: SpliceSheet,
  node: SequenceNode,
  values: readonly unknown[],
  place: ItemPlace,
): void {
  const { layout, style } = sheet;
  const { source } = layout;
  const before = place.after === undefined ? undefined : node.items[place.after];
  if (node.flow) {
    const texts = values.map((value) => renderInline(value, undefined, true, style));
    if (before === undefined) {
      sheet.insert(layout.startOf(node.items[place.firstKept] as YamlNode), texts.map((text) => `${text}, `).join(''));
    } else {
      sheet.insert(layout.itemEnd(before, before.start), texts.map((text) => `, ${text}`).join(''));
    }
    return;
  }
  if (!layout.isFirstOnLine(node.start)) throw layout.unsupported(node.start, 'the list is inside another list');
  const dashes = layout.dashesOf(node);
  const column = source.indentOf(node.start);
  const model = node.items.at(-1);
  const template = model?.kind === 'mapping' && !model.flow ? model : undefined;
  const lead = template === undefined ? '' : source.text.slice((dashes.at(-1) ?? 0) + 1, template.start);
  const gap = /^ +$/.test(lead) ? lead : ' ';
  const lines = values.flatMap((value) => renderItem(value, column, gap, style, place.shape, template));
  if (before === undefined || place.after === undefined) {
    sheet.insertLines(source.lineEnd(place.from), lines);
    return;
  }
  const end = layout.itemEnd(before, (dashes[place.after] ?? 0) + 1);
  sheet.insertLines(layout.endWithComments(end, column), lines);
}
