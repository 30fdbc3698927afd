import { revertReason } from '../../delivery/dora/revert-reason.ts';
import {
  isPublished,
  namedSource,
  numberOf,
  type Revision,
  revertSource,
} from '../../delivery/rollback/revert-source.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { type DeliveryTarget, deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Access } from '../access/access.ts';
import { findRevision } from '../access/find-revision.ts';
import { commandFor } from '../access/hints/command-for.ts';
import { inPackages } from '../access/in-packages.ts';
import type { ActorOptions, CommandResult, Invocation, PlaceOptions } from '../output/invocation.ts';
import { printable } from '../output/printable.ts';
import { createRevision } from './rpkg-create.ts';
import { proposeRevision } from './rpkg-step.ts';

export interface RevertOptions extends PlaceOptions, ActorOptions {
  readonly workspace?: string;
  readonly reason?: string;
  /** The revision whose content is proposed. */
  readonly to?: string;
  readonly dryRun?: boolean;
}

type CommandText = (...words: string[]) => string;

/** Later revisions that a note names. */
const MAX_NAMED = 5;

/** `sluice rpkg revert`: the content is copied from a published revision, so its record names the source as for any copy. */
export function rpkgRevert(name: string, options: RevertOptions, invocation: Invocation): Promise<CommandResult> {
  return inPackages(options, invocation, async (access) => {
    const { terminal } = invocation;
    const command = commandFor(options, invocation);
    const reverted = await findRevision(access, name);
    const revisions = await revisionsOfPackage(access, reverted);
    const number = expectPublished(reverted, revisions, command);
    const targets = await readableTargets(access);
    const source =
      options.to === undefined
        ? revertSource(reverted, revisions, targets)
        : namedSource(options.to, reverted, revisions, targets);
    if (source === undefined) throw withoutPredecessor(name, number, command);
    const previous = source.revision;
    const { repository, packageName } = reverted.spec;
    const workspace = options.workspace ?? `revert-${number}`;
    expectFree(workspace, revisions, command);

    for (const note of source.notes) terminal.note(`${options.to === undefined ? '' : 'warning: '}${printable(note)}`);
    const later = revisions
      .filter((one) => isPublished(one) && numberOf(one) > Math.max(number, numberOf(previous)))
      .map(versionOf);
    if (later.length > 0) {
      const named = later.slice(0, MAX_NAMED).join(', ') + (later.length > MAX_NAMED ? ', …' : '');
      terminal.note(`the content of ${versionOf(previous)} also reverts what came after v${number}: ${named}`);
    }
    const what = `reverts ${printable(name)} (v${number}) to ${printable(previous.metadata.name)} (${versionOf(previous)})`;
    if (options.dryRun === true) {
      terminal.line(
        `workspace ${printable(workspace)} of ${printable(packageName)} would be proposed (dry run): ${what}`,
      );
      return 0;
    }
    const created = await createRevision(
      access,
      { repository, path: packageName, workspace },
      { type: 'edit', edit: { sourceRef: { name: previous.metadata.name } } },
    );
    const reason = revertReason(number, numberOf(previous), options.reason);
    try {
      await proposeRevision(access, created, reason, command);
    } catch (error) {
      throw new SluiceError(
        error instanceof SluiceError ? error.code : 'Internal',
        `the draft ${created}, which ${what}, exists, but it could not be proposed: ${messageOf(error)}; then: ${command('rpkg', 'propose', created)}`,
        { cause: error },
      );
    }
    terminal.line(`${printable(created)} proposed: ${what}`);
    return 0;
  });
}

async function revisionsOfPackage(
  { client, namespace }: Access,
  { spec: { repository, packageName } }: Revision,
): Promise<Revision[]> {
  const fieldSelector = `spec.repository=${repository},spec.packageName=${packageName}`;
  const { items } = await client.list(packageRevisionKind, { namespace, fieldSelector });
  return [...items].sort((a, b) => numberOf(a) - numberOf(b));
}

/** The number of the revision to revert. */
function expectPublished(
  { metadata: { name }, spec }: Revision,
  revisions: readonly Revision[],
  command: CommandText,
): number {
  const { revision = 0, lifecycle } = spec;
  if (revision > 0) return revision;
  if (revision === -1) {
    const latest = revisions.findLast(isPublished);
    const next =
      latest === undefined ? 'it has no published revision' : `run: ${command('rpkg', 'revert', latest.metadata.name)}`;
    throw new SluiceError('Refused', `cannot revert ${name}: it is the main branch, not a published revision; ${next}`);
  }
  const steps =
    lifecycle === 'Proposed'
      ? `to send it back, run: ${command('rpkg', 'reject', name)}; to discard it then`
      : 'to discard it';
  throw new SluiceError(
    'Refused',
    `cannot revert ${name}: it is a ${lifecycle} and was never published; ${steps}, run: ${command('rpkg', 'del', name)}`,
  );
}

function withoutPredecessor(name: string, number: number, command: CommandText): SluiceError {
  return new SluiceError(
    'NotFound',
    `cannot revert ${name}: no published revision of the package precedes v${number}; to withdraw the package, run: ${command('rpkg', 'propose-delete', name)}`,
  );
}

/** Refuses a workspace that exists, with the step that its state needs. */
function expectFree(workspace: string, revisions: readonly Revision[], command: CommandText): void {
  const found = revisions.find(({ spec }) => spec.workspaceName === workspace);
  if (found === undefined) return;
  const { name } = found.metadata;
  const { lifecycle } = found.spec;
  const step =
    lifecycle === 'Draft'
      ? `propose it with ${command('rpkg', 'propose', name)}, delete it with ${command('rpkg', 'del', name)}`
      : lifecycle === 'Proposed'
        ? `approve it with ${command('rpkg', 'approve', name)}`
        : 'it is published';
  throw new SluiceError(
    'AlreadyExists',
    `cannot create the draft: workspace ${workspace} exists already as ${name} (${lifecycle}); ${step}, or name another one with --workspace`,
  );
}

function versionOf(revision: Revision): string {
  return `v${numberOf(revision)}`;
}

/** The targets that deliver the packages of the namespace; none if the caller may not read them. */
async function readableTargets({ client, namespace }: Access): Promise<readonly DeliveryTarget[]> {
  try {
    return (await client.list(deliveryTargetKind, { namespace })).items;
  } catch (error) {
    if (isSluiceError(error, 'Refused') || isSluiceError(error, 'Unsupported')) return [];
    throw error;
  }
}
