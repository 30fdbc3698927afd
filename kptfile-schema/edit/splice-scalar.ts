import { indented, renderInline } from '../yaml/yaml-render.ts';
import { literalBlock } from '../yaml/yaml-scalar.ts';
import type { ScalarNode } from '../yaml/yaml-tree.ts';
import type { SpliceSheet } from './splice-sheet.ts';

/** The place of a value: after a colon or dash, in a mapping or list whose own column is `column`. */
export interface Slot {
  /** Offset after the colon or dash. */
  readonly from: number;
  /** Column of the key or dash. */
  readonly column: number;
  readonly flow: boolean;
}

/** Replaces a scalar; quotes stay as they are where that is safe. */
export function spliceScalar(sheet: SpliceSheet, node: ScalarNode, after: unknown, slot: Slot): void {
  if (node.form === 'literal' || node.form === 'folded') {
    spliceBlockScalar(sheet, node, after, slot);
    return;
  }
  const text = renderInline(after, node.form, slot.flow, sheet.style);
  if (node.form === 'absent') sheet.insert(Math.max(slot.from, node.start), ` ${text}`);
  else sheet.replace(sheet.layout.startOf(node), node.end, text);
}

function spliceBlockScalar(sheet: SpliceSheet, node: ScalarNode, after: unknown, slot: Slot): void {
  const { layout, style } = sheet;
  const { source } = layout;
  const { header, headerEnd } = layout.blockScalarParts(node, slot.from);
  const start = node.tagStart === -1 ? header : layout.startOf(node);
  const headerLine = source.lineEnd(headerEnd);
  const end = layout.endOf(node, slot.from);
  const block = style.blockText && typeof after === 'string' ? literalBlock(after) : undefined;
  if (block === undefined || end <= headerLine) {
    sheet.replace(start, headerEnd, renderInline(after, undefined, false, style));
    sheet.replace(headerLine, end, '');
    return;
  }
  const firstLine = source.text
    .slice(node.start, end)
    .split(/\r?\n/)
    .find((line) => line.trim() !== '');
  const column = Math.max(firstLine?.search(/\S/) ?? 0, slot.column + 1);
  sheet.replace(start, headerEnd, block.indicator);
  sheet.replace(
    headerLine,
    end,
    indented(block.lines, column)
      .map((line) => `${style.lineBreak}${line}`)
      .join(''),
  );
}
