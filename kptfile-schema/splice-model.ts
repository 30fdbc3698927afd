import { isNull } from './decode-kptfile.ts';
import { deepEqual } from './deep-equal.ts';
import type { FieldShape } from './field-shape.ts';
import { insertionPlaces } from './insertion-places.ts';
import { listChanges } from './list-changes.ts';
import type { Splice } from './splices.ts';
import type { YamlLayout } from './yaml-layout.ts';
import {
  fieldOf,
  indented,
  isObject,
  renderEntry,
  renderFlowEntry,
  renderInline,
  renderItem,
  renderMapping,
  shapeOfField,
  type Template,
  type YamlStyle,
} from './yaml-render.ts';
import { literalBlock } from './yaml-scalar.ts';
import type { Entry, MappingNode, ScalarNode, SequenceNode, YamlNode } from './yaml-tree.ts';

/** Where a value stands: after a colon or a dash, in a mapping or list whose own column is `column`. */
interface Slot {
  /** Offset after the colon or dash. */
  readonly from: number;
  /** Column of the key, or of the dash. */
  readonly column: number;
  readonly flow: boolean;
  readonly shape: FieldShape | undefined;
}

/**
 * Collects the splices that make a text say another model: only what differs between the two models is touched.
 * Works on block and flow style. What it cannot express it refuses with KptfileEditError Unsupported; the caller
 * reads the result again and compares, so a rare misjudgement here ends in an error too, never in a broken file.
 */
export class ModelSplicer {
  readonly #layout: YamlLayout;
  readonly #style: YamlStyle;
  readonly splices: Splice[] = [];

  constructor(layout: YamlLayout, style: YamlStyle) {
    this.#layout = layout;
    this.#style = style;
  }

  /** Changes the fields of a mapping from `before`, which the node says, to `after`. */
  mapping(node: MappingNode, before: object, after: object, slot: Slot): void {
    const removed = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
    const added = Object.keys(after).filter((key) => !node.entries.has(key));
    const kept = [...node.entries.keys()].filter((key) => !removed.includes(key));
    if (kept.length === 0) {
      this.#rewrite(node, after, slot);
      return;
    }
    this.#removeEntries(node, new Set(removed));
    for (const key of kept) {
      if (!Object.hasOwn(after, key)) continue;
      const target = fieldOf(after, key);
      const current = fieldOf(before, key);
      if (deepEqual(current, target)) continue;
      const entry = node.entries.get(key) as Entry;
      const field: Slot = {
        from: this.#layout.afterColon(entry),
        column: this.#layout.source.indentOf(entry.key.start),
        flow: node.flow,
        shape: shapeOfField(slot.shape, key),
      };
      this.#value(entry.value, current, target, field);
    }
    for (const { after: previous, keys } of insertionPlaces(kept, added, slot.shape)) {
      this.#insertEntries(node, previous, kept, keys, after, slot.shape);
    }
  }

  #value(node: YamlNode, before: unknown, after: unknown, slot: Slot): void {
    if (node.kind === 'mapping' && isObject(after) && node.entries.size > 0) {
      this.mapping(node, isObject(before) ? before : {}, after, slot);
    } else if (node.kind === 'sequence' && Array.isArray(after) && node.items.length > 0) {
      this.#sequence(node, Array.isArray(before) ? before : [], after, slot);
    } else if (isObject(after) || Array.isArray(after)) {
      const empty = isNull(node) || (node.kind === 'mapping' ? node.entries.size === 0 : node.kind === 'sequence');
      if (!empty) throw this.#layout.unsupported(slot.from, 'the value has another form');
      this.#fill(node, after, slot);
    } else if (node.kind === 'scalar') {
      this.#scalar(node, after, slot);
    } else {
      throw this.#layout.unsupported(slot.from, 'the value has another form');
    }
  }

  // --- scalars ---

  #scalar(node: ScalarNode, after: unknown, slot: Slot): void {
    if (node.form === 'literal' || node.form === 'folded') {
      this.#blockScalar(node, after, slot);
      return;
    }
    const text = renderInline(after, node.form, slot.flow, this.#style);
    if (node.form === 'absent')
      this.#splice(Math.max(slot.from, node.start), Math.max(slot.from, node.start), ` ${text}`);
    else this.#splice(this.#layout.startOf(node), node.end, text);
  }

  #blockScalar(node: ScalarNode, after: unknown, slot: Slot): void {
    const layout = this.#layout;
    const { source } = layout;
    const { header, headerEnd } = layout.blockScalarParts(node, slot.from);
    const start = node.tagStart === -1 ? header : layout.startOf(node);
    const headerLine = source.lineEnd(headerEnd);
    const end = layout.endOf(node, slot.from);
    const block = typeof after === 'string' ? literalBlock(after) : undefined;
    if (block === undefined || end <= headerLine) {
      this.#splice(start, headerEnd, renderInline(after, undefined, false, this.#style));
      this.#splice(headerLine, end, '');
      return;
    }
    const { lineBreak } = this.#style;
    const first =
      source.text
        .slice(node.start, end)
        .split(/\r?\n/)
        .find((line) => line.trim() !== '') ?? '';
    const column = Math.max(first.search(/\S/), slot.column + 1);
    const body = indented(block.lines, column).join(lineBreak);
    const closing = end === source.text.length && block.indicator === '|' ? lineBreak : '';
    this.#splice(start, headerEnd, block.indicator);
    this.#splice(headerLine, end, `${lineBreak}${body}${closing}`);
  }

  // --- whole values ---

  /** Puts a collection where nothing, null, {} or [] stands. */
  #fill(node: YamlNode, after: object, slot: Slot): void {
    const { source } = this.#layout;
    const start = this.#layout.startOf(node);
    const absent = node.kind === 'scalar' && node.form === 'absent';
    const end = absent ? slot.from : this.#layout.endOf(node, slot.from);
    const inline = slot.flow || Object.keys(after).length === 0;
    if (inline) {
      const text = renderInline(after, undefined, slot.flow, this.#style);
      if (absent) this.#splice(slot.from, slot.from, ` ${text}`);
      else this.#splice(start, end, text);
      return;
    }
    if (!absent) {
      if (source.text.slice(slot.from, start).trim() !== '') {
        throw this.#layout.unsupported(slot.from, 'a comment stands before the value');
      }
      this.#splice(slot.from, end, '');
    }
    const [, ...lines] = renderEntry('', after, slot.column, this.#style, slot.shape, undefined);
    this.#insertLines(source.lineEnd(end), lines);
  }

  /** Writes a collection anew, of which nothing stays. */
  #rewrite(node: MappingNode | SequenceNode, after: object, slot: Slot): void {
    const { source } = this.#layout;
    const start = this.#layout.startOf(node);
    const end = this.#layout.endOf(node, slot.from);
    if (node.flow) {
      this.#splice(start, end, renderInline(after, undefined, slot.flow, this.#style));
    } else if (Object.keys(after).length === 0) {
      const ownLine = source.lineOf(slot.from) !== source.lineOf(start);
      if (ownLine) {
        this.#splice(slot.from, slot.from, ' {}');
        this.#splice(source.lineEnd(slot.from), end, '');
      } else this.#splice(start, end, '{}');
    } else {
      const column = source.indentOf(node.start);
      const lines = Array.isArray(after)
        ? after.flatMap((item) => renderItem(item, column, ' ', this.#style, itemShape(slot.shape), undefined))
        : renderMapping(after, column, this.#style, slot.shape, undefined);
      this.#splice(start, source.lineEnd(end), lines.join(this.#style.lineBreak).trimStart());
    }
  }

  // --- entries of mappings ---

  #removeEntries(node: MappingNode, removed: ReadonlySet<string>): void {
    if (removed.size === 0) return;
    const layout = this.#layout;
    const entries = [...node.entries.values()];
    const firstKept = entries.findIndex(({ key }) => !removed.has(key.text));
    entries.forEach((entry, index) => {
      if (!removed.has(entry.key.text)) return;
      const end = layout.entryEnd(entry);
      const next = entries[index + 1];
      const previous = entries[index - 1];
      if (node.flow) {
        if (index < firstKept && next !== undefined) this.#splice(entry.key.start, next.key.start, '');
        else if (previous !== undefined) this.#splice(layout.entryEnd(previous), end, '');
      } else if (layout.isFirstOnLine(entry.key.start)) {
        this.#removeLines(entry.key.start, end);
      } else if (next !== undefined) {
        this.#removeCompactFirst(entry, end, next);
      }
    });
  }

  /** Removes the entry that shares its line with a dash: `- type: x`. */
  #removeCompactFirst(entry: Entry, end: number, next: Entry): void {
    const { text } = this.#layout.source;
    if (text.slice(end, next.key.start).trim() === '') {
      this.#splice(entry.key.start, next.key.start, '');
      return;
    }
    // A comment stands between: leave the dash alone on its line.
    let start = entry.key.start;
    while (text[start - 1] === ' ') start--;
    this.#splice(start, end, '');
  }

  #insertEntries(
    node: MappingNode,
    previous: string | undefined,
    kept: readonly string[],
    keys: readonly string[],
    values: object,
    shape: FieldShape | undefined,
  ): void {
    const layout = this.#layout;
    const { source } = layout;
    const before = previous === undefined ? undefined : node.entries.get(previous);
    const next = node.entries.get(kept[0] ?? '') as Entry;
    if (node.flow) {
      const texts = keys.map((key) => renderFlowEntry(key, fieldOf(values, key), this.#style));
      if (before === undefined) {
        this.#splice(next.key.start, next.key.start, texts.map((text) => `${text}, `).join(''));
        return;
      }
      const ownLine = layout.isFirstOnLine(before.key.start);
      const indent = ' '.repeat(source.indentOf(before.key.start));
      const separator = ownLine ? `,${this.#style.lineBreak}${indent}` : ', ';
      const at = layout.entryEnd(before);
      this.#splice(at, at, texts.map((text) => `${separator}${text}`).join(''));
      return;
    }
    const column = source.indentOf(next.key.start);
    const render = (key: string): string[] =>
      renderEntry(key, fieldOf(values, key), column, this.#style, shapeOfField(shape, key), undefined);
    const indent = ' '.repeat(column);
    if (before === undefined) {
      const { lineBreak } = this.#style;
      const text = keys.map((key) => `${render(key).join(lineBreak)}${lineBreak}${indent}`).join('');
      this.#splice(next.key.start, next.key.start, text);
      return;
    }
    const lines = keys.flatMap((key) => {
      const [first, ...rest] = render(key);
      return [`${indent}${first}`, ...rest];
    });
    this.#insertLines(layout.endWithComments(layout.entryEnd(before), column), lines);
  }

  // --- items of lists ---

  #sequence(node: SequenceNode, before: readonly unknown[], after: readonly unknown[], slot: Slot): void {
    const changes = listChanges(before, after);
    if (!changes.some(({ kind }) => kind === 'keep' || kind === 'modify')) {
      this.#rewrite(node, after, slot);
      return;
    }
    let previous: number | undefined;
    let inserted: unknown[] = [];
    const flush = (): void => {
      if (inserted.length > 0) this.#insertItems(node, previous, inserted, changes, slot);
      inserted = [];
    };
    for (const change of changes) {
      if (change.kind === 'insert') {
        inserted.push(after[change.to]);
        continue;
      }
      if (change.kind === 'remove') {
        this.#removeItem(node, change.from, previous === undefined);
        continue;
      }
      flush();
      previous = change.from;
      if (change.kind === 'keep') continue;
      const item = node.items[change.from] as YamlNode;
      const dash = node.flow ? this.#layout.startOf(item) : (this.#layout.dashesOf(node)[change.from] ?? 0) + 1;
      const column = this.#layout.source.indentOf(dash);
      this.#value(item, before[change.from], after[change.to], {
        from: dash,
        column,
        flow: node.flow,
        shape: itemShape(slot.shape),
      });
    }
    flush();
  }

  #removeItem(node: SequenceNode, index: number, leading: boolean): void {
    const layout = this.#layout;
    const item = node.items[index] as YamlNode;
    if (!node.flow) {
      const dash = layout.dashesOf(node)[index] ?? node.start;
      if (!layout.isFirstOnLine(dash)) throw layout.unsupported(dash, 'the list stands inside another list');
      this.#removeLines(dash, layout.itemEnd(item, dash + 1));
      return;
    }
    const start = layout.startOf(item);
    const neighbour = node.items[leading ? index + 1 : index - 1] as YamlNode;
    if (leading) this.#splice(start, layout.startOf(neighbour), '');
    else this.#splice(layout.itemEnd(neighbour, neighbour.start), layout.itemEnd(item, start), '');
  }

  #insertItems(
    node: SequenceNode,
    previous: number | undefined,
    values: readonly unknown[],
    changes: ReturnType<typeof listChanges>,
    slot: Slot,
  ): void {
    const layout = this.#layout;
    const { source } = layout;
    const shape = itemShape(slot.shape);
    if (node.flow) {
      const texts = values.map((value) => renderInline(value, undefined, true, this.#style));
      if (previous === undefined) {
        const next = changes.find(({ kind }) => kind === 'keep' || kind === 'modify');
        const at = layout.startOf(
          node.items[next?.kind === 'keep' || next?.kind === 'modify' ? next.from : 0] as YamlNode,
        );
        this.#splice(at, at, texts.map((text) => `${text}, `).join(''));
      } else {
        const item = node.items[previous] as YamlNode;
        const at = layout.itemEnd(item, item.start);
        this.#splice(at, at, texts.map((text) => `, ${text}`).join(''));
      }
      return;
    }
    const dashes = layout.dashesOf(node);
    const column = source.indentOf(node.start);
    if (!layout.isFirstOnLine(node.start)) throw layout.unsupported(node.start, 'the list stands inside another list');
    const model = node.items.at(-1);
    const template: Template = model?.kind === 'mapping' && !model.flow ? model : undefined;
    const gap = this.#gapOf(template, dashes.at(-1) ?? node.start);
    const lines = values.flatMap((value) => renderItem(value, column, gap, this.#style, shape, template));
    if (previous === undefined) {
      this.#insertLines(source.lineEnd(slot.from), lines);
      return;
    }
    const end = layout.itemEnd(node.items[previous] as YamlNode, (dashes[previous] ?? 0) + 1);
    this.#insertLines(layout.endWithComments(end, column), lines);
  }

  /** The blanks between a dash and its content, as the last item has them. */
  #gapOf(template: Template, dash: number): string {
    if (template === undefined) return ' ';
    const gap = this.#layout.source.text.slice(dash + 1, template.start);
    return /^ +$/.test(gap) ? gap : ' ';
  }

  // --- lines ---

  /** Adds lines behind the line that ends at `lineEnd`; a file without a final line break stays one. */
  #insertLines(lineEnd: number, lines: readonly string[]): void {
    const { lineBreak } = this.#style;
    this.#splice(lineEnd, lineEnd, lines.map((line) => `${lineBreak}${line}`).join(''));
  }

  /** Removes the lines from that of `start` to that of `end`, with the line break before them. */
  #removeLines(start: number, end: number): void {
    const { source } = this.#layout;
    const lineStart = source.lineStart(start);
    // Comments that stay behind would become part of a block text that ends right above.
    const exposed = this.#layout.endsBlockScalar(lineStart);
    const lineEnd = exposed ? this.#layout.endWithComments(end, source.indentOf(start)) : source.lineEnd(end);
    if (source.lineOf(start) === 0) this.#splice(lineStart, source.nextLine(lineEnd), '');
    else this.#splice(source.text.startsWith('\r\n', lineStart - 2) ? lineStart - 2 : lineStart - 1, lineEnd, '');
  }

  #splice(start: number, end: number, text: string): void {
    if (start !== end || text !== '') this.splices.push({ start, end, text });
  }
}

function itemShape(shape: FieldShape | undefined): FieldShape | undefined {
  return shape?.kind === 'list' ? shape.item : undefined;
}
