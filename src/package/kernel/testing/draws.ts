/** Small numbers out of one large one, so that a test case is a plain list of integers. */
export class Draws {
  #rest: number;

  constructor(seed: number) {
    this.#rest = seed;
  }

  below(limit: number): number {
    // Used-up randomness is mixed, so that later draws differ.
    if (this.#rest < limit) this.#rest = (this.#rest + 7) * 2_654_435_761;
    const drawn = this.#rest % limit;
    this.#rest = Math.floor(this.#rest / limit);
    return drawn;
  }

  of<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(Math.max(1, items.length))];
  }
}
