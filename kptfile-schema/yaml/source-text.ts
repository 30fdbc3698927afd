/** A place in a text; both count from 1, the column in UTF-16 units as editors and JavaScript do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Answers questions about the lines of a text. YAML's line breaks: LF, CRLF and a lone CR. */
export class SourceText {
  readonly text: string;
  #starts: number[] | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** Offsets at which lines begin. */
  get starts(): readonly number[] {
    if (this.#starts === undefined) {
      const starts = [0];
      for (let index = 0; index < this.text.length; index++) {
        const code = this.text.charCodeAt(index);
        if (code === LINE_FEED) starts.push(index + 1);
        else if (code === CARRIAGE_RETURN && this.text.charCodeAt(index + 1) !== LINE_FEED) starts.push(index + 1);
      }
      this.#starts = starts;
    }
    return this.#starts;
  }

  /** Index of the line that holds `offset`, from 0. */
  lineOf(offset: number): number {
    const starts = this.starts;
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Offset of the first character of the line that holds `offset`; a byte order mark does not count. */
  lineStart(offset: number): number {
    const start = this.starts[this.lineOf(offset)] ?? 0;
    return start === 0 && this.text.charCodeAt(0) === 0xfeff ? 1 : start;
  }

  /** Offset of the line break, or of the end of the text, that ends the line holding `offset`. */
  lineEnd(offset: number): number {
    let index = offset;
    while (index < this.text.length) {
      const code = this.text.charCodeAt(index);
      if (code === LINE_FEED || code === CARRIAGE_RETURN) return index;
      index++;
    }
    return index;
  }

  /** Offset of the first character after the line holding `offset`. */
  nextLine(offset: number): number {
    const end = this.lineEnd(offset);
    if (this.text.charCodeAt(end) === CARRIAGE_RETURN && this.text.charCodeAt(end + 1) === LINE_FEED) return end + 2;
    return Math.min(end + 1, this.text.length);
  }

  /** Columns between the beginning of its line and `offset`, from 0. */
  indentOf(offset: number): number {
    return offset - this.lineStart(offset);
  }

  position(offset: number): Position {
    return { line: this.lineOf(offset) + 1, column: this.indentOf(offset) + 1 };
  }

  /** The line break to write: that of the first line, `\n` for a text of one line. */
  get lineBreak(): '\n' | '\r\n' {
    const end = this.lineEnd(0);
    return this.text.startsWith('\r\n', end) ? '\r\n' : '\n';
  }
}
