import { createPacer } from '../../foundation/concurrency/in-slices.ts';
import { DamageError, HOW_TO_REPAIR } from '../errors.ts';
import type { Oid, Ref } from '../git-repository.ts';
import { linesOf } from './lines-of.ts';
import { sortedByName } from './sorted-by-name.ts';

/** The parsed `packed-refs` file. Immutable. */
export class PackedRefs {
  static readonly EMPTY = new PackedRefs([], new Map(), true);
  readonly #refs: readonly Ref[];
  /** The objects that annotated tags point to, by ref name. */
  readonly peeled: ReadonlyMap<string, Oid>;

  /** True if `peeled` is known to be complete. */
  readonly fullyPeeled: boolean;

  private constructor(sorted: readonly Ref[], peeled: ReadonlyMap<string, Oid>, fullyPeeled: boolean) {
    this.#refs = sorted;
    this.peeled = peeled;
    this.fullyPeeled = fullyPeeled;
  }

  /** In slices: the file of a large repository has hundreds of thousands of lines. */
  static async parse(data: Buffer): Promise<PackedRefs> {
    const refs: Ref[] = [];
    const peeled = new Map<string, Oid>();
    let sorted = true;
    let previous = '';
    const pause = createPacer();
    for (const line of linesOf(data)) {
      const turn = pause();
      if (turn !== undefined) await turn;
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
    const header = data.toString('latin1', 0, data.indexOf(0x0a) + 1);
    const isFullyPeeled = data.length === 0 || /^#.* fully-peeled /.test(header);
    return new PackedRefs(sorted ? refs : await sortedByName(refs), peeled, isFullyPeeled);
  }

  /** The refs after changes (null removes one), with what the changed ones that are annotated tags point to. */
  with(changes: ReadonlyMap<string, Oid | null>, peeled: ReadonlyMap<string, Oid>): PackedRefs {
    const refs = this.#refs.filter(({ name }) => !changes.has(name));
    const kept = new Map([...this.peeled].filter(([name]) => !changes.has(name)));
    for (const [name, oid] of changes) if (oid !== null) refs.push({ name, oid });
    return new PackedRefs(refs.sort(byName), new Map([...kept, ...peeled]), this.fullyPeeled);
  }

  /** The text of the file. */
  encode(): string {
    const lines = [`# pack-refs with: ${this.fullyPeeled ? 'peeled fully-peeled ' : ''}sorted `];
    for (const { name, oid } of this.#inByteOrder()) {
      lines.push(`${oid} ${name}`);
      const target = this.peeled.get(name);
      if (target !== undefined) lines.push(`^${target}`);
    }
    return `${lines.join('\n')}\n`;
  }

  /** Git searches the file by the bytes of names. That order differs from ours only beyond these characters. */
  #inByteOrder(): readonly Ref[] {
    if (!this.#refs.some(({ name }) => /[\ud800-\uffff]/.test(name))) return this.#refs;
    return this.#refs.toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
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

function byName(a: Ref, b: Ref): number {
  return a.name < b.name ? -1 : 1;
}
