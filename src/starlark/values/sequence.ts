import { fail } from '../machine/machine.ts';
import { StarlarkObject, type Value } from './value.ts';

export class Tuple extends StarlarkObject {
  readonly type = 'tuple';
  readonly items: readonly Value[];
  /** Its key in hash tables, created on first use. */
  key: string | undefined;

  constructor(items: readonly Value[]) {
    super();
    this.items = items;
  }

  override get truth(): boolean {
    return this.length > 0;
  }

  override freeze(): Iterable<Value> {
    return this.items;
  }

  get length(): number {
    return this.items.length;
  }
}

export class List extends StarlarkObject {
  readonly type = 'list';
  items: Value[];
  frozen = false;
  /** Active loops over it. */
  iterators = 0;

  constructor(items: Value[]) {
    super();
    this.items = items;
  }

  override get truth(): boolean {
    return this.length > 0;
  }

  override freeze(): Iterable<Value> {
    if (this.frozen) return [];
    this.frozen = true;
    return this.items;
  }

  get length(): number {
    return this.items.length;
  }

  /** Fails if it must not change; `verb` is such as `append to`. */
  checkMutable(verb: string): void {
    if (this.frozen) fail(`cannot ${verb} frozen list`);
    if (this.iterators > 0) fail(`cannot ${verb} list during iteration`);
  }
}

/** The result of `range`: its numbers are created on use. */
export class Range extends StarlarkObject {
  readonly type = 'range';
  readonly start: number;
  readonly stop: number;
  readonly step: number;
  readonly length: number;

  constructor(start: number, stop: number, step: number) {
    super();
    this.start = start;
    this.stop = stop;
    this.step = step;
    this.length = Math.max(0, Math.ceil((stop - start) / step));
  }

  override get truth(): boolean {
    return this.length > 0;
  }

  at(index: number): number {
    return this.start + index * this.step;
  }

  has(value: number): boolean {
    const index = (value - this.start) / this.step;
    return Number.isInteger(index) && index >= 0 && index < this.length;
  }
}
