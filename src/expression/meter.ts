import {
  type CelInput,
  CelScalar,
  type CelValue,
  celFunc,
  celList,
  celListConcat,
  celMethod,
  isCelList,
  isCelMap,
  listType,
} from '@bufbuild/cel';
import { isSluiceError } from '../foundation/sluice-error.ts';
import { matchesPattern } from '../foundation/text/linear-regex.ts';
import { cpuMilliseconds } from '../foundation/time/cpu-time.ts';
import { METER_ROUND, METER_VALUE } from './ast.ts';

type CelList = ReturnType<typeof celList>;

/** Entries that are next to each other in a sum of lists. */
interface Piece {
  readonly list: CelList;
  readonly entries: readonly CelValue[];
}

/** What one evaluation may cost; see ExpressionLimits. */
interface MeterLimits {
  readonly size: number;
  readonly text: number;
  readonly rounds: number;
  readonly milliseconds: number;
}

/** Milliseconds between two readings of the processor time, which cost more than those of the clock. */
const READING_MS = 2;
const CHARACTERS_PER_PART = 10;
/** Comparisons of characters that a search may need, which is for some texts as many as those of all positions: tens of milliseconds. */
const MAX_SEARCH = 50_000_000;
const { STRING, BYTES, DYN, BOOL } = CelScalar;
const LIST = listType(DYN);

/**
 * Counts what an evaluation costs, and ends it once that is too much. The tree calls it in each round of a loop, and with each list, each map
 * and the result of each call (`meterTree`). It replaces what one call of the library may spend too much in: additions, since a list that is
 * added to itself again and again doubles each time, and so does a text; searches; and regular expressions.
 */
export class Meter {
  readonly #limits: MeterLimits;
  /** Parts of lists and maps, inner ones included. A list can contain another one twice, so it can have more of them than memory. */
  readonly #sizes = new WeakMap<object, number>();
  /** What a sum of lists consists of, so that a long sum of short lists is read without descending through each addition. */
  readonly #pieces = new WeakMap<object, readonly Piece[]>();
  #rounds = 0;
  #deadline = 0;
  #nextReading = 0;
  #problem: string | undefined;

  constructor(limits: MeterLimits) {
    this.#limits = limits;
  }

  readonly functions = [
    celFunc(METER_ROUND, [], BOOL, () => {
      this.#rounds += 1;
      if (this.#rounds > this.#limits.rounds) this.#spend(this.#costs());
      this.#readTime();
      return this.#problem === undefined;
    }),
    celFunc(METER_VALUE, [DYN], DYN, (value) => {
      this.#bound(this.#sizeOf(value));
      return value;
    }),
    celFunc('_+_', [STRING, STRING], STRING, (left, right) => {
      this.#boundText(left.length + right.length);
      return left + right;
    }),
    celFunc('_+_', [BYTES, BYTES], BYTES, (left, right) => {
      this.#boundText(left.length + right.length);
      return Buffer.concat([left, right]);
    }),
    celMethod('contains', STRING, [STRING], BOOL, this.#boundedContains()),
    celFunc('_+_', [LIST, LIST], LIST, (left, right) => this.#sum(left as CelList, right as CelList)),
  ];

  /** The regular expressions of `matches`. A pattern can be made of data. */
  readonly re2 = {
    compile: (pattern: string) => ({
      test: (text: string) => {
        try {
          return matchesPattern(pattern, text, 'pattern');
        } catch (error) {
          if (isSluiceError(error, 'LimitExceeded')) this.#refuse(error.message);
          throw error;
        }
      },
    }),
  };

  /** Begins an evaluation. */
  start(): void {
    this.#rounds = 0;
    this.#problem = undefined;
    this.#nextReading = 0;
    this.#deadline = cpuMilliseconds() + this.#limits.milliseconds;
  }

  /** Why the evaluation is not to be used; undefined for one that cost no more than it may. */
  get problem(): string | undefined {
    return this.#problem;
  }

  #boundedContains() {
    const refuse = () => this.#refuse('searches a text for one that is too long');
    return function contains(this: string, searched: string): boolean {
      if (this.length * searched.length > MAX_SEARCH) refuse();
      return this.includes(searched);
    };
  }

  #sum(left: CelList, right: CelList): CelList {
    const size = this.#sizeOf(left) + this.#sizeOf(right);
    this.#bound(size);
    const pieces = [...this.#piecesOf(left)];
    for (const piece of this.#piecesOf(right)) {
      let { entries } = piece;
      // As in a binary counter: each entry is copied as often as the length of the list doubles.
      for (
        let last = pieces.at(-1);
        last !== undefined && last.entries.length <= 2 * entries.length;
        last = pieces.at(-1)
      ) {
        entries = last.entries.concat(entries);
        pieces.pop();
      }
      pieces.push(entries === piece.entries ? piece : { entries, list: celList(entries as CelInput[]) });
    }
    const sum = celListConcat(...pieces.map(({ list }) => list));
    this.#pieces.set(sum, pieces);
    this.#sizes.set(sum, size);
    return sum;
  }

  #piecesOf(list: CelList): readonly Piece[] {
    return this.#pieces.get(list) ?? (list.size === 0 ? [] : [{ list, entries: [...list] }]);
  }

  #sizeOf(value: unknown): number {
    if (typeof value === 'string') return partsOf(value.length);
    if (value instanceof Uint8Array) return partsOf(value.length);
    if (!isCelList(value) && !isCelMap(value)) return 1;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    let size = 1;
    if (isCelList(value)) for (const entry of value) size += this.#sizeOf(entry);
    else for (const [key, entry] of value) size += this.#sizeOf(key) + this.#sizeOf(entry);
    this.#sizes.set(value, size);
    return size;
  }

  #bound(size: number): void {
    if (size > this.#limits.size) this.#refuse(`makes a value of more than ${this.#limits.size} parts`);
    this.#continue();
  }

  #boundText(length: number): void {
    if (length > this.#limits.text) this.#refuse(`makes a text of more than ${this.#limits.text} characters`);
    this.#continue();
  }

  /** Throws once the evaluation has cost too much. */
  #continue(): void {
    this.#readTime();
    if (this.#problem !== undefined) throw new Error(this.#problem);
  }

  #refuse(problem: string): never {
    this.#spend(problem);
    throw new Error(problem);
  }

  #readTime(): void {
    const now = performance.now();
    if (now < this.#nextReading) return;
    this.#nextReading = now + READING_MS;
    if (cpuMilliseconds() > this.#deadline) this.#spend(this.#costs());
  }

  /** The first problem counts. */
  #spend(problem: string): void {
    this.#problem ??= problem;
  }

  #costs(): string {
    return `costs more than ${this.#limits.rounds} rounds or ${this.#limits.milliseconds} ms`;
  }
}

function partsOf(characters: number): number {
  return 1 + Math.floor(characters / CHARACTERS_PER_PART);
}
