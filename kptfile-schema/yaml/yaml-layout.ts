import { KptfileEditError } from '../model/kptfile-edit.ts';
import type { SourceText } from './source-text.ts';
import type { Entry, MappingNode, ScalarNode, SequenceNode, YamlNode } from './yaml-tree.ts';

/** The parts of a block scalar: `|-  # comment`, then the body. */
export interface BlockScalarParts {
  /** Offset of the `|` or `>`. */
  readonly header: number;
  /** Offset after the indicator characters. */
  readonly headerEnd: number;
  readonly keep: boolean;
  readonly strip: boolean;
}

/**
 * Finds what the parser does not report: where a value ends, where colons, dashes and block headers are.
 * Only white space, comments and indicators are between two tokens of a tree, so it skips those.
 */
export class YamlLayout {
  readonly source: SourceText;
  readonly #root: YamlNode;
  readonly #dashes = new Map<SequenceNode, number[]>();
  #blockScalars: Map<number, number> | undefined;

  constructor(source: SourceText, root: YamlNode) {
    this.source = source;
    this.#root = root;
  }

  /** Offset of the next character at or after `offset` that is neither white space nor part of a comment. */
  skip(offset: number): number {
    const { text } = this.source;
    let index = offset;
    while (index < text.length) {
      const char = text[index];
      if (char === '#' && (index === 0 || /[\s\uFEFF]/.test(text[index - 1] ?? ''))) index = this.source.lineEnd(index);
      else if (char === ' ' || char === '\t' || char === '\n' || char === '\r' || char === '\uFEFF') index++;
      else break;
    }
    return index;
  }

  /** Offset after the colon of an entry. Throws for keys in the form `? key` and keys without a colon. */
  afterColon(entry: Entry): number {
    const colon = this.#colon(entry);
    if (colon === undefined) throw this.unsupported(entry.key.start, 'the field is written with an explicit key');
    return colon + 1;
  }

  #colon(entry: Entry): number | undefined {
    const next = this.skip(entry.key.end);
    return this.source.text[next] === ':' ? next : undefined;
  }

  startOf(node: YamlNode): number {
    return node.tagStart === -1 ? node.start : Math.min(node.tagStart, node.start);
  }

  /** Offset after the last character of the entry, without a comment after it. */
  entryEnd(entry: Entry): number {
    if (entry.value.kind !== 'scalar' || entry.value.form !== 'absent') {
      return this.endOf(entry.value, this.#colon(entry) ?? entry.key.end);
    }
    const colon = this.#colon(entry);
    return Math.max(entry.value.start, colon === undefined ? entry.key.end : colon + 1);
  }

  /** Offset after the last character of the item whose dash (or whose value, in a flow list) is at `from`. */
  itemEnd(item: YamlNode, from: number): number {
    if (item.kind === 'scalar' && item.form === 'absent') return Math.max(item.start, from);
    return this.endOf(item, from);
  }

  /** Offset after the last character of a value. `from` is a place before it and after the token before it. */
  endOf(node: YamlNode, from: number): number {
    if (node.kind === 'scalar') {
      return node.form === 'literal' || node.form === 'folded' ? this.#blockScalarEnd(node, from) : node.end;
    }
    if (node.flow) return this.#flowEnd(node);
    if (node.kind === 'sequence') {
      const dashes = this.dashesOf(node);
      const last = node.items.length - 1;
      return this.itemEnd(node.items[last] as YamlNode, (dashes[last] ?? node.start) + 1);
    }
    return this.entryEnd([...node.entries.values()].at(-1) as Entry);
  }

  /** Offsets of the dashes of a block sequence. */
  dashesOf(node: SequenceNode): readonly number[] {
    const known = this.#dashes.get(node);
    if (known !== undefined) return known;
    const dashes: number[] = [];
    let next = node.start;
    for (const item of node.items) {
      const dash = this.skip(next);
      dashes.push(dash);
      next = this.itemEnd(item, dash + 1);
    }
    this.#dashes.set(node, dashes);
    return dashes;
  }

  blockScalarParts(node: ScalarNode, from: number): BlockScalarParts {
    const { text } = this.source;
    let header = this.skip(from);
    if (text[header] === ':' || text[header] === '-') header = this.skip(header + 1);
    while (text[header] === '!') {
      while (header < text.length && !/\s/.test(text[header] ?? '')) header++;
      header = this.skip(header);
    }
    const indicator = /^[|>][-+0-9]*/.exec(text.slice(header, header + 4));
    if (indicator === null) throw this.unsupported(node.start, 'the block text has an unusual header');
    return {
      header,
      headerEnd: header + indicator[0].length,
      keep: indicator[0].includes('+'),
      strip: indicator[0].includes('-'),
    };
  }

  /** True if only spaces are between the beginning of the line and `offset`. */
  isFirstOnLine(offset: number): boolean {
    return /^ *$/.test(this.source.text.slice(this.source.lineStart(offset), offset));
  }

  /** End of the line holding `offset`, or of the last comment line below it that is indented more than `column`. */
  endWithComments(offset: number, column: number): number {
    const { source } = this;
    let end = source.lineEnd(offset);
    let next = source.nextLine(end);
    while (next > end) {
      const lineEnd = source.lineEnd(next);
      const line = source.text.slice(next, lineEnd);
      const indent = line.search(/\S/);
      if (indent !== -1 && (line[indent] !== '#' || indent <= column)) break;
      if (indent !== -1) end = lineEnd;
      const following = source.nextLine(lineEnd);
      if (following === next) break;
      next = following;
    }
    return end;
  }

  /** The indentation of the block scalar whose body, with the blank lines below it, ends at `offset`, if one does. */
  blockScalarIndentAt(offset: number): number | undefined {
    if (this.#blockScalars === undefined) {
      const found = new Map<number, number>();
      const visit = (node: YamlNode): void => {
        if (node.kind === 'sequence') for (const item of node.items) visit(item);
        else if (node.kind === 'mapping') for (const { value } of node.entries.values()) visit(value);
        else if (node.form === 'literal' || node.form === 'folded') found.set(node.end, this.#bodyIndent(node));
      };
      visit(this.#root);
      this.#blockScalars = found;
    }
    return this.#blockScalars.get(offset);
  }

  #bodyIndent(node: ScalarNode): number {
    const firstText = this.source.text.slice(node.start, node.end).search(/[^\s]/);
    return firstText === -1 ? 0 : this.source.indentOf(node.start + firstText);
  }

  /** Whether the text ends with the body of a block scalar that keeps a line break at its end. */
  endsInBlockScalar(): boolean {
    let node = this.#root;
    let from = node.start;
    while (node.kind !== 'scalar') {
      if (node.flow) return false;
      if (node.kind === 'sequence') {
        from = (this.dashesOf(node).at(-1) ?? node.start) + 1;
        node = node.items.at(-1) as YamlNode;
      } else {
        const last = [...node.entries.values()].at(-1) as Entry;
        from = this.#colon(last) ?? last.key.end;
        node = last.value;
      }
    }
    if (node.form !== 'literal' && node.form !== 'folded') return false;
    return !this.blockScalarParts(node, from).strip && this.endOf(node, from) === this.source.text.length;
  }

  unsupported(offset: number, what: string): KptfileEditError {
    const { line, column } = this.source.position(offset);
    return new KptfileEditError('Unsupported', `Cannot edit line ${line}: ${what}. Change it by hand.`, {
      line,
      column,
    });
  }

  #blockScalarEnd(node: ScalarNode, from: number): number {
    const { text } = this.source;
    const { keep, headerEnd } = this.blockScalarParts(node, from);
    let end = node.end;
    if (keep) {
      if (end > node.start && text[end - 1] === '\n') end--;
      if (end > node.start && text[end - 1] === '\r') end--;
    } else {
      while (end > node.start && /\s/.test(text[end - 1] ?? '')) end--;
      if (end > node.start) end = this.source.lineEnd(end);
    }
    return end > node.start ? end : this.source.lineEnd(headerEnd);
  }

  #flowEnd(node: MappingNode | SequenceNode): number {
    const { text } = this.source;
    const open = text[node.start];
    let index = node.start + 1;
    if (node.kind === 'sequence') {
      const last = node.items.at(-1);
      if (last !== undefined) index = this.itemEnd(last, last.start);
    } else {
      const last = [...node.entries.values()].at(-1);
      if (last !== undefined) index = this.entryEnd(last);
      // A pair inside a flow list, [a: b], has no braces of its own.
      if (open !== '{') return index;
    }
    for (index = this.skip(index); index < text.length; index = this.skip(index + 1)) {
      if (text[index] === '}' || text[index] === ']') return index + 1;
    }
    return text.length;
  }
}
