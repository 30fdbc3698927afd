import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import { expectedValue, movedError, newValue } from '../../git/refs/ref-updates.ts';
import type { WritePlan } from '../plan/ports/repository-context.ts';
import { SharedStepsError } from '../plan/shared-commit.ts';
import type { DecidedStep } from '../plan/step-objects.ts';
import { inSequence } from '../plan/update.ts';
import type { PendingWrite } from './pending-write.ts';

/** The state of refs that a batch is planned on. */
export interface RefView {
  /** Full name of the main branch. */
  readonly main: string;
  ref(name: string): Oid | undefined;
  /** Refs whose last write has an unknown outcome. */
  readonly unconfirmedRefs: ReadonlySet<string>;
}

export interface Planned<Write> {
  readonly write: Write;
  /** Of writes that share a commit each moves the main branch to it. */
  readonly plan: WritePlan;
}

/** Independent writes as one set of ref updates. */
export interface Batch<Write> {
  readonly planned: readonly Planned<Write>[];
  /** Of the main branch there is one update: from where it is to where the last of the writes brings it. */
  readonly updates: readonly RefUpdate[];
  /** Those that cannot be committed, each with its own reason. */
  readonly failed: readonly { readonly write: Write; readonly error: unknown }[];
  /** Those that touch a ref that another one of the batch changes; they have to wait for the next. */
  readonly later: readonly Write[];
}

/**
 * Makes one transaction of writes. Those that move the main branch are planned here, each on top of the one before it, and those of one group
 * as one commit.
 */
export async function gatherBatch<Write extends PendingWrite>(
  writes: readonly Write[],
  view: RefView,
): Promise<Batch<Write>> {
  const batch = new GrowingBatch<Write>(view);
  const groups = Map.groupBy(writes, ({ shared }) => shared?.group);
  for (const write of writes) {
    const group = write.shared?.group;
    const together = (group === undefined ? undefined : groups.get(group)) ?? [write];
    if (together.length === 1) await batch.add(write);
    // With its first write the whole group is added.
    else if (together[0] === write) await batch.addTogether(together);
  }
  return batch;
}

class GrowingBatch<Write extends PendingWrite> implements Batch<Write> {
  readonly planned: Planned<Write>[] = [];
  readonly failed: { write: Write; error: unknown }[] = [];
  readonly later: Write[] = [];
  updates: RefUpdate[] = [];
  readonly #view: RefView;
  readonly #touched = new Set<string>();
  #head: Oid | undefined;

  constructor(view: RefView) {
    this.#view = view;
    this.#head = view.ref(view.main);
  }

  async add(write: Write): Promise<void> {
    try {
      write.check?.();
      const plan = typeof write.plan === 'function' ? await write.plan(this.#head) : write.plan;
      if (plan === undefined) throw new SluiceError('Internal', `a lifecycle step of ${write.package} changes nothing`);
      if (this.#isPossible({ write, plan })) this.#include([{ write, plan }]);
    } catch (error) {
      this.failed.push({ write, error });
    }
  }

  /** Each write is decided at the same head. Where one turns out to be impossible, the others are planned again without it. */
  async addTogether(writes: readonly Write[]): Promise<void> {
    const decided = new Map<Write, DecidedStep>();
    for (const write of writes) {
      try {
        write.check?.();
        const step = await write.shared?.decide(this.#head);
        if (step !== undefined) decided.set(write, step);
      } catch (error) {
        this.failed.push({ write, error });
      }
    }
    while (decided.size > 0) {
      const planned = await this.#planTogether(decided);
      const impossible = planned.filter((one) => !this.#isPossible(one));
      if (impossible.length === 0 && planned.length === decided.size) return this.#include(planned);
      for (const { write } of impossible) decided.delete(write);
    }
  }

  /** Returns the plans of all; none if some of them failed, which are in `decided` no more. */
  async #planTogether(decided: Map<Write, DecidedStep>): Promise<Planned<Write>[]> {
    const [first] = decided.keys();
    try {
      const plans = (await first?.shared?.plan([...decided.values()])) ?? [];
      return [...decided.keys()].map((write, at) => {
        const plan = plans[at];
        if (plan === undefined) throw new SluiceError('Internal', `the approval of ${write.package} was not planned`);
        return { write, plan };
      });
    } catch (error) {
      const causes = error instanceof SharedStepsError ? error.causes : undefined;
      for (const [write, step] of decided) {
        if (causes?.has(step) === false) continue;
        this.failed.push({ write, error: causes === undefined ? error : causes.get(step) });
        decided.delete(write);
      }
      return [];
    }
  }

  /** A plan that is not possible is among those that failed, or that have to wait. */
  #isPossible({ write, plan }: Planned<Write>): boolean {
    if (plan.updates.some(({ ref }) => ref !== this.#view.main && this.#touched.has(ref))) {
      this.later.push(write);
      return false;
    }
    try {
      checkExpectations(plan, this.#head, this.#view);
      return true;
    } catch (error) {
      this.failed.push({ write, error });
      return false;
    }
  }

  /** Adds writes that were planned at the present head; several of them move the main branch to the same commit. */
  #include(planned: readonly Planned<Write>[]): void {
    const { main } = this.#view;
    let head = this.#head;
    for (const { plan } of planned) {
      const isThere = head !== this.#head;
      this.updates = inSequence(this.updates, isThere ? plan.updates.filter(({ ref }) => ref !== main) : plan.updates);
      for (const { ref } of plan.updates) this.#touched.add(ref);
      if (!isThere) head = headAfter(plan, main, head);
    }
    this.#head = head;
    this.planned.push(...planned);
  }
}

/** A difference that is known before needs no request. */
function checkExpectations({ updates }: WritePlan, head: Oid | undefined, view: RefView): void {
  for (const update of updates) {
    const { ref } = update;
    if (view.unconfirmedRefs.has(ref))
      throw new SluiceError(
        'Unavailable',
        `cannot write ${ref}: the outcome of an earlier write is unknown, since the remote cannot be reached; try again`,
      );
    const actual = (ref === view.main ? head : view.ref(ref)) ?? null;
    const expected = expectedValue(update);
    if (actual !== expected) throw movedError(ref, expected, actual);
  }
}

function headAfter({ updates }: WritePlan, main: string, head: Oid | undefined): Oid | undefined {
  const update = updates.find(({ ref }) => ref === main);
  return update === undefined ? head : (newValue(update) ?? undefined);
}
