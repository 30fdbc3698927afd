import type { Forge } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';

/** Between two reads of the rules of a branch. */
const RULES_MS = 600_000;

/** Whether the host requires that a head contains the base before it is merged. */
export class UpToDateRule {
  readonly #forge: Pick<Forge, 'branchRules'>;
  readonly #base: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #isRequired = false;
  /** When the rules were read, in milliseconds of running time. */
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(forge: Pick<Forge, 'branchRules'>, base: string, clock: Pick<Clock, 'monotonic'>) {
    this.#forge = forge;
    this.#base = base;
    this.#clock = clock;
  }

  /** As far as is known. */
  get isRequired(): boolean {
    return this.#isRequired;
  }

  /** The host has refused a merge since the head does not contain the base: some hosts state that rule in no other way. */
  noteBehind(): void {
    this.#isRequired = true;
  }

  /** Whether it is required by the rules of the branch as they are now or were minutes ago. */
  async read(signal: AbortSignal): Promise<boolean> {
    const now = this.#clock.monotonic();
    if (now - this.#readMs < RULES_MS) return this.#isRequired;
    let stated: boolean | undefined;
    try {
      stated = (await this.#forge.branchRules(this.#base, signal)).requiresUpToDate;
    } catch (error) {
      // The token may not read them. What ends by itself is tried again.
      if (!isPermanent(error)) throw error;
    }
    this.#isRequired = stated ?? this.#isRequired;
    this.#readMs = now;
    return this.#isRequired;
  }
}
