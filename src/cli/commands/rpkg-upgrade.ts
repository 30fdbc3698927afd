import { SluiceError } from '../../foundation/sluice-error.ts';
import { isPublished, type PackageRevision } from '../../package/package-revision.ts';
import type { UpdateStrategy } from '../../package/write/revision-source.ts';
import type { Session } from '../assembly/session.ts';
import { printable } from '../output/printable.ts';
import { table } from '../output/table.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { findRevision, inSession, openAll } from './in-session.ts';

export interface UpgradeOptions extends DataOptions, ActorOptions {
  readonly revision: number;
  readonly workspace?: string;
  readonly strategy: UpdateStrategy;
  readonly discover?: 'upstream' | 'downstream';
}

/** `sluice rpkg upgrade` */
export function rpkgUpgrade(
  names: readonly string[],
  options: UpgradeOptions,
  invocation: Invocation,
): Promise<Outcome> {
  const { discover, revision } = options;
  if (discover === undefined) {
    if (names.length !== 1) throw new SluiceError('InvalidInput', 'name the one package revision to upgrade');
    if (options.workspace === undefined)
      throw new SluiceError('InvalidInput', '--workspace is required: it names the new draft');
    if (revision < 0) throw new SluiceError('InvalidInput', '--revision must be positive; 0 is the latest one');
  }
  return inSession(options, invocation, async (session) => {
    // The upstream can lie in any of them, and so can what comes from it.
    const failures = await openAll(session, invocation);
    if (discover === 'upstream') await tellUpstreams(session, names, invocation);
    else if (discover === 'downstream') tellDownstreams(session, names, invocation);
    else return upgrade(session, names[0] ?? '', options, invocation);
    return failures === 0 ? 0 : 1;
  });
}

async function upgrade(
  session: Session,
  name: string,
  { revision, workspace = '', strategy }: UpgradeOptions,
  { terminal }: Invocation,
): Promise<Outcome> {
  const local = await findRevision(session, name);
  if (!isPublished(local)) {
    throw new SluiceError(
      'Refused',
      `to upgrade a package, it must be in a published state, not "${local.lifecycle}"; approve ${name} first`,
    );
  }
  const upstream = session.store.upstreamOf(local);
  if (upstream?.current === undefined) throw noUpstream(local, upstream?.draft);
  const target = revision === 0 ? upstream.newer.at(-1) : published(session, upstream.current, revision);
  if (target === undefined) {
    throw new SluiceError(
      'NotFound',
      `no update available: ${upstream.current.name} is the latest revision of its package`,
    );
  }
  const label = terminal.style('yellow', 'warning:', terminal.err);
  const created = await session.store.create(
    local.key.repository,
    {
      package: local.key.package,
      workspace,
      source: {
        type: 'upgrade',
        oldUpstream: upstream.current.name,
        newUpstream: target.name,
        local: local.name,
        strategy,
      },
    },
    { ...session.context(), warn: (message) => terminal.note(`${label} ${printable(message)}`) },
  );
  terminal.line(`${printable(local.name)} upgraded to ${printable(created.name)}`);
  return 0;
}

function published(session: Session, { key }: PackageRevision, revision: number): PackageRevision {
  const { repository, package: path } = key;
  const found = session.store
    .list({ repository, package: path })
    .find((one) => isPublished(one) && one.revision === revision);
  if (found === undefined) throw new SluiceError('NotFound', `revision ${revision} does not exist for package ${path}`);
  return found;
}

function noUpstream({ name, kptfile }: PackageRevision, draft: string | undefined): SluiceError {
  const lock = kptfile?.upstreamLock?.git;
  if (lock === undefined)
    return new SluiceError(
      'NotFound',
      `upstream source not found for package revision ${name}: its Kptfile names none`,
    );
  const why =
    draft === undefined
      ? 'is in no registered repository, or no longer there'
      : `was the draft ${draft}, which is not published`;
  return new SluiceError('NotFound', `the upstream of ${name}, ${lock.repo}/${lock.directory}@${lock.ref}, ${why}`);
}

/** What could come to the named revisions, or to all that have an upstream. */
async function tellUpstreams(session: Session, names: readonly string[], { terminal }: Invocation): Promise<void> {
  const revisions =
    names.length > 0
      ? await Promise.all(names.map((name) => findRevision(session, name)))
      : session.store.list().filter(({ kptfile }) => kptfile?.upstreamLock !== undefined);
  const rows = revisions.map((revision) => {
    const upstream = session.store.upstreamOf(revision);
    const newer = upstream?.newer.map((one) => `v${one.revision}`).join(', ') ?? '';
    return [revision.name, upstream?.repository ?? '', newer === '' ? 'No update available' : newer];
  });
  terminal.out.write(table(['Package revision', 'Upstream repository', 'Upstream updates'], rows));
}

/** Which packages could take the named revisions, or any. */
function tellDownstreams(session: Session, names: readonly string[], { terminal }: Invocation): void {
  const rows: string[][] = [];
  for (const revision of session.store.list()) {
    const { current, draft, newer = [] } = session.store.upstreamOf(revision) ?? {};
    const from = current === undefined ? (draft === undefined ? '?' : `(draft "${draft}")`) : `v${current.revision}`;
    for (const update of newer) {
      if (names.length === 0 || names.includes(update.name))
        rows.push([update.name, revision.name, `${from}->v${update.revision}`]);
    }
  }
  if (rows.length === 0) terminal.line('All downstream packages are up to date.');
  else terminal.out.write(table(['Package revision', 'Downstream package', 'Downstream update'], rows.sort()));
}
