import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
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
    if (this.#oids !== undefined) return this.#oids;
    const known = new Set<Oid>();
    await inSlices(await this.#seed(), ({ oid }) => known.add(oid));
    this.#oids ??= known;
    return this.#oids;
  }

  /** Adds what refs of the remote point to. */
  async addRefs(refs: readonly Ref[]): Promise<void> {
    if (this.#oids === undefined) return;
    const known = this.#oids;
    await inSlices(refs, ({ oid }) => known.add(oid));
    if (known.size > MAX_TIPS) this.clear();
  }

  /** Adds what was pushed. */
  add(oids: Iterable<Oid>): void {
    if (this.#oids === undefined) return;
    for (const oid of oids) this.#oids.add(oid);
    if (this.#oids.size > MAX_TIPS) this.clear();
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
