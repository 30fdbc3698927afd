/** Changes of a text, by offsets in it. */
export class TextEdits {
  readonly #edits: { readonly from: number; readonly to: number; readonly text: string }[] = [];

  get length(): number {
    return this.#edits.length;
  }

  /** Replaces the text between two offsets. Of edits at one offset, those that were added first come first. */
  add(from: number, to: number, text: string): void {
    this.#edits.push({ from, to, text });
  }

  /** Removes the edits that were added since `length` had this value. */
  truncate(length: number): void {
    this.#edits.length = length;
  }

  /** The text with all edits; undefined if two of them overlap. */
  apply(text: string): string | undefined {
    let result = '';
    let at = 0;
    for (const edit of this.#edits.toSorted((a, b) => a.from - b.from)) {
      if (edit.from < at) return undefined;
      result += text.slice(at, edit.from) + edit.text;
      at = edit.to;
    }
    return result + text.slice(at);
  }
}
