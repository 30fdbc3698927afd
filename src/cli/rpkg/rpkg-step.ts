import { setTimeout as pause } from 'node:timers/promises';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { BREAK_GLASS_ANNOTATION } from '../../package/api/objects/revision-object.ts';
import { approverText } from '../../package/api/requests/warn-of-closed-gates.ts';
import { explainSchema } from '../../package/model/revision/revision-readings.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { keyOf, type Stored } from '../../resource/object/object.ts';
import type { Access } from '../access/access.ts';
import { findRevision } from '../access/find-revision.ts';
import { forEachName } from '../access/for-each-name.ts';
import { commandFor } from '../access/hints/command-for.ts';
import { inPackages } from '../access/in-packages.ts';
import { commitOf } from '../access/package-contents.ts';
import { readRevision } from '../access/read-revision.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { leftOnMain } from './left-on-main.ts';

export type StepVerb = 'propose' | 'approve' | 'reject' | 'propose-delete' | 'del';

export interface StepOptions extends PlaceOptions, ActorOptions {
  readonly reason?: string;
  readonly commit?: string;
  readonly breakGlass?: boolean;
}

type Revision = Stored<PackageRevision>;
type Lifecycle = NonNullable<PackageRevision['spec']['lifecycle']>;

/** A controller may change a revision at the same moment; the step is then evaluated again. */
const ATTEMPTS = 4;
const RETRY_INTERVAL_MS = 100;
/** Matches the part of a refusal about a gate. */
const GATE_REFUSAL = /\bgate \S+ is closed\b/;

/** `sluice rpkg propose|approve|reject|propose-delete|del` */
export function rpkgStep(
  verb: StepVerb,
  names: readonly string[],
  options: StepOptions,
  invocation: Invocation,
): Promise<CommandResult> {
  if (options.commit !== undefined && names.length > 1) {
    throw new SluiceError('InvalidInput', '--commit is about one revision; name only that one');
  }
  if (options.breakGlass === true && (options.reason ?? '').trim() === '') {
    throw new SluiceError('InvalidInput', 'publishing with closed gates needs a reason; give one with --reason');
  }
  const command = commandFor(options, invocation);
  const work = async (access: Access) => {
    const deleted: Revision[] = [];
    const attempt = async (name: string) => {
      const revision = await findRevision(access, name);
      const text = await step(access, verb, revision, options);
      if (verb === 'del') deleted.push(revision);
      return text;
    };
    const act = (name: string) => withStepRetries(access, name, options, command, attempt);
    const outcome = await forEachName(names, invocation, access, act, options);
    for (const main of await leftOnMain(access, deleted)) {
      invocation.terminal.note(
        `${printable(main)} remains: as in Porch, the files stay on the main branch until it is deleted too`,
      );
      for (const next of ['propose-delete', 'del']) invocation.terminal.note(`Next: ${command('rpkg', next, main)}`);
    }
    return outcome;
  };
  // Publishing with closed gates writes an event, where this process does it.
  return inPackages(options, invocation, work, options.breakGlass === true);
}

/** Repeats a step that lost against a concurrent writer. A refusal because of closed gates names the command that explains it. */
async function withStepRetries<Result>(
  access: Access,
  name: string,
  { commit }: Pick<StepOptions, 'commit'>,
  command: (...words: string[]) => string,
  attempt: (name: string) => Promise<Result>,
): Promise<Result> {
  for (let count = 1; ; count++) {
    try {
      return await attempt(name);
    } catch (error) {
      if (isSluiceError(error, 'Refused') && access.isSluice && GATE_REFUSAL.test(error.message)) {
        throw new SluiceError(error.code, `${error.message}; see: ${command('why', name)}`, { cause: error });
      }
      const lost = isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy');
      if (!lost || commit !== undefined || count >= ATTEMPTS) throw error;
      await pause(RETRY_INTERVAL_MS * count);
    }
  }
}

/** Proposes a revision for another command; returns the text that reports it. */
export function proposeRevision(
  access: Access,
  name: string,
  reason: string,
  command: (...words: string[]) => string,
): Promise<string> {
  return withStepRetries(access, name, {}, command, async () =>
    step(access, 'propose', await findRevision(access, name), { reason }),
  );
}

/** Does the step; returns the text that reports it. */
async function step(
  access: Access,
  verb: StepVerb,
  revision: Revision,
  options: Pick<StepOptions, 'reason' | 'commit' | 'breakGlass'>,
): Promise<string> {
  const { client } = access;
  const { lifecycle } = revision.spec;
  const reason = options.reason === undefined ? {} : { reason: options.reason };
  if (verb === 'propose' && lifecycle === 'Proposed') return 'is already proposed';
  if (verb === 'propose-delete' && lifecycle === 'DeletionProposed') return 'is already proposed for deletion';
  if (options.commit !== undefined) expectCommit(revision, options.commit);
  const to = (next: Lifecycle) => ({ ...revision, spec: { ...revision.spec, lifecycle: next } });
  // The version names what the user has seen, which is known only of a commit that they name.
  const approved = {
    ...to('Published'),
    metadata:
      options.commit === undefined && access.isSluice
        ? { ...revision.metadata, resourceVersion: undefined }
        : revision.metadata,
  };
  const decide = (next: Lifecycle) => client.subResource('approval').update(packageRevisionKind, to(next), reason);
  switch (verb) {
    case 'propose':
      expectGates(access, revision);
      await client.update(packageRevisionKind, to('Proposed'), reason);
      return 'proposed';
    case 'approve':
      if (lifecycle !== 'Proposed') {
        throw new SluiceError(
          'Refused',
          `cannot approve package with ${lifecycle} lifecycle value; only Proposed packages can be approved${publication(revision)}`,
        );
      }
      if (options.breakGlass === true) return breakGlass(access, approved, options.reason ?? '');
      expectGates(access, revision);
      return approval(await client.subResource('approval').update(packageRevisionKind, approved, reason));
    case 'reject':
      if (lifecycle === 'DeletionProposed') {
        await decide('Published');
        return 'no longer proposed for deletion';
      }
      if (lifecycle !== 'Proposed') throw wrongState(verb, revision, 'Proposed or DeletionProposed');
      await decide('Draft');
      return 'no longer proposed for approval';
    case 'propose-delete':
      if (lifecycle !== 'Published') throw wrongState(verb, revision, 'Published');
      await decide('DeletionProposed');
      return 'proposed for deletion';
    case 'del': {
      const { resourceVersion } = revision.metadata;
      const result = options.commit === undefined ? {} : { resourceVersion };
      await client.delete(packageRevisionKind, keyOf(revision), { ...reason, ...result });
      return 'deleted';
    }
  }
}

/** Describes the result of an approval: an insufficient one leaves the revision proposed. */
function approval({ spec, status }: Revision): string {
  if (spec.lifecycle !== 'Proposed') return 'approved';
  const { given = [], needed } = status?.approvals ?? {};
  const count = needed === undefined ? '' : ` ${given.length} of ${needed}`;
  const isEnough = needed !== undefined && given.length >= needed;
  return `approval${count} recorded; ${isEnough ? 'a controller publishes it when no rule blocks it' : 'another user has to approve'}`;
}

/** Publishes with closed gates, which a policy permits to some users. */
async function breakGlass(access: Access, wanted: PackageRevision, reason: string): Promise<string> {
  const { client, server, isSluice } = access;
  if (!isSluice) throw new SluiceError('Unsupported', `${server} leaves gates to its clients; leave --break-glass out`);
  const annotations = { ...wanted.metadata.annotations, [BREAK_GLASS_ANNOTATION]: reason };
  const request = { ...wanted, metadata: { ...wanted.metadata, annotations } };
  const made = await client.subResource('approval').update(packageRevisionKind, request, { reason });
  if (made.spec.lifecycle !== 'Published') return approval(made);
  // With open gates it is an ordinary approval.
  const isBroken = await readRevision(access, made.metadata.name, 'explain', explainSchema).then(
    ({ explanation }) => explanation.reasons.some((one) => one.reason === 'BreakGlass'),
    (error: unknown) => {
      // The approval is done, also for a user who may not read the explanation.
      if (isSluiceError(error, 'Refused')) return true;
      throw error;
    },
  );
  return isBroken ? 'approved, with the gates as they are (break-glass)' : 'approved';
}

/** Returns who published it, if it is published. */
function publication({ spec, status }: Revision): string {
  if (spec.lifecycle !== 'Published' && spec.lifecycle !== 'DeletionProposed') return '';
  const by = approverText(status);
  return `; it is published as v${spec.revision}${by}`;
}

/** The resourceVersion in the request ensures that the commit is unchanged when the server executes the step. */
function expectCommit(revision: Revision, wanted: string): void {
  const { name } = revision.metadata;
  const commit = commitOf(revision);
  if (commit === wanted) return;
  throw commit === undefined
    ? new SluiceError('Unsupported', `the server does not report the commit of ${name}; leave --commit out`)
    : new SluiceError(
        'Conflict',
        `${name} is at ${commit} now, the request is for ${wanted}; read it again, then repeat the request`,
      );
}

/** A server other than Sluice does not check gates, so the command does. */
function expectGates({ isSluice }: Access, { metadata, spec, status }: Revision): void {
  if (isSluice) return;
  const open = new Set((status?.conditions ?? []).filter((one) => one.status === 'True').map(({ type }) => type));
  const closed = (spec.readinessGates ?? []).map((gate) => gate.conditionType).filter((type) => !open.has(type));
  if (closed.length > 0) {
    throw new SluiceError('Refused', `readiness conditions not met: ${metadata.name} waits for ${closed.join(', ')}`);
  }
}

function wrongState(verb: StepVerb, { metadata, spec }: Revision, needed: string): SluiceError {
  return new SluiceError('Refused', `cannot ${verb} ${metadata.name}: it is ${spec.lifecycle}, this needs ${needed}`);
}
