import type { Oid, Ref } from '../../git-repository.ts';

/** Far above the refs of any repository that works well. */
const MAX_TIPS = 500_000;

/**
 * Objects that a remote is assumed to have, with all below them: what its refs pointed to when they were listed, what was pushed, and,
 * before anything of that is known, what the refs of the mirror point to. It is a guess: a remote may have lost some since.
 */
export class KnownTips {
  readonly #seed: () => Promise<readonly Ref[]>;
  #oids: Set<Oid> | undefined;

  constructor(seed: () => Promise<readonly Ref[]>) {
    this.#seed = seed;
  }

  /** The set as it is now; it may grow. */
  async current(): Promise<ReadonlySet<Oid>> {
    this.#oids ??= new Set((await this.#seed()).map(({ oid }) => oid));
    return this.#oids;
  }

  add(oids: Iterable<Oid>): void {
    if (this.#oids === undefined) return;
    for (const oid of oids) this.#oids.add(oid);
    if (this.#oids.size > MAX_TIPS) this.#oids = undefined;
  }

  /** The assumption was wrong; the refs of the remote determine its objects. */
  replace(oids: Iterable<Oid>): void {
    this.#oids = new Set(oids);
  }

  /** Forgets everything: the guess was wrong. */
  clear(): void {
    this.#oids = undefined;
  }
}
