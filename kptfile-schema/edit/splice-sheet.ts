import type { YamlLayout } from '../yaml/yaml-layout.ts';
import type { YamlStyle } from '../yaml/yaml-render.ts';

/** Replaces the text between two offsets. */
export interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The changes of one text, collected before any is made, together with the data to place and write them. */
export class SpliceSheet {
  readonly layout: YamlLayout;
  readonly style: YamlStyle;
  readonly #splices: Splice[] = [];

  constructor(layout: YamlLayout, style: YamlStyle) {
    this.layout = layout;
    this.style = style;
  }

  get splices(): readonly Splice[] {
    return this.#splices;
  }

  replace(start: number, end: number, text: string): void {
    if (start !== end || text !== '') this.#splices.push({ start, end, text });
  }

  insert(offset: number, text: string): void {
    this.replace(offset, offset, text);
  }

  /** Adds lines behind the line that ends at `lineEnd`; a last line without a line break stays one. */
  insertLines(lineEnd: number, lines: readonly string[]): void {
    this.insert(lineEnd, lines.map((line) => `${this.style.lineBreak}${line}`).join(''));
  }

  /** Removes the lines from that of `start` to that of `end`, with the line break before them. */
  removeLines(start: number, end: number): void {
    const { source } = this.layout;
    const lineStart = source.lineStart(start);
    // Comments below that are indented like a block text that ends right above would become part of it.
    const indent = this.layout.blockScalarIndentAt(lineStart);
    const lineEnd = indent === undefined ? source.lineEnd(end) : this.layout.endWithComments(end, indent - 1);
    if (source.lineOf(start) === 0) this.replace(lineStart, source.nextLine(lineEnd), '');
    else this.replace(source.text.startsWith('\r\n', lineStart - 2) ? lineStart - 2 : lineStart - 1, lineEnd, '');
  }

  /** The text with all splices made; undefined if two overlap. Insertions at one place keep their order. */
  apply(): string | undefined {
    const { text } = this.layout.source;
    const ordered = [...this.#splices].sort((left, right) => left.start - right.start || left.end - right.end);
    let result = '';
    let position = 0;
    for (const { start, end, text: replacement } of ordered) {
      if (start < position) return undefined;
      result += text.slice(position, start) + replacement;
      position = end;
    }
    return result + text.slice(position);
  }
}
