import {
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type Scalar,
  type ToStringOptions,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { alignItems } from './align-items.ts';
import { longestRise } from './longest-rise.ts';
import { printItem, printPair, printScalar } from './print-node.ts';
import {
  isSame,
  type SavedMap,
  type SavedNode,
  type SavedPair,
  type SavedScalar,
  type SavedSeq,
  sameType,
} from './saved-node.ts';
import { TextEdits } from './text-edits.ts';

/**
 * The text of a document with its changes since it was saved: only the lines of changes differ. Undefined where changes cannot
 * be expressed in lines. The caller must check the result by reading it again.
 */
export function spliceDocument(
  text: string,
  saved: SavedMap,
  root: YAMLMap,
  style: () => ToStringOptions,
): string | undefined {
  const splice = new Splice(text, style);
  return isMap(root) && splice.map(saved, root) ? splice.edits.apply(text) : undefined;
}

/** Every method returns true if it could express the change in lines. */
class Splice {
  readonly edits = new TextEdits();
  readonly #text: string;
  readonly #style: () => ToStringOptions;
  readonly #eol: string;

  constructor(text: string, style: () => ToStringOptions) {
    this.#text = text;
    this.#style = style;
    this.#eol = text.includes('\r\n') ? '\r\n' : '\n';
  }

  map(saved: SavedMap, map: YAMLMap): boolean {
    if (saved.flow || map.flow === true || saved.items.length === 0 || map.items.length === 0)
      return isSame(saved, map);
    if (!sameComments(saved, map)) return false;
    const column = this.#columnOf(saved.items[0]?.key.start ?? 0);
    if (column === undefined) return false;
    const pairs = new Map<string, Pair<Scalar, Node | null>>();
    for (const pair of map.items as Pair<Scalar, Node | null>[]) pairs.set(String(pair.key?.value ?? 'null'), pair);
    if (pairs.size < map.items.length) return false;
    const places = new Map(saved.items.map(({ name }, at) => [name, at]));
    // An entry that moved is removed and added.
    const staying = longestRise([...pairs.keys()].flatMap((name) => places.get(name) ?? []));
    const [first] = saved.items.filter((_, at) => staying.has(at));
    if (first === undefined) return false;

    let behind: number | undefined;
    for (const [name, pair] of pairs) {
      const at = places.get(name);
      const old = at === undefined || !staying.has(at) ? undefined : saved.items[at];
      if (old === undefined) {
        if (!isScalar(pair.key)) return false;
        const lines = printPair(pair.key, pair.value, this.#style(), { comments: true });
        if (behind === undefined) this.#insertBefore(first.key.start, lines, column);
        else this.#insertLines(behind, lines, column);
        continue;
      }
      if (!this.#pair(old, pair, column)) return false;
      behind = this.#lineEnd(endOfPair(old));
    }
    // The first remaining entry takes the place behind the dash.
    const lead = this.#startsLine(saved.items[0]?.key.start ?? 0) ? 0 : saved.items.indexOf(first);
    if (lead > 0 && (first.key.commentBefore ?? '') !== '') return false;
    if (lead > 0) this.edits.add(saved.items[0]?.key.start ?? 0, first.key.start, '');
    for (const [at, old] of saved.items.entries()) {
      if (at < lead || staying.has(at)) continue;
      if (!this.#remove(old.key.start, endOfPair(old), column, at > 0)) return false;
    }
    return true;
  }

  #pair(saved: SavedPair, { key, value }: Pair<Scalar, Node | null>, column: number): boolean {
    if (!isSame(saved.key, key)) return false;
    if (saved.value === undefined || value === null) return saved.value === undefined && value === null;
    const before = this.edits.length;
    if (this.#keyComment(saved.key, saved.value, value)) return true;
    this.edits.truncate(before);
    if (saved.value.kind === 'scalar' && (saved.value.commentBefore ?? '') !== '') return false;
    return this.#replace(saved.key.start, endOfPair(saved), printPair(key, value, this.#style()), column);
  }

  /** A value, and the comment of a collection, which is behind its key as kpt's setters are. */
  #keyComment(key: SavedScalar, saved: SavedNode, node: Node): boolean {
    const comment = node.commentBefore ?? '';
    if (saved.kind === 'scalar' || saved.flow || comment === (saved.commentBefore ?? ''))
      return this.#value(saved, node);
    const rest = /^[ \t]*:([ \t]*(?:#([^\r\n]*))?)\r?$/m.exec(this.#text.slice(key.end, this.#lineEnd(key.end)));
    if (rest === null || comment.includes('\n') || (rest[2] ?? '') !== (saved.commentBefore ?? '')) return false;
    const from = key.end + rest[0].indexOf(':') + 1;
    this.edits.add(from, from + (rest[1] ?? '').length, comment === '' ? '' : ` #${comment}`);
    return this.#value({ ...saved, commentBefore: comment }, node);
  }

  /** A change inside of a value, without touching what leads to it. */
  #value(saved: SavedNode, node: Node): boolean {
    if (saved.kind === 'scalar') return isScalar(node) && this.#scalar(saved, node, false);
    if (saved.flow) return this.#flow(saved, node);
    if (saved.kind === 'map') return isMap(node) && this.map(saved, node);
    return isSeq(node) && this.#seq(saved, node);
  }

  #seq(saved: SavedSeq, seq: YAMLSeq): boolean {
    if (seq.flow === true || saved.items.length === 0 || seq.items.length === 0) return isSame(saved, seq);
    if (!sameComments(saved, seq)) return false;
    const dashes = new Map<SavedNode, number>();
    for (const item of saved.items) {
      const dash = this.#dashOf(item);
      if (dash === undefined) return false;
      dashes.set(item, dash);
    }
    const first = dashes.get(saved.items[0] as SavedNode) ?? 0;
    const column = this.#columnOf(first);
    if (column === undefined) return false;
    let behind: number | undefined;
    let left: SavedNode | undefined;
    for (const { saved: old, item } of alignItems(saved.items, seq.items as Node[])) {
      if (old === undefined) {
        const lines = printItem(item as Node, this.#style());
        if (behind === undefined) this.#insertBefore(first, lines, column);
        else this.#insertLines(behind, lines, column);
        continue;
      }
      const dash = dashes.get(old) ?? 0;
      if (item === undefined) {
        // The first dash of a list in a list shares its line.
        if (!this.#remove(dash, endOf(old), column, left !== undefined)) return false;
      } else if (!this.#item(old, item, dash, column)) return false;
      left = old;
      behind = this.#lineEnd(endOf(old));
    }
    return true;
  }

  #item(saved: SavedNode, item: Node, dash: number, column: number): boolean {
    const before = this.edits.length;
    if (this.#value(saved, item)) return true;
    this.edits.truncate(before);
    if ((saved.commentBefore ?? '') !== '' || (item.commentBefore ?? '') !== '') return false;
    return this.#replace(dash, endOf(saved), printItem(item, this.#style()), column);
  }

  /** Texts inside of `{}` or `[]`. */
  #flow(saved: SavedNode, node: Node): boolean {
    if (isSame(saved, node)) return true;
    if (saved.kind === 'scalar') return isScalar(node) && this.#scalar(saved, node, true);
    if (!sameComments(saved, node)) return false;
    if (saved.kind === 'seq') {
      if (!isSeq(node) || node.items.length !== saved.items.length) return false;
      return saved.items.every((old, at) => this.#flow(old, node.items[at] as Node));
    }
    if (!isMap(node) || node.items.length !== saved.items.length) return false;
    return saved.items.every((old, at) => {
      const { key, value } = node.items[at] as Pair<Node, Node | null>;
      if (!isSame(old.key, key)) return false;
      if (old.value === undefined || value === null) return old.value === undefined && value === null;
      return this.#flow(old.value, value);
    });
  }

  #scalar(saved: SavedScalar, node: Scalar, inFlow: boolean): boolean {
    if (isSame(saved, node)) return true;
    if ((saved.commentBefore ?? '') !== (node.commentBefore ?? '') || saved.type?.startsWith('BLOCK') === true)
      return false;
    const { start, end } = saved;
    const sameValue = saved.value === node.value && sameType(saved.type, node.type);
    const printed = sameValue ? this.#text.slice(start, end) : printScalar(node, inFlow);
    if (printed === undefined) return false;
    let added = printed;
    // An empty place has no blanks around it.
    if (start === end && /[^\s{[]/.test(this.#text[start - 1] ?? '')) added = ` ${added}`;
    if (start === end && this.#text[end] === '#') added += ' ';
    if ((saved.comment ?? '') === (node.comment ?? '')) {
      this.edits.add(start, end, added);
      return true;
    }
    if (inFlow || (node.comment ?? '').includes('\n') || (saved.comment ?? '').includes('\n')) return false;
    const rest = /^[ \t]*(?:#[^\r\n]*)?/.exec(this.#text.slice(end, this.#lineEnd(end)))?.[0] ?? '';
    if ((saved.comment ?? '') !== '' && !rest.trimEnd().endsWith((saved.comment ?? '').trimEnd())) return false;
    if (start === end) added = added.trimEnd();
    this.edits.add(start, end + rest.length, node.comment ? `${added} #${node.comment}` : added);
    return true;
  }

  /** Removes whole lines, with the comment lines that belong to them. */
  #remove(start: number, end: number, column: number, hasOneBefore: boolean): boolean {
    if (!this.#startsLine(start)) return false;
    const from = hasOneBefore ? this.#commentsAbove(this.#lineStart(start), column) : this.#lineStart(start);
    this.edits.add(from, this.#lineEnd(end), '');
    return true;
  }

  #replace(start: number, end: number, lines: readonly string[], column: number): boolean {
    const to = this.#lineEnd(end);
    const [first = '', ...rest] = lines;
    const isLast = !this.#text.endsWith('\n', to);
    this.edits.add(start, to, [first, ...indented(rest, column)].join(this.#eol) + (isLast ? '' : this.#eol));
    return true;
  }

  #insertLines(at: number, lines: readonly string[], column: number): void {
    const text = indented(lines, column).join(this.#eol);
    const isOpen = at > 0 && this.#text[at - 1] !== '\n';
    this.edits.add(at, at, isOpen ? this.#eol + text : text + this.#eol);
  }

  #insertBefore(start: number, lines: readonly string[], column: number): void {
    const [first = '', ...rest] = lines;
    this.edits.add(start, start, [first, ...indented(rest, column), ' '.repeat(column)].join(this.#eol));
  }

  /** Column of an entry in a block; undefined if more than blanks and dashes precede it. */
  #columnOf(start: number): number | undefined {
    const lead = this.#text.slice(this.#lineStart(start), start);
    return /^\ufeff?[ -]*$/.test(lead) && !lead.startsWith('---') ? lead.replace('\ufeff', '').length : undefined;
  }

  #dashOf({ start }: SavedNode): number | undefined {
    let at = start - 1;
    while (this.#text[at] === ' ') at--;
    return this.#text[at] === '-' ? at : undefined;
  }

  #startsLine(start: number): boolean {
    return /^\ufeff? *$/.test(this.#text.slice(this.#lineStart(start), start));
  }

  #commentsAbove(lineStart: number, column: number): number {
    let at = lineStart;
    while (at > 0) {
      const above = this.#lineStart(at - 1);
      const line = this.#text.slice(above, at);
      if (line.search(/\S/) !== column || line[column] !== '#') break;
      at = above;
    }
    return at;
  }

  #lineStart(offset: number): number {
    return offset <= 0 ? 0 : this.#text.lastIndexOf('\n', offset - 1) + 1;
  }

  /** The offset after the line break of the line before; or the end of the text. */
  #lineEnd(end: number): number {
    if (this.#text[end - 1] === '\n') return end;
    const found = this.#text.indexOf('\n', end);
    return found === -1 ? this.#text.length : found + 1;
  }
}

function indented(lines: readonly string[], column: number): string[] {
  const margin = ' '.repeat(column);
  return lines.map((line) => (line === '' ? line : margin + line));
}

function sameComments(saved: SavedNode, node: Node): boolean {
  return (saved.comment ?? '') === (node.comment ?? '') && (saved.commentBefore ?? '') === (node.commentBefore ?? '');
}

function endOfPair({ key, value }: SavedPair): number {
  return value === undefined ? key.end : Math.max(key.end, endOf(value));
}

/** Offset after what is written of a node, and after the comments below the entries of a collection. */
function endOf(node: SavedNode): number {
  if (node.kind === 'scalar' || node.flow || node.items.length === 0) return node.end;
  const last = node.items.at(-1) as SavedNode | SavedPair;
  const end = 'key' in last ? endOfPair(last) : endOf(last);
  return node.comment ? Math.max(end, node.outerEnd) : end;
}
