import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Action } from '../../package/kernel/types.ts';
import type { PackageRevision } from '../../package/package-revision.ts';
import { GATES_ANNOTATION } from '../../package/policy-objects.ts';
import { TransitionRefusedError } from '../../package/write/transition.ts';
import { packageRevisionKind } from '../../resource/kinds/package-revision.ts';
import type { Session } from '../assembly/session.ts';
import { printable } from '../output/printable.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { forEachName } from './for-each-name.ts';
import { commandFor, findRevision, inSession, openAll } from './in-session.ts';

export type StepVerb = 'propose' | 'approve' | 'reject' | 'propose-delete' | 'del';

export interface StepOptions extends DataOptions, ActorOptions {
  readonly reason?: string;
  readonly commit?: string;
}

/** A running `up` may change a revision at the same moment; the step is then judged anew. */
const ATTEMPTS = 4;

/** `sluice rpkg propose|approve|reject|propose-delete|del` */
export function rpkgStep(
  verb: StepVerb,
  names: readonly string[],
  options: StepOptions,
  invocation: Invocation,
): Promise<Outcome> {
  if (options.commit !== undefined && names.length > 1) {
    throw new SluiceError('InvalidInput', '--commit is about one revision; name only that one');
  }
  return inSession(options, invocation, (session) =>
    forEachName(names, invocation, async (name) => {
      // Other repositories may hold packages that come from this one.
      if (verb === 'del') await openAll(session, invocation);
      for (let attempt = 1; ; attempt++) {
        try {
          return await step(session, verb, await findRevision(session, name), options, invocation);
        } catch (error) {
          if (error instanceof TransitionRefusedError)
            throw withAdvice(error, commandFor(options, invocation)('why', name));
          const lost = isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy');
          if (!lost || options.commit !== undefined || attempt >= ATTEMPTS) throw error;
          await session.store.repository(session.store.get(name).key.repository).sync();
        }
      }
    }),
  );
}

/** Does the step; returns how it is told. */
async function step(
  session: Session,
  verb: StepVerb,
  revision: PackageRevision,
  options: StepOptions,
  invocation: Invocation,
): Promise<string> {
  const { name, lifecycle } = revision;
  const expectedCommit = options.commit ?? revision.commit;
  if (verb === 'propose' && lifecycle === 'Proposed') return 'is already proposed';
  if (verb === 'propose-delete' && lifecycle === 'DeletionProposed') return 'is already proposed for deletion';
  if (verb === 'del') {
    if (options.commit !== undefined && options.commit !== revision.commit) throw moved(revision, options.commit);
    await session.client.delete(packageRevisionKind, { name }, reasonOf(options));
    return 'deleted';
  }
  const { action, told } = actionOf(verb, revision);
  const after = await session.store.transition(name, { action, expectedCommit }, session.context(options.reason));
  if (after !== undefined) warnOfGates(session, after, action, invocation);
  return told;
}

/** Where gates are not enforced but warned of, whoever passes a closed one is told. */
function warnOfGates(session: Session, revision: PackageRevision, action: Action, { terminal }: Invocation): void {
  const annotations = session.repository(revision.key.repository)?.metadata.annotations;
  if (annotations?.[GATES_ANNOTATION] !== 'warn') return;
  const { record } = action === 'approve' ? revision.tip.facts : revision;
  const gates = record?.steps.at(-1)?.gates ?? [];
  if (gates.length === 0) return;
  const label = terminal.style('yellow', 'warning:', terminal.err);
  const list = printable(gates.join(', '));
  terminal.note(`${label} ${printable(revision.name)}: closed gates: ${list} (${GATES_ANNOTATION}: warn)`);
}

function actionOf(verb: Exclude<StepVerb, 'del'>, revision: PackageRevision): { action: Action; told: string } {
  switch (verb) {
    case 'propose':
      return { action: 'propose', told: 'proposed' };
    case 'approve':
      return { action: 'approve', told: 'approved' };
    case 'propose-delete':
      return { action: 'propose-deletion', told: 'proposed for deletion' };
    case 'reject':
      return revision.lifecycle === 'DeletionProposed'
        ? { action: 'undo-deletion', told: 'no longer proposed for deletion' }
        : { action: 'reject', told: 'no longer proposed for approval' };
  }
}

function reasonOf({ reason }: StepOptions): { reason?: string } {
  return reason === undefined ? {} : { reason };
}

function moved(revision: PackageRevision, commit: string): SluiceError {
  return new SluiceError(
    'Conflict',
    `${revision.name} is at ${revision.commit} now, not at ${commit}; look at it again`,
  );
}

/** Where gates refuse, `why` says more than fits into one line. */
function withAdvice(error: TransitionRefusedError, command: string): SluiceError {
  const gates = error.details?.refusals.some((refusal) => refusal.gate !== undefined) ?? false;
  if (!gates) return error;
  return new SluiceError(error.code, `${error.message}; see: ${command}`, { cause: error });
}
