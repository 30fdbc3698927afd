import { DamageError, HOW_TO_REPAIR } from './errors.ts';
import type { Oid, Ref } from './git-repository.ts';

/** The parsed `packed-refs` file. Immutable. */
export class PackedRefs {
  static readonly EMPTY = new PackedRefs([], new Map(), true);
  readonly #refs: readonly Ref[];
  /** What annotated tags point to, by name of the ref. */
  readonly peeled: ReadonlyMap<string, Oid>;

  /** True if `peeled` is known to be complete. */
  readonly fullyPeeled: boolean;

  private constructor(sorted: readonly Ref[], peeled: ReadonlyMap<string, Oid>, fullyPeeled: boolean) {
    this.#refs = sorted;
    this.peeled = peeled;
    this.fullyPeeled = fullyPeeled;
  }

  static parse(data: Buffer): PackedRefs {
    const refs: Ref[] = [];
    const peeled = new Map<string, Oid>();
    let sorted = true;
    let previous = '';
    const text = data.toString('utf8');
    for (const line of text.split('\n')) {
      if (line === '' || line.startsWith('#')) continue;
      if (line.startsWith('^')) {
        peeled.set(previous, line.slice(1, 41));
        continue;
      }
      if (line.charCodeAt(40) !== 0x20 || !line.startsWith('refs/', 41))
        throw new DamageError(
          `packed-refs has a damaged line: ${JSON.stringify(line.slice(0, 200))}. ${HOW_TO_REPAIR}`,
        );
      const name = line.slice(41);
      sorted &&= previous < name;
      previous = name;
      refs.push({ name, oid: line.slice(0, 40) });
    }
    if (!sorted) refs.sort((a, b) => (a.name < b.name ? -1 : 1));
    return new PackedRefs(refs, peeled, text === '' || /^#.* fully-peeled /.test(text));
  }

  get(name: string): Oid | undefined {
    const ref = this.#refs[this.#firstFrom(name)];
    return ref?.name === name ? ref.oid : undefined;
  }

  withPrefix(prefix: string): readonly Ref[] {
    const start = this.#firstFrom(prefix);
    let end = start;
    while (this.#refs[end]?.name.startsWith(prefix) === true) end += 1;
    return this.#refs.slice(start, end);
  }

  /** The position of the first ref whose name is not before `name`. */
  #firstFrom(name: string): number {
    let low = 0;
    let high = this.#refs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#refs[middle]?.name ?? '') < name) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
