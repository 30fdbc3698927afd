import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Oid, RefUpdate } from '../../git/git-repository.ts';
import { expectedValue, movedError, newValue } from '../../git/refs/ref-updates.ts';
import type { WritePlan } from '../plan/ports/repository-context.ts';
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

/** Makes one transaction of writes. Those that move the main branch are planned here, each on top of the one before it. */
export async function gatherBatch<Write extends PendingWrite>(
  writes: readonly Write[],
  view: RefView,
): Promise<Batch<Write>> {
  const planned: Planned<Write>[] = [];
  const failed: { write: Write; error: unknown }[] = [];
  const later: Write[] = [];
  const touched = new Set<string>();
  let updates: RefUpdate[] = [];
  let head = view.ref(view.main);
  for (const write of writes) {
    try {
      write.check?.();
      const plan = typeof write.plan === 'function' ? await write.plan(head) : write.plan;
      if (plan === undefined) throw new SluiceError('Internal', `a lifecycle step of ${write.package} changes nothing`);
      if (plan.updates.some(({ ref }) => ref !== view.main && touched.has(ref))) {
        later.push(write);
        continue;
      }
      checkExpectations(plan, head, view);
      updates = inSequence(updates, plan.updates);
      for (const { ref } of plan.updates) touched.add(ref);
      head = headAfter(plan, view.main, head);
      planned.push({ write, plan });
    } catch (error) {
      failed.push({ write, error });
    }
  }
  return { planned, updates, failed, later };
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
